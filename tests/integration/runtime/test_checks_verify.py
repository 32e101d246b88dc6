import pytest

from runtime_support import Checks

HEAD = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    import os, sqlite3\n"


@pytest.mark.parametrize(("word", "reward"), [("complete", 1.0), ("others", 0.0)])
def test_the_two_words_are_rewards(sandbox: Checks, word: str, reward: float) -> None:
    verdict = sandbox.verify(HEAD + f"    return {{'result': '{word}'}}")
    assert (verdict.classification, verdict.reward, verdict.error) == (word, reward, None)


@pytest.mark.parametrize(
    "value", ["None", "True", "{'result': 'Complete'}", "{'result': float('nan')}", "{}", "'complete'", "1.0"]
)
def test_anything_else_is_an_error_and_never_zero(sandbox: Checks, value: str) -> None:
    verdict = sandbox.verify(HEAD + f"    return {value}")
    assert (verdict.classification, verdict.reward) == (None, None)
    assert verdict.error.startswith("invalid verdict: it returned")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("    return {'result': None.strip()}", "AttributeError"),
        ("    while True: pass", "5 s"),
        ("    return {'result': 'complete', 'pad': 'x' * 10**9}", "memory"),
        ("    os._exit(0)", "no verdict"),
        ("    os.chmod(final_db_path, 0o666)", "PermissionError"),
        ("    open('/tmp/written-by-a-verifier', 'w')", "PermissionError"),
        ("    sqlite3.connect(final_db_path).execute('DELETE FROM loans')", "readonly"),
        ("    sqlite3.connect(final_db_path).execute(\"ATTACH '/tmp/attached-by-a-verifier' AS x\")", "unable to open"),
        ("    import subprocess; subprocess.run(['true'])", "PermissionError"),
        ("    import socket; socket.create_connection(('192.0.2.1', 9), 1)", "PermissionError"),
        ("    os.kill(os.getppid(), 9)", "PermissionError"),
        ("    return {'result': open('/etc/passwd').read()}", "PermissionError"),
        ("    raise SystemExit('done')", "SystemExit"),
    ],
)
def test_a_verifier_that_fails_or_reaches_out_is_an_error(sandbox: Checks, body: str, says: str) -> None:
    verdict = sandbox.verify(HEAD + body)
    assert verdict.reward is None
    assert says in verdict.error


def test_a_verifier_sees_no_variables_of_ours(sandbox: Checks) -> None:
    assert (
        sandbox.verify(
            HEAD + "    return {'result': 'complete' if not set(os.environ) - {'TZ', 'LC_CTYPE'} else 'others'}"
        ).reward
        == 1.0
    )


def test_a_verifier_shares_the_world_time(sandbox: Checks) -> None:
    body = (
        "    from datetime import date\n    now = sqlite3.connect(final_db_path).execute(\"SELECT date('now')\").fetchone()[0]\n"
    )
    body += "    return {'result': 'complete' if now == str(date.today()) == '2026-01-01' else 'others'}"
    assert sandbox.verify(HEAD + body).reward == 1.0


def test_sql_mode_gives_evidence_and_no_reward(sandbox: Checks) -> None:
    code = "def verify_task(initial_db_path, final_db_path):\n    return {'rows': [1, None]}"
    verdict = sandbox.verify(code, mode="sql")
    assert (verdict.evidence, verdict.reward, verdict.error) == ({"rows": [1, None]}, None, None)
    assert "not JSON" in sandbox.verify(code.replace("[1, None]", "{1}"), mode="sql").error


def test_verifiers_are_told_apart_by_their_function(sandbox: Checks) -> None:
    assert "no function verify_task" in sandbox.verify(HEAD + "    return {}", mode="sql").error


def test_code_that_does_not_parse_is_an_error(sandbox: Checks) -> None:
    assert "SyntaxError" in sandbox.verify("def verify_task_completion(:").error


def test_a_request_that_is_none_is_answered_and_the_process_goes_on(sandbox: Checks) -> None:
    assert sandbox.process.stdin is not None
    assert sandbox.process.stdout is not None
    sandbox.process.stdin.write(b'{"id": 77, "what": 1}\nno json\n')
    sandbox.process.stdin.flush()
    answers = [sandbox.process.stdout.readline() for _ in range(2)]
    assert b'"id":77' in answers[0]
    assert b"bad_request" in answers[0]
    assert b'"id":-1' in answers[1]
    assert sandbox.verify(HEAD + "    return {'result': 'others'}").reward == 0.0
