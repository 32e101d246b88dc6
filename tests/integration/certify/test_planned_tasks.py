"""Tasks of the offline author before the real gates: the app is executed, verifiers are tried by near misses and equivalents."""

from awm_factory.certify import Options, certify
from awm_factory.llm.offline.author import Author
from awm_factory.sandbox import ProcessSandbox
from offline_support import bundle_of


def test_every_planned_task_is_proved() -> None:
    author = Author("bistro_reservations", seed=2, count=10)
    with ProcessSandbox(2) as sandbox:
        certificate = certify(bundle_of(author), sandbox, Options(calls=80, mutants=10, solvable_runs=2)).certificate
    assert [problem.what for problem in certificate.problems if problem.severity == "error"] == []
    assert certificate.shipped_tasks == list(range(10))
    for tried, right in (("near_misses", "killed"), ("equivalents", "accepted"), ("alternatives", "alternatives_accepted")):
        counts = certificate.counts(tried, right)
        assert counts[0] == counts[1] > 0, (tried, counts)


def test_an_app_that_breaks_an_invariant_is_caught_by_certification() -> None:
    """The state is set and the time of it is not: by every other rule of the gate the app is sound."""
    bundle = bundle_of(Author("bistro_reservations", seed=2, count=1))
    line = "    reservation.cancelled_at = now()\n"
    assert line in bundle.app_code
    options = Options(calls=60, mutants=0, solvable_runs=1, gates=("behaviour",))
    with ProcessSandbox(1) as sandbox:
        certified = certify(bundle.with_(app_code=bundle.app_code.replace(line, "")), sandbox, options)
    told = [problem.what for problem in certified.certificate.problems if problem.severity == "error"]
    assert [what.partition(".")[0] for what in told] == [
        "invariant: afterwards it no longer holds that in reservations, only what is cancelled has a time of it"
    ]
