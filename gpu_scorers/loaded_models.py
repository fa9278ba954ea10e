"""The models of one worker: each found, checked and loaded once, however many scorers share it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from gpu_scorers.batches import BatchPolicy
from gpu_scorers.devices import Device
from gpu_scorers.model_files import ModelFiles, ModelSource, find_model
from gpu_scorers.sequence_classifier import SequenceClassifier
from gpu_scorers.text_encoder import TextEncoder

Model = TypeVar("Model", TextEncoder, SequenceClassifier)


@dataclass
class LoadedModels:
    """What `encoder` and `classifier` loaded so far, all on `device`. Both raise ModelError."""

    device: Device
    policy: BatchPolicy = field(default_factory=BatchPolicy)
    encoders: dict[ModelSource, TextEncoder] = field(default_factory=dict)
    classifiers: dict[ModelSource, SequenceClassifier] = field(default_factory=dict)

    def encoder(self, source: ModelSource) -> TextEncoder:
        """Return the sentence-embedding model from `source`."""
        return self._once(self.encoders, source, TextEncoder.load)

    def classifier(self, source: ModelSource) -> SequenceClassifier:
        """Return the sequence classifier from `source`."""
        return self._once(self.classifiers, source, SequenceClassifier.load)

    def _once(
        self,
        loaded: dict[ModelSource, Model],
        source: ModelSource,
        load: Callable[[ModelFiles, Device, BatchPolicy], Model],
    ) -> Model:
        if source not in loaded:
            loaded[source] = load(find_model(source), self.device, self.policy)
        return loaded[source]
