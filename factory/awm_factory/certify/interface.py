"""Gate *interface*: the app starts, every endpoint is a tool that can be reached, and the tools are those of the spec.

Example: `GET /plots/vacant` declared after `GET /plots/{plot_id}` is listed as a tool and always answered by the other.
"""

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, could_not_run, severity
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import AppReply, CheckFailed, Finding

NAME = "interface"
VERSION = 1

_FATAL = {"import_error", "no_app", "no_tools"}


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    app = evidence.app
    if app is None:
        return []
    if isinstance(app, CheckFailed):
        return [could_not_run(NAME, "Starting the app and listing its tools", app)]
    problems = [
        _problem(bundle, finding) for finding in app.findings if finding.kind != "unknown_column"
    ]  # gate schema tells those
    if not app.tools and not any(problem.severity == "error" for problem in problems):
        problems.append(
            Problem(
                gate=NAME,
                severity="error",
                where="app.py",
                what="The app offers no tool that can be served.",
                fix="Declare endpoints with an operation_id on the FastAPI object.",
            )
        )
    return problems + _against_spec(bundle, app)


def _problem(bundle: Bundle, finding: Finding) -> Problem:
    strictness: Severity = "error" if finding.kind in _FATAL else severity(bundle.manifest.origin)
    return Problem(
        gate=NAME, severity="warning" if finding.mended else strictness, where=finding.where, what=finding.what, fix=finding.fix
    )


def _against_spec(bundle: Bundle, app: AppReply) -> list[Problem]:
    if not app.tools or bundle.api_spec is None:
        return []
    specified = set(spec_operations(bundle.api_spec))
    omitted = {finding.omitted for finding in app.findings if finding.omitted}
    served = {tool.operation_id for tool in app.tools}
    strictness = severity(bundle.manifest.origin)
    missing = [
        Problem(
            gate=NAME,
            severity=strictness,
            where=f"tool {name}",
            what="The API spec names it, the app does not serve it.",
            fix="Add the endpoint, with this operation_id.",
        )
        for name in sorted(specified - served - omitted)
    ]
    extra = [
        Problem(
            gate=NAME,
            severity=strictness,
            where=f"tool {name}",
            what="The app serves it, the API spec does not name it.",
            fix="Add it to the spec, or remove the endpoint.",
        )
        for name in sorted(served - specified)
    ]
    return missing + extra


def spec_operations(api_spec: object) -> list[str]:
    """Operation ids of an API spec in AWM's form; what is malformed in it names nothing."""
    groups = api_spec.get("api_groups", []) if isinstance(api_spec, dict) else []
    endpoints = [e for group in groups if isinstance(group, dict) for e in group.get("endpoints") or [] if isinstance(e, dict)]
    return [str(endpoint["operation_id"]) for endpoint in endpoints if endpoint.get("operation_id")]
