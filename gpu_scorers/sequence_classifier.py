"""A text or pair classifier of transformers (cross-encoders are): texts in, a probability for each label out.

Which position means which label is read from `id2label` in the model's config. Models differ: of two NLI models one has
(contradiction, entailment, neutral) and the other (entailment, neutral, contradiction).
"""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_scorers.batches import BatchPolicy, Fallback, batches_by_length, run_batch
from gpu_scorers.devices import CPU, Device
from gpu_scorers.model_files import ModelError, ModelFiles
from gpu_scorers.offline import stay_offline

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Classified:
    """A probability for each label, in the model's order; None where the model's figures overflow."""

    probabilities: tuple[float, ...] | None
    fallback: Fallback | None = None


@dataclass(eq=False)
class SequenceClassifier:
    """A loaded model. Not thread-safe; each worker process loads its own."""

    files: ModelFiles
    device: Device
    tokenizer: Any
    model: Any
    policy: BatchPolicy = field(default_factory=BatchPolicy)
    _on_cpu: Any = None

    @classmethod
    def load(cls, files: ModelFiles, device: Device = CPU, policy: BatchPolicy | None = None) -> "SequenceClassifier":
        """Load the model from its files, without the network. Raises ModelError where it is no such model.

        A model without a trained head is refused: transformers would make one up of random numbers.
        """
        stay_offline()
        from transformers import AutoModelForSequenceClassification, AutoTokenizer
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # type: ignore[no-untyped-call]
        try:
            tokenizer = AutoTokenizer.from_pretrained(files.folder, local_files_only=True)
            model, report = AutoModelForSequenceClassification.from_pretrained(
                files.folder, local_files_only=True, output_loading_info=True, dtype=torch.float32
            )
            if not tokenizer.is_fast:
                raise ValueError("its tokenizer is not of the fast kind, which tells positions in the text")
        except Exception as error:  # whatever a wrong folder makes of the libraries' code
            problem = f"{files.folder} can't be loaded as a sequence classifier ({error})"
            raise ModelError(files.source.name, problem, "Name a model for sequence classification") from error
        if missing := sorted(report["missing_keys"]):
            problem = f"its files lack the weights {', '.join(missing[:3])}: it was not trained to classify"
            raise ModelError(files.source.name, problem, "Name a model that was trained for sequence classification")
        log.info("model %s (%s, %s) is on %s", files.source.name, files.source.origin, files.digest, device.name)
        return cls(files, device, tokenizer, model.eval().to(device.name), policy or BatchPolicy())

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels, by position."""
        names = self.model.config.id2label
        return tuple(str(names[position]) for position in range(self.model.config.num_labels))

    @property
    def is_multi_label(self) -> bool:
        """Whether several labels may hold at once: a sigmoid each, no softmax over all."""
        config = self.model.config
        return bool(config.num_labels == 1 or config.problem_type == "multi_label_classification")

    @property
    def n_parameters(self) -> int:
        """How many weights it has."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def max_tokens(self) -> int:
        """How many tokens it reads, special ones included."""
        positions = getattr(self.model.config, "max_position_embeddings", None) or self.tokenizer.model_max_length
        return int(min(positions, self.tokenizer.model_max_length))

    def position_of(self, label: str) -> int:
        """Return the position of a label, however it is cased. Raises ModelError where the config doesn't name it.

        A label that begins like another (`not_entailment`) is another.
        """
        for position, name in enumerate(self.labels):
            if name.casefold() == label.casefold():
                return position
        return self._no_label(label)

    def _no_label(self, label: str) -> NoReturn:
        problem = f"its config.json names the labels {', '.join(self.labels)} and none is {label}"
        remedy = "Write the names it was trained with into id2label of its config.json, or name another model"
        raise ModelError(self.files.source.name, problem, remedy)

    def classify(self, texts: Sequence[str | tuple[str, str]], max_tokens: int | None = None) -> list[Classified]:
        """Return the probabilities of each text, or pair of texts, in order.

        What is longer than `max_tokens` (or than the model takes) is cut at the end, of a pair that of the first: say
        so in the score, as this doesn't. Cut long texts before (`gpu_scorers.texts`), or splitting a megabyte costs a
        second.
        """
        limit = min(max_tokens or self.max_tokens, self.max_tokens)
        cut = [self._tokens(text, limit) for text in texts]
        found: list[Classified] = [Classified(None)] * len(texts)
        for batch in batches_by_length([len(row["input_ids"]) for row in cut], self.policy):

            def forward(some: list[int], device: str) -> list[NDArray[np.float32]]:
                return list(self._forward([cut[i] for i in some], device))

            for i, row, fallback in run_batch(batch, self.device, forward):
                usable = bool(np.isfinite(row).all())
                found[i] = Classified(tuple(map(float, row)) if usable else None, fallback)
        return found

    def _tokens(self, text: str | tuple[str, str], limit: int) -> dict[str, Any]:
        parts = (text,) if isinstance(text, str) else text
        cut_at = True if len(parts) == 1 else "only_first"
        return dict(self.tokenizer(*parts, truncation=cut_at, max_length=limit, verbose=False))

    @torch.inference_mode()
    def _forward(self, rows: list[dict[str, Any]], device: str) -> NDArray[np.float32]:
        padded = self.tokenizer.pad(rows, return_tensors="pt", verbose=False)
        moved = {name: tensor.to(device) for name, tensor in padded.items()}
        with self.device.autocast(device):
            logits = self._model_on(device)(**moved).logits
        logits = logits.float()
        probabilities = logits.sigmoid() if self.is_multi_label else logits.softmax(dim=1)
        return np.asarray(probabilities.cpu().numpy())

    def _model_on(self, device: str) -> Any:
        if device == self.device.name:
            return self.model
        if self._on_cpu is None:
            self._on_cpu = copy.deepcopy(self.model).to(device)
        return self._on_cpu
