"""Whether what a signal follows is said by anyone: a signal on a misspelt feature would never say a word."""

from collections.abc import Sequence
from typing import Any

from jobs.yaml_fields import Place, nearest
from udfs.judging.window_judge import WindowJudge


def check_followed(place: Place, signals: Sequence[Any], judges: Sequence[WindowJudge], n_labels: int) -> None:
    """Refuse a signal whose `feature` no judge of its monitor speaks of. Raises ConfigurationError.

    The judges are asked by a window of one null. Where one of them says nothing to that, it may speak of anything, and
    nothing is refused; nor is what another signal says, as `baseline_drop(FIELD)`.
    """
    said = [_features_of(judge, n_labels) for judge in judges]
    if not said or not all(said):
        return
    known = sorted({feature for features in said for feature in features})
    signal_names = tuple(f"{body['signal']}(" for body in signals if isinstance(body, dict) and "signal" in body)
    for number, body in enumerate(signals):
        feature = body.get("feature") if isinstance(body, dict) else None
        if isinstance(feature, str) and feature not in known and not feature.startswith(signal_names):
            remedy = f"{nearest(feature, known)}. A mean, a rate or a quantile needs a test limit of its own"
            place.field(f"signals[{number}].feature").refuse(f"no verdict here speaks of {feature}", remedy)


def _features_of(judge: WindowJudge, n_labels: int) -> set[str]:
    sketch = judge.sketch(*([None] for _ in judge.inputs))
    return {verdict.feature for verdict in judge.judge([""] * n_labels, 0, [sketch])}
