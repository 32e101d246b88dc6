import re
import sqlite3


def load(path):
    """Every row of every table, by table name and id."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    try:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
        return {name: {row["id"]: dict(row) for row in connection.execute(f'SELECT * FROM "{name}"')} for (name,) in names}
    finally:
        connection.close()


def compare(before, after):
    """What differs: added and removed rows, and changed rows as (old, new), by table."""
    added, removed, changed = {}, {}, {}
    for table in sorted(set(before) | set(after)):
        old, new = before.get(table, {}), after.get(table, {})
        for key in sorted(set(old) | set(new)):
            if key not in old:
                added.setdefault(table, []).append(new[key])
            elif key not in new:
                removed.setdefault(table, []).append(old[key])
            elif old[key] != new[key]:
                changed.setdefault(table, []).append((old[key], new[key]))
    return added, removed, changed


def columns_changed(old, new):
    return {name for name in new if new[name] != old.get(name)}


def plain(text):
    return " ".join(re.sub(r"[^\w]+", " ", (text or "").lower()).split())


def first_named(answer, candidates):
    """The candidate that the answer names first, or None; hyphens, case and punctuation don't matter."""
    text = f" {plain(answer)} "
    places = {name: text.find(f" {plain(name)} ") for name in candidates}
    named = [name for name in candidates if places[name] >= 0]
    return min(named, key=lambda name: (places[name], -len(name))) if named else None


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    """Nothing changes, and the answer names the allergy that rules the vaccine out before any other."""
    before, after = load(initial_db_path), load(final_db_path)
    added, removed, changed = compare(before, after)
    if added or removed or changed:
        return {"result": "others"}
    patient = next(row["id"] for row in before["patients"].values() if row["full_name"] == "Theo Marchetti")
    vaccine = next(row["id"] for row in before["vaccines"].values() if row["code"] == "YF")
    banned = {row["substance"] for row in before["vaccine_contraindications"].values() if row["vaccine_id"] == vaccine}
    his = {row["substance"] for row in before["patient_allergies"].values() if row["patient_id"] == patient}
    text = plain(final_answer)
    places = {name: found.start() for name in banned | his if (found := re.search(rf"\b{name}s?\b", text))}
    named = min(places, key=places.get) if places else None
    return {"result": "complete" if named in banned & his else "others"}
