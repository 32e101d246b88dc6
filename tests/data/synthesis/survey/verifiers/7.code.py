import sqlite3


def rows(path, query, *values):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def added(initial, final, query, *values):
    before = rows(initial, query, *values)
    return [row for row in rows(final, query, *values) if row not in before]


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    rubrics = "SELECT id, require_overall_comment FROM rubrics WHERE name = 'Research Potential v1'"
    new = added(initial_db_path, final_db_path, rubrics)
    if len(new) != 1 or new[0][1] != 1:
        return {"result": "others"}
    criteria = rows(final_db_path, "SELECT name, min_score, max_score FROM rubric_criteria WHERE rubric_id = ?", new[0][0])
    stages = rows(
        final_db_path,
        "SELECT lower(cycle_stages.name) FROM stage_rubrics JOIN cycle_stages ON cycle_stages.id = cycle_stage_id "
        "JOIN cycles ON cycles.id = cycle_id WHERE rubric_id = ? AND cycles.name = 'Fall 2026'",
        new[0][0],
    )
    done = sorted(criteria) == [("Clarity", 0, 5), ("Feasibility", 0, 5), ("Impact", 0, 5)] and len(stages) == 1 and "review" in stages[0][0]
    return {"result": "complete" if done else "others"}
