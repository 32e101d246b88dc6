"""An embedder that needs neither endpoint nor download: the static word vectors that the package wordllama carries.

Only its two data files are used. Its own loader goes to the network for a tokenizer that lies beside it, and newer versions have
no wheels for every platform, while these files, with `tokenizers` and `safetensors`, are read everywhere.
"""

import importlib.util
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from awm_factory.errors import ConfigError
from awm_factory.llm.protocol import EmbeddingReply, EmbeddingRequest
from awm_factory.synthesis.scenarios.space import Matrix, Thresholds, unit

NAME: Final = "wordllama-l2-supercat-256"
CALIBRATED: Final = Thresholds(refuse_above=0.60, crowded_above=0.46)
"""66 of 68 written paraphrases lie above the first and all above the second; none of 104 neighbours in a category does."""


class LocalEmbedder:
    @property
    def name(self) -> str:
        return NAME

    @cached_property
    def _words(self) -> tuple[Tokenizer, Matrix]:
        spec = importlib.util.find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ConfigError("the package wordllama is missing from this installation; install awm-factory again")
        folder = Path(spec.origin).parent
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        tokenizer.no_padding()
        vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        return tokenizer, vectors.astype(np.float32)

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        return EmbeddingReply(model=NAME, vectors=tuple(tuple(map(float, self.vector(text))) for text in request.texts))

    def vector(self, text: str) -> Matrix:
        """Mean of the words' vectors, of length 1."""
        tokenizer, vectors = self._words
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return unit(vectors[ids].mean(axis=0)) if ids else np.zeros(vectors.shape[1], dtype=np.float32)
