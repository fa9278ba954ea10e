"""From a question (which reference, which windows, which values) to the levels that answer it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

import numpy as np
import orjson

from schemas.ids import content_digest
from udfs.budget.episodes import quiet_windows
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.onset_levels import RATES, OnsetLevels
from udfs.budget.sources import Source
from udfs.budget.tail import TailPolicy, fit_tail
from udfs.budget.window_statistics import Layout, Norm, reference_of, simulated_statistics, slice_sizes
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

TEST: Norm = "ks_two_sample"
ALGORITHM_VERSION = 1
"""Part of every cache key: raise it when a change of code changes the levels."""
DISTANCE_WINDOWS = 300_000
"""Of distances that add up gaps, which cost some four times what D does."""
STEP = 1e-9
"""Levels are told to this; such distances move in far finer steps."""


@dataclass(frozen=True)
class SimulationPolicy:
    """How long to simulate, and what to trust. The nanoseconds are what a value of a window, a bin, and a value of a
    reference cost on a slow core of 2023: they turn `most_seconds` into a number of windows without looking at a clock,
    so a seed gives the same bits. `fewest_windows` are simulated however long they take.

    `slides` is the length of a stream, at least, and `past` its least length in overlaps: a long stream wastes fewer
    windows on its past, many streams are many references. A level is counted, not fitted, where at least
    `counted_onsets` onsets stand behind it. `reference_pairs` are drawn for `OnsetLevels.reference_error`, whose share
    of references is `reference_share`. A reference of more than `largest_reference` values is taken for one of so many
    (`threshold.py`): it errs less, so the threshold is a little too high.
    """

    seed: int = 20_240_229
    most_windows: int = 1_000_000
    fewest_windows: int = 5000
    most_seconds: float = 80.0
    nanoseconds_a_value: float = 30.0
    nanoseconds_a_bin: float = 12.0
    nanoseconds_a_reference_value: float = 100.0
    largest_reference: int = 100_000
    slides: int = 240
    past: int = 12
    counted_onsets: int = 2000
    reference_pairs: int = 400
    reference_share: float = 0.99
    tail: TailPolicy = field(default_factory=TailPolicy)

    def slides_of(self, overlap: int) -> int:
        """How many slices a stream has."""
        return max(self.slides, self.past * overlap)

    def windows_a_stream(self, overlap: int) -> int:
        """How many of a stream's windows count: all but those before the first whole one, and the past."""
        return self.slides_of(overlap) - 2 * overlap + 1

    def windows(self, question: "Question") -> int:
        """How many windows the time allows."""
        bins = min(question.n_reference, question.n_points) * (2 if question.source.has_ties else 1)
        reference = question.n_reference * self.nanoseconds_a_reference_value
        cost = (
            question.n / question.overlap * self.nanoseconds_a_value
            + bins * self.nanoseconds_a_bin
            + reference / self.windows_a_stream(question.overlap)
        )
        return int(min(self.most_windows, max(self.fewest_windows, self.most_seconds * 1e9 / cost)))


DEFAULT_POLICY = SimulationPolicy()


@dataclass(frozen=True, eq=False)
class Question:
    """What a threshold is asked for, but the rate: the answer holds the levels of all rates.

    `n_reference` is how many raw values the reference was made of, `n_points` how many points of them are kept at most
    (`udfs.references.feature`), `n` the values of a window, `overlap` window / slide.
    Raises ValueError for counts below 1, and for windows of fewer values than slices.
    """

    n_reference: int
    n_points: int
    n: int
    overlap: int
    source: Source
    test: Norm = TEST

    def __post_init__(self) -> None:
        if self.test not in get_args(Norm):
            raise ValueError(f"thresholds are simulated for {', '.join(get_args(Norm))}, not for {self.test!r}")
        if min(self.n_reference, self.n_points, self.overlap) < 1 or self.n < self.overlap:
            raise ValueError(
                "a threshold needs a reference, points, an overlap of 1 or more and n of at least the overlap"
            )

    @property
    def points(self) -> int:
        """How many points the reference has."""
        return min(self.n_reference, self.n_points)

    def key(self, policy: SimulationPolicy) -> Mapping[str, Any]:
        """All that the answer depends on, as JSON."""
        own = {name: getattr(self, name) for name in ("test", "n_reference", "n_points", "n", "overlap")}
        return (
            own
            | {"source": self.source.key, "policy": asdict(policy), "version": ALGORITHM_VERSION}
            | ({} if self.test == TEST else {"windows": DISTANCE_WINDOWS})
        )

    def digest(self, policy: SimulationPolicy) -> str:
        """Names `key`."""
        return content_digest(orjson.dumps(self.key(policy), option=orjson.OPT_SORT_KEYS))

    def simulated(self, policy: SimulationPolicy) -> OnsetLevels:
        """Return `simulate` of it."""
        return simulate(self, policy)


def simulate(question: Question, policy: SimulationPolicy = DEFAULT_POLICY) -> OnsetLevels:
    """Answer one question by simulation: about `most_seconds` of one core at most, and 24 bytes a window.

    The same question and policy give the same levels.
    """
    found = simulate_overlaps(
        question.source,
        n_reference=question.n_reference,
        n_points=question.n_points,
        sizes=slice_sizes(question.n, question.overlap),
        overlaps=(question.overlap,),
        policy=policy,
        windows=policy.windows(question),
        norm=question.test,
    )
    return found[question.overlap]


def simulate_overlaps(
    source: Source,
    *,
    n_reference: int,
    n_points: int,
    sizes: tuple[int, ...],
    overlaps: Sequence[int],
    policy: SimulationPolicy,
    windows: int,
    norm: Norm = TEST,
) -> dict[int, OnsetLevels]:
    """Return the levels for windows of each of `overlaps` slices, from one simulation of slices."""
    layout = Layout(n_reference, n_points, sizes, policy.slides_of(max(overlaps)), norm)
    if norm != TEST:
        return _distance_levels(source, layout, overlaps, policy, windows)
    streams = math.ceil(windows / policy.windows_a_stream(max(overlaps)))
    rng = np.random.default_rng(policy.seed)
    error = reference_error(source, layout, rng, policy)
    points, answers = min(n_reference, n_points), {}
    for k, statistics in simulated_statistics(source, layout, overlaps, rng, streams).items():
        n = int(layout.sizes()[:k].sum())
        curve = OnsetCurve.of(statistics, quiet=quiet_windows(k), step=1.0 / math.lcm(points, n))
        answers[k] = levels_of(curve, error, policy)
    return answers


def _distance_levels(
    source: Source, layout: Layout, overlaps: Sequence[int], policy: SimulationPolicy, windows: int
) -> dict[int, OnsetLevels]:
    """The same for a distance that adds up gaps: no D, so no step that it moves in, and a tail of another power."""
    streams = math.ceil(min(windows, DISTANCE_WINDOWS) / policy.windows_a_stream(max(overlaps)))
    rng = np.random.default_rng(policy.seed)
    found = simulated_statistics(source, layout, overlaps, rng, streams)
    tail = replace(policy.tail, power=policy.tail.power - 0.5, other_powers=(-0.5, 0.5))
    return {
        k: levels_of(OnsetCurve.of(found[k], quiet=quiet_windows(k), step=STEP), 0.0, replace(policy, tail=tail))
        for k in overlaps
    }


def reference_error(source: Source, layout: Layout, rng: np.random.Generator, policy: SimulationPolicy) -> float:
    """Return how far a reference is from the truth, but for one reference in a hundred.

    D of two references against each other is larger than that of one against the truth by the square root of 2.
    """
    distances = []
    for _ in range(policy.reference_pairs):
        one, other = (reference_of(source, layout, rng) for _ in range(2))
        distances.append(RankSketch.from_values(other, RankReference.from_values(one)).statistic() or 0.0)
    return float(np.quantile(distances, policy.reference_share)) / math.sqrt(2.0)


def levels_of(curve: OnsetCurve, error: float, policy: SimulationPolicy) -> OnsetLevels:
    """Read the ladder off a curve: counted where there are onsets enough, else off its fitted tail."""
    fitted = fit_tail(curve, policy.tail)
    levels: list[float | None] = []
    errors: list[float | None] = []
    counted_to = RATES[0]
    for rate in RATES:
        is_below = fitted is not None and rate < fitted.tail.rate(fitted.tail.begin)
        if fitted is not None and is_below and rate * curve.windows < policy.counted_onsets:
            level = fitted.tail.level_of(rate)
            levels.append(level)
            errors.append(fitted.relative_error(level))
        elif rate * curve.windows >= policy.tail.fewest_onsets:
            levels.append(curve.level_of(rate))
            errors.append(_counting_error(curve, levels[-1], policy.tail.groups))
            counted_to = rate
        else:
            levels.append(None)
            errors.append(None)
    return OnsetLevels(_ascending(levels), tuple(errors), counted_to, curve.windows, error)


def _counting_error(curve: OnsetCurve, level: float | None, groups: int) -> float:
    """The relative standard error of a counted rate, from how groups of streams differ."""
    onsets, _ = curve.group_counts(np.array([level]), groups)
    mean = float(onsets.mean())
    return float(onsets.std(ddof=1)) / math.sqrt(len(onsets)) / mean if mean and len(onsets) > 1 else 1.0


def _ascending(levels: list[float | None]) -> tuple[float | None, ...]:
    """Where counting gives way to the fit the levels may cross by less than their error: never let them fall."""
    highest, kept = 0.0, []
    for level in levels:
        highest = max(highest, level) if level is not None else highest
        kept.append(None if level is None else highest)
    return tuple(kept)
