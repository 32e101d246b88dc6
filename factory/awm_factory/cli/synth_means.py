"""What `synth` is carried out with, as the options say: who answers, who embeds, and where generated code runs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from awm_factory.build import open_sandbox
from awm_factory.config import Config, ModelConfig
from awm_factory.llm.connect import connect_embedder, connect_model
from awm_factory.llm.prices import Prices
from awm_factory.llm.protocol import Embedder, Model
from awm_factory.llm.recorded import RecordedModel, RecordingEmbedder, RecordingModel, Recordings
from awm_factory.sandbox import ProcessSandbox, Sandbox
from awm_factory.synthesis.scenarios import LocalEmbedder, Thresholds
from awm_factory.synthesis.scenarios.local import CALIBRATED
from awm_factory.synthesis.settings import Settings


def answering(
    models: ModelConfig, prices: Prices, options: Mapping[str, Any], chosen: Settings, own: Model | None
) -> tuple[Any, Any, Thresholds]:
    """Model, embedder, and the cosines that fit the embedder. `own`: a model that costs nothing, in place of an endpoint's."""
    if own is not None:
        return own, LocalEmbedder(), CALIBRATED
    embedder: Embedder | None = connect_embedder(models)
    thresholds = Thresholds() if embedder else CALIBRATED
    embedder = embedder or LocalEmbedder()
    given = chosen.scenarios
    thresholds = Thresholds(
        given.refuse_above if given.refuse_above is not None else thresholds.refuse_above,
        given.crowded_above if given.crowded_above is not None else thresholds.crowded_above,
    )
    if options["replay"]:
        replay = RecordedModel(Recordings(options["replay"]))
        return replay, embedder if isinstance(embedder, LocalEmbedder) else replay, thresholds
    model: Model = connect_model(models, prices, chosen.requests)
    if options["record"]:
        recordings = Recordings(options["record"])
        model = RecordingModel(model, recordings)
        embedder = embedder if isinstance(embedder, LocalEmbedder) else RecordingEmbedder(embedder, recordings)
    return model, embedder, thresholds


@contextmanager
def sandbox(config: Config, kind: str, say: Callable[[str], None]) -> Iterator[Sandbox]:
    """`kind`: `process`, or `auto` for a container of the base image."""
    if kind == "process":
        with ProcessSandbox(config.jobs) as process:
            yield process
        return
    with open_sandbox(config, say) as container:
        yield container
