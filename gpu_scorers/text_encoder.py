"""A sentence-transformers model: texts in, embeddings out, with what it did not read said beside them.

The embeddings are those of `SentenceTransformer.encode` (compared in `tests/unit/test_embedding_scorers.py`). The
loop around the model is ours: encode neither says what it cut off nor survives a device without memory.
"""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_scorers.batches import BatchPolicy, Fallback, batches_by_length, run_batch
from gpu_scorers.devices import CPU, Device
from gpu_scorers.model_files import ModelError, ModelFiles
from gpu_scorers.offline import stay_offline
from gpu_scorers.texts import Tokens, tokenize

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """The embedding of one text, float32 of shape (dimension,), or None and the `reason`."""

    vector: NDArray[np.float32] | None
    tokens: Tokens
    fallback: Fallback | None = None
    reason: str = ""

    def evidence(self, prefix: str = "") -> dict[str, str | int]:
        """What a score made of it says: what was left out, and what memory made necessary."""
        return {**self.tokens.truncation(prefix), **(self.fallback.evidence() if self.fallback else {})}


@dataclass(eq=False)
class TextEncoder:
    """A loaded model. `encode` isn't thread-safe; each worker process loads its own."""

    files: ModelFiles
    device: Device
    model: Any
    policy: BatchPolicy = field(default_factory=BatchPolicy)
    _on_cpu: Any = None

    @classmethod
    def load(cls, files: ModelFiles, device: Device = CPU, policy: BatchPolicy | None = None) -> "TextEncoder":
        """Load the model from its files, without the network. Raises ModelError where it is no such model."""
        stay_offline()
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            model = SentenceTransformer(str(files.folder), device=device.name, local_files_only=True).eval()
            if not getattr(model.tokenizer, "is_fast", False):
                raise ValueError("its tokenizer is not of the fast kind, which tells positions in the text")
        except Exception as error:  # whatever a wrong folder makes of the libraries' code
            problem = f"{files.folder} can't be loaded as a sentence-transformers model ({error})"
            raise ModelError(files.source.name, problem, "Name a sentence-embedding model") from error
        log.info("model %s (%s, %s) is on %s", files.source.name, files.source.origin, files.digest, device.name)
        return cls(files, device, model, policy or BatchPolicy())

    @property
    def dimension(self) -> int:
        """The length of its embeddings."""
        return int(self.model.get_embedding_dimension())

    @property
    def n_parameters(self) -> int:
        """How many weights it has."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def max_tokens(self) -> int:
        """How many tokens it reads of a text, without the special ones around them."""
        tokenizer = self.model.tokenizer
        longest = self.model.max_seq_length or tokenizer.model_max_length
        return int(longest) - int(tokenizer.num_special_tokens_to_add())

    def encode(self, texts: Sequence[str]) -> list[Embedding]:
        """Return the embedding of each text, in order; each distinct text is embedded once.

        None, with the reason, for a text without a token the model knows, and where the model's figures overflow.
        """
        distinct = list(dict.fromkeys(texts))
        tokens = tokenize(self.model.tokenizer, distinct, self.max_tokens)
        found = {text: _unreadable(part) for text, part in zip(distinct, tokens, strict=True)}
        readable = [i for i, part in enumerate(tokens) if part.is_readable]
        lengths = [tokens[i].n_tokens for i in readable]
        for batch in batches_by_length(lengths, self.policy):
            positions = [readable[i] for i in batch]

            def forward(some: list[int], device: str) -> list[NDArray[np.float32]]:
                return list(self._forward([tokens[i].text for i in some], device))

            for i, vector, fallback in run_batch(positions, self.device, forward):
                found[distinct[i]] = _embedding(vector, tokens[i], fallback)
        return [found[text] for text in texts]

    @torch.inference_mode()
    def _forward(self, texts: list[str], device: str) -> NDArray[np.float32]:
        features = self.model.preprocess(texts)
        moved = {name: part.to(device) if torch.is_tensor(part) else part for name, part in features.items()}
        with self.device.autocast(device):
            embedded = self._model_on(device)(moved)["sentence_embedding"]
        return np.asarray(embedded.float().cpu().numpy())

    def _model_on(self, device: str) -> Any:
        if device == self.device.name:
            return self.model
        if self._on_cpu is None:
            self._on_cpu = copy.deepcopy(self.model).to(device)
        return self._on_cpu


def _unreadable(tokens: Tokens) -> Embedding:
    return Embedding(None, tokens, reason="no token" if not tokens.n_tokens else "no token that the model knows")


def _embedding(vector: NDArray[np.float32], tokens: Tokens, fallback: Fallback | None) -> Embedding:
    if not np.isfinite(vector).all():
        return Embedding(None, tokens, fallback, "the model's figures overflow")
    return Embedding(vector, tokens, fallback)
