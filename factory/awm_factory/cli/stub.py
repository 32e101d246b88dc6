"""The command that serves answers that cost nothing, for rehearsals."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from awm_factory.errors import UsageError

if TYPE_CHECKING:
    from awm_factory.llm.protocol import Model

folder = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("stub-llm", short_help="Serve answers that cost nothing as an OpenAI-compatible API.")
@click.option("--recordings", type=folder, help="Folder of recordings to answer from.")
@click.option("--answers", type=folder, help="Folder of hand-written answers, one folder an environment.")
@click.option("--agent", metavar="NAME", help="Play episodes as this scripted agent: random, greedy, chaining or search.")
@click.option("--port", type=click.IntRange(1, 65535), default=9700, show_default=True, help="Port on loopback.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of faults and latencies.")
@click.option(
    "--faults", default="", metavar="NAME=SHARE,…", help="Share of requests that each fault hits: rate_limit=0.1,bad_sql=0.2."
)
@click.option("--latency", type=click.FloatRange(0), default=0.0, metavar="SECONDS", help="Median time an answer takes.")
def stub_llm(
    recordings: Path | None, answers: Path | None, agent: str | None, port: int, seed: int, faults: str, latency: float
) -> None:
    """Speak the OpenAI API on loopback, so that a run can be rehearsed for nothing.

    Without recordings and answers, the offline author answers about the scenarios of the domain packs (docs/offline-author.md).
    """
    from awm_factory.llm.offline.model import OfflineModel
    from awm_factory.llm.recorded import RecordedModel, Recordings
    from awm_factory.llm.stub_faults import Faults, Latency
    from awm_factory.llm.stub_server import Stub, serve_stub
    from awm_factory.rollout.scripted import AgentModel
    from awm_factory.synthesis.scripted import ScriptedModel

    if sum(given is not None for given in (recordings, answers, agent)) > 1:
        raise UsageError("name one of --recordings, --answers and --agent, or none")
    model: Model = OfflineModel()
    if answers is not None:
        model = ScriptedModel(answers)
    elif recordings is not None:
        model = RecordedModel(Recordings(recordings))
    elif agent is not None:
        model = AgentModel(agent, seed)
    click.echo(f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1", err=True)
    serve_stub(Stub(model, seed=seed, faults=Faults.parse(faults), latency=Latency(median=latency)), port=port)
