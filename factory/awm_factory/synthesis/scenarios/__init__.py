"""Stage *scenario*: new applications by Self-Instruct, kept apart from each other in an embedding space."""

from awm_factory.synthesis.scenarios.catalogue import categories, read_scenarios, seeds
from awm_factory.synthesis.scenarios.local import LocalEmbedder
from awm_factory.synthesis.scenarios.self_instruct import Audit, SelfInstruct
from awm_factory.synthesis.scenarios.space import Thresholds

__all__ = ["Audit", "LocalEmbedder", "SelfInstruct", "Thresholds", "categories", "read_scenarios", "seeds"]
