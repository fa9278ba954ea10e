"""What a histogram answers: a quantile, and the share of observations at or below a threshold. Never NaN, never inf."""

from dataclasses import dataclass

from schemas.status import Status


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a histogram; `value` is None unless `status` is ok.

    `censored`: the observation of that rank lies in a bucket without an end on one side. The value is then the bucket's
    finite edge, and the true quantile lies beyond it: above the last bound, or, where the first bound is not positive,
    below that.
    """

    value: float | None
    status: Status
    censored: bool = False


@dataclass(frozen=True, slots=True)
class GoodRatio:
    """The share of observations at or below a threshold; all three are None unless `status` is ok.

    The true share is from `low` to `high`, which are one where the threshold is an edge of the buckets. `estimate` lies
    between them: interpolated within the bucket, and `low` where that has no end.
    """

    low: float | None
    high: float | None
    estimate: float | None
    status: Status

    @property
    def is_exact(self) -> bool:
        """Whether the threshold is an edge, so that nothing is estimated."""
        return self.status is Status.OK and self.low == self.high


def check_rank(q: float) -> None:
    """Raise ValueError unless `q` is from 0 to 1."""
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"q must be from 0 to 1, not {q}")
