"""Factuality: is the response consistent with its prompt, by a cross-encoder for natural language inference.

Premise: prompt and response. Hypothesis: "The response is factually consistent with the prompt." The score is the
probability of entailment; above `entailment_above` its label is `consistent`, else `inconsistent`.

This is a judge: it says what a model believes. An SLI counts it only with a validation report (docs/scorers.md).

A long prompt must not push the response out of the model's sight, so both share what it can read: the response keeps
half, and more where the prompt leaves it; each is read from its beginning.

Sources: spec M1; Honovich et al., "TRUE: Re-evaluating factual consistency evaluation", NAACL 2022 (NLI as a judge of
consistency).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_scorers.scorer import Request, Score, unscored
from gpu_scorers.sequence_classifier import Classified, SequenceClassifier
from gpu_scorers.texts import Tokens, tokenize
from schemas.judge_report import JudgeReport
from schemas.status import Status

NAME = "factuality"


@dataclass(frozen=True, slots=True)
class FactualityPolicy:
    """All of it: spec M1."""

    hypothesis: str = "The response is factually consistent with the prompt."
    max_tokens: int = 512
    entailment_above: float = 0.85
    entailment_label: str = "entailment"


class Factuality:
    """The scorer. Raises ModelError where the model's config doesn't say which label is entailment."""

    def __init__(
        self,
        classifier: SequenceClassifier,
        policy: FactualityPolicy | None = None,
        *,
        name: str = NAME,
        judge: JudgeReport | None = None,
    ) -> None:
        """Find the label of entailment, and what is left for the premise once the hypothesis is there."""
        self.classifier, self.policy, self.name, self.judge = classifier, policy or FactualityPolicy(), name, judge
        self.version = "1"
        self._entailment = classifier.position_of(self.policy.entailment_label)
        self._max_tokens = min(self.policy.max_tokens, classifier.max_tokens)
        with_nothing = classifier.tokenizer("\n", self.policy.hypothesis, verbose=False)["input_ids"]
        self._room = self._max_tokens - len(with_nothing)
        if self._room < 2:
            raise ValueError(f"{self._max_tokens} tokens leave no room for a premise beside the hypothesis")

    @property
    def model_digest(self) -> str:
        """That of the cross-encoder."""
        return self.classifier.files.digest

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request: the probability of entailment."""
        found: list[list[Score]] = [[] for _ in batch]
        prompts = tokenize(self.classifier.tokenizer, [r.prompt or "" for r in batch], self._room)
        responses = tokenize(self.classifier.tokenizer, [r.response or "" for r in batch], self._room)
        premises: dict[int, tuple[Tokens, Tokens]] = {}
        for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
            if (fault := _fault(prompt, response)) is not None:
                found[i] = [fault]
            else:
                premises[i] = shared(prompt, response, self._room)
        pairs = [(f"{prompt.text}\n{response.text}", self.policy.hypothesis) for prompt, response in premises.values()]
        judged = self.classifier.classify(pairs, self._max_tokens)
        for (i, (prompt, response)), answer in zip(premises.items(), judged, strict=True):
            found[i] = [self._score(prompt, response, answer)]
        return found

    def _score(self, prompt: Tokens, response: Tokens, answer: Classified) -> Score:
        if answer.probabilities is None:
            return unscored(NAME, Status.INVALID, "the model's figures overflow")
        entailment = answer.probabilities[self._entailment]
        label = "consistent" if entailment > self.policy.entailment_above else "inconsistent"
        fallback = answer.fallback.evidence() if answer.fallback else {}
        evidence = {**prompt.truncation("prompt_"), **response.truncation("response_"), **fallback}
        return Score(NAME, entailment, label=label, truncated=prompt.truncated or response.truncated, evidence=evidence)


def shared(prompt: Tokens, response: Tokens, room: int) -> tuple[Tokens, Tokens]:
    """Return of both what `room` tokens hold: the response half of it, and more where the prompt leaves it."""
    for_response = max(room // 2, room - prompt.n_tokens)
    response = response.first(for_response)
    return prompt.first(room - response.n_tokens), response


def _fault(prompt: Tokens, response: Tokens) -> Score | None:
    for side, tokens in (("prompt", prompt), ("response", response)):
        if not tokens.n_tokens:
            return unscored(NAME, Status.NO_DATA, f"no {side}")
        if not tokens.is_readable:
            return unscored(NAME, Status.INVALID, f"{side}: no token that the model knows")
    return None
