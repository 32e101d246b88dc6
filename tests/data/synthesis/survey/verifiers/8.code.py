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
    reviews = (
        "SELECT reviews.id, conflict_status, overall_comment FROM reviews JOIN submissions ON submissions.id = submission_id "
        "JOIN reviewers ON reviewers.id = reviewer_id JOIN users ON users.id = reviewers.user_id "
        "WHERE submission_code = 'SUB-1042' AND users.full_name = 'Dr. Maya Chen'"
    )
    new = added(initial_db_path, final_db_path, reviews)
    if len(new) != 1:
        return {"result": "others"}
    scores = rows(
        final_db_path,
        "SELECT name, score FROM review_scores JOIN rubric_criteria ON rubric_criteria.id = criterion_id WHERE review_id = ?",
        new[0][0],
    )
    status = rows(final_db_path, "SELECT status FROM submissions WHERE submission_code = 'SUB-1042'")
    done = (
        new[0][1:] == ("None", "Strong idea; budget needs more detail")
        and sorted(scores) == [("Clarity", 3), ("Feasibility", 4), ("Impact", 5)]
        and status == [("Shortlisted",)]
    )
    return {"result": "complete" if done else "others"}
