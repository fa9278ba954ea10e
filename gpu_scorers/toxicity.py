"""Toxicity of a response, by a classifier that you give: the highest probability among its labels of toxicity.

There is no built-in model and no list of words: without a model there is no such scorer. Which of the model's labels
are toxic is configuration (`toxic_labels`); with several independent labels each has a sigmoid of its own, otherwise
they share a softmax, as the model's config says. It is a judge (docs/scorers.md).

Source: spec M5.
"""

from collections.abc import Sequence

from gpu_scorers.label_probability import label_probabilities
from gpu_scorers.scorer import Request, Score
from gpu_scorers.sequence_classifier import SequenceClassifier
from schemas.judge_report import JudgeReport

NAME = "toxicity"


class Toxicity:
    """The scorer. Raises ModelError where the model's config doesn't name one of `toxic_labels`."""

    def __init__(
        self,
        classifier: SequenceClassifier,
        toxic_labels: Sequence[str],
        *,
        name: str = NAME,
        judge: JudgeReport | None = None,
    ) -> None:
        """Look the labels up before the first request. Raises ValueError where none is given."""
        if not toxic_labels:
            raise ValueError("toxic_labels must name at least one label of the model")
        self.classifier, self.name, self.judge, self.version = classifier, name, judge, "1"
        self._positions = [classifier.position_of(label) for label in toxic_labels]

    @property
    def model_digest(self) -> str:
        """That of the classifier."""
        return self.classifier.files.digest

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request."""
        responses = [request.response or "" for request in batch]
        return [[score] for score in label_probabilities(self.classifier, responses, NAME, self._positions)]
