"""What the stages look for in an artifact before, or where, executing it can't show the fault: one module a stage.

Each rule stands for a way in which real synthesized environments went wrong although they started and listed their tools.
"""
