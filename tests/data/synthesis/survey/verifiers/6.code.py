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
    names = ("Dr. Maya Chen", "Alex Rivera", "Priya Nair")
    reviewers = "SELECT reviewers.id, full_name, organization_id FROM reviewers JOIN users ON users.id = user_id"
    new = {row[0]: row[1:] for row in added(initial_db_path, final_db_path, reviewers)}
    waiting = rows(
        initial_db_path,
        "SELECT submissions.id, users.organization_id FROM submissions JOIN users ON users.id = applicant_user_id "
        "JOIN cycles ON cycles.id = cycle_id WHERE cycles.name = 'Fall 2026' AND submissions.status = 'In Review'",
    )
    done = sorted(name for name, _ in new.values()) == sorted(names) and bool(waiting)
    for submission, organization in waiting:
        assigned = rows(final_db_path, "SELECT reviewer_id FROM review_assignments WHERE submission_id = ?", submission)
        done = done and len(assigned) == 2 and all(r in new and new[r][1] != organization for (r,) in assigned)
    return {"result": "complete" if done else "others"}
