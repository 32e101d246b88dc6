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
    rules = (
        "SELECT eligibility_rules.id, field_key, operator, value_json, on_fail_action FROM eligibility_rules "
        "JOIN cycles ON cycles.id = cycle_id WHERE cycles.name = 'Fall 2026'"
    )
    new = {(field.lower(), operator, value.strip().strip('"'), action) for _, field, operator, value, action in added(initial_db_path, final_db_path, rules)}
    gpa = {("gpa", operator, "3.2", "mark_ineligible") for operator in (">=", "<")}
    full_time = {("enrollment_status", operator, "Full-time", "mark_ineligible") for operator in ("=", "!=")}
    done = len(new) == 2 and bool(new & gpa) and bool(new & full_time)
    return {"result": "complete" if done else "others"}
