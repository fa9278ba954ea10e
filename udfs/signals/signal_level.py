"""How far a verdict goes towards its own limit, and past it: every signal on one scale from 0 to 1 (spec D5).

    ratio = distance gone / distance to the limit       1 at the limit, more beyond it, at least 0
    level = min(1, ratio / full_at)                     with full_at = 2: 0.5 at the limit, 1 at twice the limit

What the distance is:

- a p-value held against alpha: log10 p / log10 alpha. A quiet window has p uniform, so 1 - p would be a half on
  average and above 0.9 in a tenth of quiet windows; this ratio is 0.22 on average at alpha 0.01, and above 0.5 in a
  tenth. Where the effect is held against a minimum too, the smaller ratio counts, as both must be crossed;
- a statistic that must not rise above a threshold (a D with a budgeted limit): statistic / threshold;
- a statistic that fell from what it used to be, as in decay and feedback: effect / (what it used to be - threshold).
"""

import math

from schemas.status import Status
from schemas.verdicts import Verdict


def limit_ratio(verdict: Verdict, *, usual: str | None = None) -> float | None:
    """Return how much of the way to its limit a verdict has gone, at least 0; None where it was not judged.

    `usual` names the evidence of what the statistic used to be, for one that must not fall. None also where the verdict
    has no limit that this can be told of. O(1).
    """
    if verdict.status != Status.OK:
        return None
    if usual is not None:
        return _of_drop(verdict, verdict.evidence.get(usual))
    if verdict.log10_p_value is not None and verdict.alpha is not None and 0 < verdict.alpha < 1:
        return _of_p_value(verdict, verdict.log10_p_value / math.log10(verdict.alpha))
    return _share(verdict.statistic, verdict.threshold)


def level(ratio: float, *, full_at: float) -> float:
    """Return a ratio as a level from 0 to 1; `full_at`, above 0, is the ratio that is 1.

    >>> level(1.0, full_at=2.0), level(5.0, full_at=2.0)
    (0.5, 1.0)
    """
    return min(1.0, ratio / full_at)


def _of_p_value(verdict: Verdict, ratio: float) -> float | None:
    if not verdict.min_effect:
        return max(0.0, ratio)
    by_effect = _share(verdict.effect, verdict.min_effect)
    return None if by_effect is None else max(0.0, min(ratio, by_effect))


def _of_drop(verdict: Verdict, usual: object) -> float | None:
    if isinstance(usual, bool) or not isinstance(usual, int | float) or verdict.threshold is None:
        return None
    return _share(verdict.effect, usual - verdict.threshold)


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or whole is None or not whole > 0:
        return None
    return max(0.0, part / whole)
