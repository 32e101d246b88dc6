import base64

from runtime_support import Checks, rows, statements

SCHEMA = statements("CREATE TABLE t (id INTEGER PRIMARY KEY, at TEXT, n INTEGER)")


def test_a_string_of_several_statements_is_split_but_not_inside_texts(sandbox: Checks) -> None:
    data = statements(
        "INSERT INTO t VALUES (1, 'a; b', 1); INSERT INTO t VALUES (2, 'it''s; so', 2); -- the end;", "/* nothing; */"
    )
    reply = sandbox.load(SCHEMA, data)
    assert reply.statements_total == {"schema": 1, "data": 2}
    assert rows(base64.b64decode(reply.db), "SELECT id, at FROM t") == [(1, "a; b"), (2, "it's; so")]


def test_a_trigger_is_one_statement(sandbox: Checks) -> None:
    trigger = "CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET n = 9 WHERE id = new.id; END;"
    reply = sandbox.load([*SCHEMA, *statements(trigger)], statements("INSERT INTO t VALUES (1, 'x', 1)"))
    assert reply.schema_sql == [SCHEMA[0].sql, trigger.rstrip(";")]
    assert rows(base64.b64decode(reply.db), "SELECT n FROM t") == [(9,)]


def test_a_failing_statement_is_reported_by_table_index_and_reason_and_the_rest_goes_on(sandbox: Checks) -> None:
    schema = statements("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT CHECK (state IN ('open', 'done')))", table="jobs")
    data = statements("INSERT INTO jobs VALUES (1, 'open')", "INSERT INTO jobs VALUES (2, 'waiting')", table="jobs")
    (failure,) = sandbox.load(schema, data).failures
    assert (failure.phase, failure.table, failure.index) == ("data", "jobs", 1)
    assert failure.error.startswith("CHECK constraint failed")


def test_foreign_keys_hold_while_seeding_even_after_a_statement_switched_them_off(sandbox: Checks) -> None:
    schema = statements("CREATE TABLE p (id INTEGER PRIMARY KEY)", "CREATE TABLE c (p REFERENCES p(id))")
    reply = sandbox.load(schema, statements("PRAGMA foreign_keys = OFF", "INSERT INTO c VALUES (7)"))
    assert [failure.error for failure in reply.failures] == ["FOREIGN KEY constraint failed"]


def test_rows_that_ask_for_the_time_or_chance_become_literals_of_the_world_time(sandbox: Checks) -> None:
    data = statements(
        "INSERT INTO t VALUES (1, datetime('now', '-30 days'), 1)",
        "INSERT INTO t VALUES (2, '2020-01-01', abs(random()) % 1000)",
        "INSERT INTO t VALUES (3, date('2020-01-01', '+1 day'), 3)",
    )
    reply = sandbox.load(SCHEMA, data)
    assert [(moving.index, moving.source) for moving in reply.moving] == [(0, "clock"), (1, "random")]
    assert reply.seed_sql[0] == """INSERT INTO "t" ("id", "at", "n") VALUES (1, '2025-12-02 00:00:00', 1)"""
    assert "random" not in reply.seed_sql[1]
    assert reply.seed_sql[2] == data[2].sql


def test_defaults_that_ask_for_the_time_are_moving_too(sandbox: Checks) -> None:
    schema = statements("CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME DEFAULT CURRENT_TIMESTAMP)")
    reply = sandbox.load(schema, statements("INSERT INTO t (id) VALUES (5)"))
    assert reply.seed_sql == ["""INSERT INTO "t" ("id", "at") VALUES (5, '2026-01-01 00:00:00')"""]


def test_a_moving_statement_that_is_more_than_an_insert_keeps_its_text(sandbox: Checks) -> None:
    text = "UPDATE t SET at = datetime('now')"
    reply = sandbox.load(SCHEMA, statements("INSERT INTO t VALUES (1, 'x', 1)", text))
    assert reply.seed_sql[1] == text
    assert rows(base64.b64decode(reply.db), "SELECT at FROM t") == [("2026-01-01 00:00:00",)]


def test_the_literals_make_the_same_database_at_any_world_time(sandbox: Checks) -> None:
    data = statements("INSERT INTO t SELECT 1, datetime('now'), abs(random()) UNION SELECT 2, date('now'), 5")
    first = sandbox.load(SCHEMA, data)
    again = sandbox.load(SCHEMA, statements(*first.seed_sql), world_time="2031-05-05T05:05:05Z")
    assert first.dump_sha256 == again.dump_sha256


def test_the_file_is_byte_identical_for_the_same_input_and_differs_for_another_time(sandbox: Checks) -> None:
    data = statements("INSERT INTO t VALUES (1, datetime('now'), random())", "DELETE FROM t WHERE id = 7")
    first, second = sandbox.load(SCHEMA, data), sandbox.load(SCHEMA, data)
    later = sandbox.load(SCHEMA, data, world_time="2026-02-01T00:00:00Z")
    assert first.db == second.db
    assert first.db != later.db
    assert first.dump_sha256 != later.dump_sha256


def test_the_dump_tells_values_of_different_types_apart(sandbox: Checks) -> None:
    schema = statements("CREATE TABLE t (v)")
    digests = {
        sandbox.load(schema, statements(f"INSERT INTO t VALUES ({value})")).dump_sha256 for value in ("1", "1.0", "'1'", "x'31'")
    }
    assert len(digests) == 4


def test_dangling_rows_and_tables_are_reported(sandbox: Checks) -> None:
    schema = statements(
        "CREATE TABLE p (id INTEGER PRIMARY KEY)", "CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p(id))"
    )
    data = statements("PRAGMA foreign_keys = OFF; INSERT INTO p VALUES (1); INSERT INTO c VALUES (1, 1)")
    reply = sandbox.load(schema, data)
    assert reply.dangling == []
    assert [(table.name, table.rows) for table in reply.tables] == [("c", 1), ("p", 1)]
    assert reply.integrity == []


def test_no_statement_reaches_another_file(sandbox: Checks) -> None:
    reply = sandbox.load(
        SCHEMA, statements("ATTACH DATABASE '/tmp/attached-by-a-seed.db' AS other", "VACUUM INTO '/tmp/vacuumed.db'")
    )
    assert [failure.index for failure in reply.failures] == [0, 1]


def test_an_endless_statement_ends_with_its_check_and_not_the_process(sandbox: Checks) -> None:
    endless = "INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n, '', n FROM c WHERE n < 0"
    request = {
        "op": "load",
        "world_time": "2026-01-01T00:00:00Z",
        "statements_schema": SCHEMA,
        "statements_data": statements(endless),
    }
    assert sandbox.failed(request, time_limit=1).reason == "timeout"
    assert sandbox.load(SCHEMA, []).failures == []
