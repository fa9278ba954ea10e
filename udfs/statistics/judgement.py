"""What a test result means under a monitor's policy: drifted or not, and the published score."""

from udfs.statistics.result import TestResult


def is_drifted(result: TestResult, *, alpha: float, min_effect: float = 0.0) -> bool | None:
    """Say whether the window drifted: p below `alpha` and the effect at least `min_effect`.

    None where the result has no figures: unknown, never a pass. With a large window any difference is significant, so
    give a `min_effect` that matters.

    >>> from udfs.statistics.ks import ks_two_sample
    >>> result = ks_two_sample(range(100), range(50, 150))
    >>> is_drifted(result, alpha=0.01), is_drifted(result, alpha=0.01, min_effect=0.6)
    (True, False)
    """
    if result.p_value is None or result.effect is None:
        return None
    return result.p_value < alpha and result.effect >= min_effect


def published_score(result: TestResult, *, alpha: float) -> float | None:
    """Return (p < alpha) * (1 - p), kept so that published numbers can be reproduced; None where there is no p.

    It is binary in effect: 0, or between 1 - alpha and 1.

    >>> from udfs.statistics.ks import ks_two_sample
    >>> published_score(ks_two_sample(range(100), range(100)), alpha=0.01)
    0.0
    """
    if result.p_value is None:
        return None
    return 1.0 - result.p_value if result.p_value < alpha else 0.0
