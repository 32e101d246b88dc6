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
    campaigns = (
        "SELECT interview_campaigns.id, time_zone, slot_minutes FROM interview_campaigns JOIN cycles ON cycles.id = cycle_id "
        "WHERE cycles.name = 'Fall 2026'"
    )
    new = added(initial_db_path, final_db_path, campaigns)
    slots = rows(final_db_path, "SELECT start_at FROM interview_slots WHERE campaign_id = ?", new[0][0]) if len(new) == 1 else []
    invited = rows(
        initial_db_path,
        "SELECT submissions.id FROM submissions JOIN cycles ON cycles.id = cycle_id "
        "WHERE cycles.name = 'Fall 2026' AND submissions.status = 'Shortlisted'",
    )
    mails = added(
        initial_db_path,
        final_db_path,
        "SELECT id, submission_id FROM email_outbox WHERE subject = 'Interview Invitation - STEM Scholars Grant'",
    )
    done = (
        len(new) == 1
        and new[0][1:] == ("America/New_York", 20)
        and len(slots) == 6
        and bool(invited)
        and {submission for _, submission in mails} >= {submission for (submission,) in invited}
        and ".csv" in (final_answer or "")
    )
    return {"result": "complete" if done else "others"}
