"""From scenarios to bundles by a language model: one module a stage, one repair loop, and no barriers between scenarios.

Each artifact is executed as soon as it is made, and what is wrong with it goes back to the model. What comes out has been
through every gate of `certify`; how it is done and which numbers rule it stands in docs/synthesis.md.
"""
