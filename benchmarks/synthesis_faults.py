"""Faults that `bench_synthesis.py repair` plants into answers, by class.

Each is a stage, an item (a task's number, or none), and what is done to the text.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from awm_factory.llm.stub_faults import spoil
from synthesis_support import changed


def swap(*pairs: tuple[str, str]) -> Callable[[str], str]:
    return lambda text: changed(text, *pairs)


COMMIT = "        session.commit()\n        return answer\n\n\n@app.post"
CHECK = 'if loan.due_on.year < 2026:\n            raise HTTPException(422, "past")\n        '

FAULTS: dict[str, list[tuple[str, str, Callable[[str], str]]]] = {
    "answer cut, fenced, with thinking": [
        ("data", "", lambda text: text[: len(text) // 2]),
        ("code", "", lambda text: text[: len(text) // 2]),
        ("schema", "", lambda text: f"<think>First the tables.</think>\nHere it is:\n{text}\nDone!"),
        ("spec", "", lambda text: spoil(text, "invalid_json")),
    ],
    "SQL refused": [
        ("schema", "", lambda text: spoil(text, "bad_sql")),
        ("data", "", swap(("'garden', 'in_repair'", "'garden', 'broken'"))),
        ("data", "", swap(("(2, 3, 2,", "(2, 99, 2,"))),
    ],
    "start data holds the goal": [
        ("data", "", swap(("(3, 'Tile Cutter', 'stone', 'on_loan')", "(3, 'Tile Cutter', 'stone', 'available')"))),
    ],
    "rows that a task names are missing": [
        ("data", "", swap(("'Ines Duarte'", "'Ines Duarta'"))),
        ("data", "", swap(("'Tile Cutter'", "'Tile Saw'"))),
    ],
    "values no ORM reads": [("data", "", swap(("'2025-12-28 10:15:00'", "'28.12.2025'")))],
    "routes shared, or tools not the spec's": [
        ("spec", "", swap(('"/loans/{loan_id}/return"', '"/loans"'))),
        ("code", "", swap(('"lend_tool"', '"lend"'))),
    ],
    "code that does not start": [("code", "", lambda text: spoil(text, "broken_code"))],
    "case of code and data differs": [("code", "", swap(('"in_repair"]', '"In_Repair"]')))],
    "text into a time column": [("code", "", swap(("    due_on: date\n\n\ndef now", "    due_on: str\n\n\ndef now")))],
    "commit, then 500": [("code", "", swap((COMMIT, COMMIT.replace("return answer", CHECK + "return answer"))))],
    "NULL the answer forbids": [
        ("code", "", swap(("    returned_at: Optional[datetime] = None\n", "    returned_at: datetime\n")))
    ],
    "verifier that passes everything": [("verifiers", "0", lambda text: spoil(text, "lenient_verifier"))],
    "verifier with SQL the schema refuses": [("verifiers", "1", swap(("returned_at IS NOT NULL", "given_back IS NOT NULL")))],
    "verifier that rejects honest work": [("verifiers", "1", swap(('"available" if i == tool', '"Available" if i == tool')))],
    "solution that does not solve": [
        ("solutions", "0", swap(("2026-01-15", "2026-01-16"))),
        ("solutions", "1", swap(("calls[1].loans[0].id", "calls[1].loans[1].id"))),
    ],
}
