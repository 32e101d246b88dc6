"""How different the environments of a set are: what they are about, their data, their tools, and what solving them takes."""

from awm_factory.diversity.features import Features, features
from awm_factory.diversity.measure import STEPS, Diversity, NearDuplicate, Novelty, measure

__all__ = ["STEPS", "Diversity", "Features", "NearDuplicate", "Novelty", "features", "measure"]
