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
    forms = "SELECT application_forms.id FROM application_forms JOIN cycles ON cycles.id = cycle_id WHERE cycles.name = 'Fall 2026'"
    new = added(initial_db_path, final_db_path, forms)
    if len(new) != 1:
        return {"result": "others"}
    sections = rows(final_db_path, "SELECT id, title FROM form_sections WHERE form_id = ? ORDER BY section_order", new[0][0])
    questions = rows(
        final_db_path,
        "SELECT form_questions.id, question_type, is_required, max_length, min_value, max_value FROM form_questions "
        "JOIN form_sections ON form_sections.id = section_id WHERE form_id = ?",
        new[0][0],
    )
    dropdowns = [row[0] for row in questions if row[1] == "dropdown"]
    options = rows(final_db_path, "SELECT value FROM form_question_options WHERE question_id = ?", dropdowns[0]) if len(dropdowns) == 1 else []
    texts = [row for row in questions if row[1] == "text" and row[2] == 1]
    essays = [row for row in questions if row[1] == "long_text" and row[2] == 1 and row[3] == 2000]
    numbers = [row for row in questions if row[1] == "number" and row[2] == 1 and row[4:] == (500, 5000)]
    done = (
        [title for _, title in sections] == ["Applicant Info", "Project Details", "Budget"]
        and len(questions) == 4
        and (len(texts), len(essays), len(numbers)) == (1, 1, 1)
        and {value for (value,) in options} == {"State U", "City College", "Other"}
    )
    return {"result": "complete" if done else "others"}
