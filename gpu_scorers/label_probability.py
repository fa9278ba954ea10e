"""The score that a classifier gives one text: the highest probability among some of its labels."""

from collections.abc import Sequence

from gpu_scorers.scorer import Score, unscored
from gpu_scorers.sequence_classifier import Classified, SequenceClassifier
from gpu_scorers.texts import Tokens, tokenize
from schemas.status import Status


def label_probabilities(
    classifier: SequenceClassifier, texts: Sequence[str], name: str, positions: Sequence[int]
) -> list[Score]:
    """Return for each text a score called `name`: the highest probability among the labels at `positions`.

    Its label is that one's. A text is read from its beginning, as far as the model takes it; one without a token that
    the model knows has no score.
    """
    room = classifier.max_tokens - int(classifier.tokenizer.num_special_tokens_to_add())
    tokens = tokenize(classifier.tokenizer, texts, room)
    readable = [i for i, part in enumerate(tokens) if part.is_readable]
    answers = dict(zip(readable, classifier.classify([tokens[i].text for i in readable]), strict=True))
    return [_score(classifier, name, positions, part, answers.get(i)) for i, part in enumerate(tokens)]


def _score(
    classifier: SequenceClassifier, name: str, positions: Sequence[int], tokens: Tokens, answer: Classified | None
) -> Score:
    if not tokens.n_tokens:
        return unscored(name, Status.NO_DATA, "no response")
    if answer is None:
        return unscored(name, Status.INVALID, "no token that the model knows")
    if (found := answer.probabilities) is None:
        return unscored(name, Status.INVALID, "the model's figures overflow")
    highest = max(positions, key=found.__getitem__)
    evidence = {**tokens.truncation(), **(answer.fallback.evidence() if answer.fallback else {})}
    label = classifier.labels[highest]
    return Score(name, found[highest], label=label, truncated=tokens.truncated, evidence=evidence)
