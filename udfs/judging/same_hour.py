"""A stream against itself, a fixed lag ago: this hour against the same hour last week (spec D1).

Load follows the clock and the week, so yesterday's noon is no reference for tonight. What must be remembered is one
merged sketch an hour: `step` keeps those of the lag and not one more, about 2 kB each, 350 kB a series for a week.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.verdicts import Verdict
from udfs.budget.pairs import PairBudget
from udfs.judging.frame import Frame
from udfs.judging.stream_pair import DEFAULT_PAIR_POLICY, PairPolicy, PairPromise, compare_streams
from udfs.parts import join_parts, split_parts
from udfs.sketches.log import LogSketch
from udfs.statistics.judgement import published_score
from udfs.versioned_bytes import seal, unseal

TEST = "ks_same_hour"
HOUR_MS, WEEK_HOURS = 3_600_000, 168
_TAG, _VERSION = b"LAG", 1


@dataclass(frozen=True)
class SameHour:
    """Compares each hour of `field` with the hour `lag_hours` before. Verdicts speak of `ks_same_hour(FIELD|LAGh)`.

    `frame` must have windows of one hour. Statistic, interval and `budget` are as in `udfs.judging.two_streams`.
    """

    frame: Frame
    field: str
    policy: PairPolicy = DEFAULT_PAIR_POLICY
    lag_hours: int = WEEK_HOURS
    relative_accuracy: float = 0.01
    budget: PairBudget | None = None

    def __post_init__(self) -> None:
        if self.lag_hours < 1 or self.frame.window_ms != HOUR_MS:
            raise ValueError("lag_hours must be at least 1, and the frame's window one hour")

    @property
    def feature(self) -> str:
        """What the verdicts speak of."""
        return f"ks_same_hour({self.field}|{self.lag_hours}h)"

    def compare(self, labels: Sequence[str], hour_end_ms: int, earlier: LogSketch, now: LogSketch) -> Verdict:
        """Return the verdict on the hour that ends at `hour_end_ms` (epoch milliseconds, exclusive). O(bins)."""
        promise = None if self.budget is None else PairPromise(self.budget, labels)
        compared = compare_streams(earlier, now, self.policy, promise)
        alpha = self.policy.alpha if promise is None else compared.policy.alpha or 0.0
        lag_ms = self.lag_hours * HOUR_MS
        return self.frame.about(self.feature).verdict(
            labels,
            hour_end_ms,
            compared.result,
            test=TEST,
            drifted=compared.drifted,
            published_score=published_score(compared.result, alpha=alpha),
            policy=compared.policy,
            evidence=compared.evidence | {"reference_window_end_ms": hour_end_ms - lag_ms},
        )

    def step(
        self, state: bytes | None, labels: Sequence[str], hour_end_ms: int, sketch: bytes
    ) -> tuple[bytes, list[Verdict]]:
        """Take the merged sketch of one closed hour; return the state after it and the verdict, if any.

        `state` is None before the first hour. Hours come in ascending order, each once, already merged from all their
        slices; hours without a request never come, and one whose counterpart is missing has no verdict. ValueError on
        an hour that isn't after the newest, and on bytes that are no state. O(lag) sketches copied.

        >>> frame = Frame("chat", "input_tokens", (), HOUR_MS, HOUR_MS, "sha256:c", None, "sha256:m")
        >>> judge = SameHour(frame, "input_tokens", PairPolicy(min_samples=50), lag_hours=2)
        >>> state, verdicts = None, []
        >>> for hour in (1, 2, 3):
        ...     hours = LogSketch.from_values(range(hour, 200 * hour))
        ...     state, verdicts = judge.step(state, [], hour * HOUR_MS, hours.to_bytes())
        >>> [(verdict.feature, verdict.drifted) for verdict in verdicts]
        [('ks_same_hour(input_tokens|2h)', True)]
        """
        hours = _decode(state) if state is not None else {}
        if hours and hour_end_ms <= max(hours):
            raise ValueError(f"hour {hour_end_ms} isn't after {max(hours)}: hours come once, in order")
        earlier_ms = hour_end_ms - self.lag_hours * HOUR_MS
        earlier, now = hours.get(earlier_ms), LogSketch.from_bytes(sketch)
        verdicts = []
        if earlier is not None:
            verdicts.append(self.compare(labels, hour_end_ms, LogSketch.from_bytes(earlier), now))
        kept = {end_ms: kept for end_ms, kept in hours.items() if end_ms > earlier_ms}
        return _encode(kept | {hour_end_ms: sketch}), verdicts


def _encode(hours: dict[int, bytes]) -> bytes:
    parts = (part for end_ms in sorted(hours) for part in (end_ms.to_bytes(8, "little"), hours[end_ms]))
    return seal(_TAG, _VERSION, join_parts(list(parts)))


def _decode(state: bytes) -> dict[int, bytes]:
    parts = split_parts(unseal(state, _TAG))
    return {int.from_bytes(end, "little"): kept for end, kept in zip(parts[::2], parts[1::2], strict=True)}
