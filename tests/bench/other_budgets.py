"""Realised onset rates under a budget, of what is not KS against a reference: rows that bench_false_alarms adds.

Cramer-von Mises and Wasserstein-1 against a reference, two live streams, and a monitor's tests, series and slices all
together. Streams are drawn from the truth; thresholds come from what a user has, a reference drawn from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jobs.monitor_budget import divided_budget
from udfs.budget.cache import AnswerCache
from udfs.budget.distances import distance_budget, unit_of
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.pairs import bin_edges, pair_budget
from udfs.budget.simulation import DEFAULT_POLICY
from udfs.budget.sources import Autoregressive, Independent, Source
from udfs.budget.threshold import PromisePolicy, source_for, threshold_curve
from udfs.budget.window_statistics import Layout, Norm, simulated_statistics
from udfs.references.feature import FeatureReference
from udfs.sketches.log import LogSketch, ks_interval

Floats = NDArray[np.float64]
POINTS, SLIDES, OVERLAP = 1000, 240, 10
ONE_N = PromisePolicy(n_factors=(1.0,))
SIGMA = 0.8
"""Of latencies: lognormal, the 99th of 100 is six times the median."""
REFERENCES = 24
"""A promise is the average over references, and those of Wasserstein-1 differ in scale too."""
SHORTER = AnswerCache(None, replace(DEFAULT_POLICY, most_windows=60_000))
PAIR_WINDOWS, ACCURACY = 200_000, 0.01


@dataclass(frozen=True)
class Rate:
    """Onsets a window, realised, with its standard error."""

    name: str
    rate: float
    error: float


@dataclass(frozen=True)
class Latencies:
    """Lognormal latencies whose logarithms follow an AR(1)."""

    coefficient: float

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return successive values."""
        found: Floats = np.exp(5.0 + SIGMA * Autoregressive(self.coefficient).draw(rng, length))
        return found


class _Truth(Independent):
    """The same as a source of the simulation, which then plays the traffic."""

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return `length` independent latencies."""
        return Latencies(0.0).draw(rng, length)


def of_distances(*, n_reference: int, n: int, rate: float, windows: int, seed: int) -> Iterator[Rate]:
    """Yield Cramer-von Mises of two sources, and Wasserstein-1 of latencies averaged over references."""
    cases: list[tuple[Norm, str, Source, float, int]] = [
        ("cramer_von_mises", "independent values", Independent(), 0.0, 1),
        ("cramer_von_mises", "an AR(1) series of coefficient 0.6", Autoregressive(0.6), 0.6, 1),
        ("wasserstein_1", f"independent latencies, {REFERENCES} references", _Truth(), 0.0, REFERENCES),
    ]
    for norm, name, source, coefficient, references in cases:
        layout = Layout(n_reference, POINTS, (n // OVERLAP,), SLIDES, norm)
        streams = windows // (SLIDES - 2 * OVERLAP)
        found = simulated_statistics(source, layout, (OVERLAP,), np.random.default_rng(seed), streams)[OVERLAP]
        levels = []
        for number in range(references):
            values = source.draw(np.random.default_rng([seed, number]), n_reference)
            stored = FeatureReference.from_values(values, max_points=POINTS)
            asked = {"n": n, "overlap": OVERLAP, "coefficient": coefficient, "rate": rate}
            cache = AnswerCache(None) if references == 1 else SHORTER
            budget = distance_budget(norm, stored, **asked, promise=ONE_N, cache=cache)  # type: ignore[arg-type]  # by name
            levels.append(budget.at(n).level * unit_of(norm, stored))
        words = {"cramer_von_mises": "Cramer-von Mises", "wasserstein_1": "Wasserstein-1"}[norm]
        yield _rate(f"{words}, {name}", found, levels)


def of_pairs(*, n: int, rate: float, seed: int) -> Iterator[Rate]:
    """Yield two arms of n values each, a small beside a large one, AR(1) arms, an hour against an earlier one."""
    rng = np.random.default_rng(seed)
    cases = [
        ("two streams, latencies", n, n, 0.0, OVERLAP),
        (f"two streams, {2 * n - 200} against 200", 2 * n - 200, 200, 0.0, OVERLAP),
        ("two streams, an AR(1) of coefficient 0.6 each", n, n, 0.6, OVERLAP),
        ("same hour", n, n, 0.0, 1),
    ]
    for name, n_a, n_b, coefficient, overlap in cases:
        latencies = Latencies(coefficient)
        known = bin_edges(FeatureReference.from_values(latencies.draw(rng, 10_000), max_points=POINTS).points)
        budget = pair_budget(known, n=2 * n, overlap=overlap, coefficient=coefficient, rate=rate)
        streams = PAIR_WINDOWS // (SLIDES - 2 * overlap)
        found = [_certain_ends(rng, latencies, n_a, n_b, overlap) for _ in range(streams)]
        yield _rate(name, np.array(found), [budget.at(n_a, n_b).level], overlap)


def _certain_ends(rng: np.random.Generator, latencies: Latencies, n_a: int, n_b: int, overlap: int) -> Floats:
    """D at the edges of the log bins, of every window of two streams: DDSketch's bins, ceil(log x / log gamma)."""
    values = [latencies.draw(rng, n // overlap * SLIDES) for n in (n_a, n_b)]
    keys = [np.ceil(np.log(of_side) / (2.0 * np.arctanh(ACCURACY))).astype(np.int64) for of_side in values]
    low, high = min(map(np.min, keys)), max(map(np.max, keys))
    shares = []
    for of_side, n in zip(keys, (n_a, n_b), strict=True):
        slices = (of_side - low).reshape(SLIDES, -1) + np.arange(SLIDES)[:, None] * (high - low + 1)
        counts = np.bincount(slices.ravel(), minlength=SLIDES * (high - low + 1)).reshape(SLIDES, -1)
        reached = np.cumsum(np.vstack([np.zeros_like(counts[:1]), np.cumsum(counts, axis=1)]), axis=0)
        shares.append((reached[overlap:] - reached[:-overlap]) / (n // overlap * overlap))
    _check(values, shares, overlap)
    found: Floats = np.abs(shares[0] - shares[1]).max(axis=1)
    return found


def _check(values: list[Floats], shares: list[Floats], overlap: int) -> None:
    """The first window has the certain end that the job's own sketches tell."""
    ours = ks_interval(*(LogSketch.from_values(side[: side.size // SLIDES * overlap]) for side in values))
    assert ours is not None
    assert abs(ours.low - np.abs(shares[0][0] - shares[1][0]).max()) < 1e-9


def of_the_whole(*, n_reference: int, n: int, rate: float, windows: int, seed: int) -> Rate:
    """Return the onsets of a monitor of two features, three series and two tenants each: 18 tests, one budget."""
    fields = {
        "false_alarms": "1 per 1000 windows",
        "features": ["input_tokens", "output_tokens"],
        "tests": [],
        "slices": ["tenant"],
        "expected_series": 3,
        "expected_slice_values": 2,
    }
    total, variance = 0.0, 0.0
    for part, size in ((fields, n), (fields | {"slice_of": "tenant"}, n // 2)):
        divided = divided_budget(part)
        assert divided is not None
        assert divided.most_series is not None
        source = source_for(np.arange(POINTS), 0.0)
        asked = {"n_reference": n_reference, "n_points": POINTS, "n": size, "overlap": OVERLAP, "source": source}
        curve = threshold_curve(**asked, rate=rate / divided.shares)  # type: ignore[arg-type]  # by name
        layout = Layout(n_reference, POINTS, (size // OVERLAP,), SLIDES)
        tests = len(fields["features"]) * divided.most_series  # type: ignore[arg-type]  # a list
        streams = tests * windows // (SLIDES - 2 * OVERLAP)
        rng = np.random.default_rng([seed, size])
        found = simulated_statistics(source, layout, (OVERLAP,), rng, streams)[OVERLAP]
        one = _rate("", found, [curve.at(size).critical_statistic])
        total, variance = total + tests * one.rate, variance + (tests * one.error) ** 2
    return Rate("a monitor's 2 features x 3 series, and x 2 tenants", total, float(np.sqrt(variance)))


def _rate(name: str, statistics: Floats, levels: list[float], overlap: int = OVERLAP) -> Rate:
    """Realised at the levels, averaged; the error is that of the traffic."""
    curve = OnsetCurve.of(statistics, quiet=overlap, step=1e-9)
    groups = curve.group_counts(np.array(levels), 25)[0].mean(axis=1)
    error = float(groups.std(ddof=1)) * np.sqrt(len(groups)) / curve.windows
    return Rate(name, float(np.mean([curve.rate(level) for level in levels])), error)
