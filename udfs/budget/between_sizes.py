"""From simulations at a few sizes to the level at any: what budgets over bins, of distances and of pairs share."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from udfs.budget.onset_levels import OnsetLevels

UNKNOWN_ORDER = (
    "nothing is known of how successive values depend on each other, so they were taken as independent; "
    "autocorrelated ones alarm more often. Set autocorrelation, or build the reference in the order of time"
)


def level_between(
    answers: Sequence[OnsetLevels], ns: Sequence[int], rate: float, scale: Callable[[float], float], n: float
) -> tuple[float, float]:
    """Return level and relative error for `rate` at n; `answers` are those at `ns`, ascending.

    Levels times `scale` of their n are linear in the logarithm of n. Raises ValueError where a level is not known.
    """
    known = [found for answer in answers if (found := answer.level_of(rate)) is not None]
    if len(known) < len(answers):
        raise ValueError(f"the simulation shows no level for {rate:.3g} onsets a window: use larger windows")
    logs = np.log(ns)
    scaled = [level * scale(at) for (level, _), at in zip(known, ns, strict=True)]
    level = float(np.interp(math.log(n), logs, scaled)) / scale(n)
    return level, float(np.interp(math.log(n), logs, [error for _, error in known]))


def too_far_in_the_tail(rate: float, error: float, largest_relative_error: float) -> str:
    """Say that a level is too uncertain to be promised; empty where it is not."""
    if error <= largest_relative_error:
        return ""
    return f"one onset in {1 / rate:,.0f} windows lies too far in the tail: it may be off by {error:.0%}"
