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
    requirements = (
        "SELECT document_requirements.id, document_requirements.name, is_required, allowed_mime_types, max_bytes, submitted_by_role "
        "FROM document_requirements JOIN cycles ON cycles.id = cycle_id WHERE cycles.name = 'Fall 2026'"
    )
    new = {row[1]: row[2:] for row in added(initial_db_path, final_db_path, requirements)}
    fine = all(
        required == 1 and "pdf" in types.lower() and "," not in types and size in {10_000_000, 10_485_760}
        for required, types, size, _ in new.values()
    )
    roles = {name: values[3] for name, values in new.items()}
    done = fine and roles == {"Unofficial Transcript": "applicant", "Letter of Recommendation": "recommender"}
    return {"result": "complete" if done else "others"}
