"""Quiet series to simulate from: what a feature looks like while nothing drifts.

D depends on values only through their order, so a continuous feature is simulated on any convenient scale: uniform
where values are independent, standard normal where they are autocorrelated. Ties are put in by flattening: all numbers
of one interval become one value. A series that was recorded in order needs no model: blocks of it are drawn again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from schemas.ids import content_digest
from udfs.statistics.samples import sample

Floats = NDArray[np.float64]


class Source(Protocol):
    """Something to draw quiet series from."""

    @property
    def has_ties(self) -> bool:
        """Whether two values of a draw may be equal."""

    @property
    def key(self) -> Mapping[str, Any]:
        """What it is, as JSON: equal keys draw alike. Part of a threshold's cache key."""

    @property
    def words(self) -> str:
        """What it is, for a person."""

    @property
    def variance_error(self) -> float:
        """The relative standard error of how much windows vary, where that was estimated from a record; else 0."""

    def of_one_stream(self, rng: np.random.Generator) -> "Source":
        """Return what one stream and its reference are drawn from, where the truth itself is uncertain; else itself."""

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return one stretch of `length` successive values, float64, stationary from its first value on."""


@dataclass(frozen=True, eq=False)
class Atoms:
    """The shares of a feature's values that are ties: `starts` and `ends` of intervals of (0, 1), ascending, disjoint.

    A value whose distribution function jumps from 0.2 to 0.5 is the interval (0.2, 0.5).
    """

    starts: Floats
    ends: Floats

    @classmethod
    def of_points(cls, points: ArrayLike) -> "Atoms":
        """Return the ties among reference points: each value that stands there twice or more. O(m log m).

        >>> atoms = Atoms.of_points([1.0, 2.0, 2.0, 3.0])
        >>> atoms.starts.tolist(), atoms.ends.tolist()
        ([0.25], [0.75])
        """
        values = sample(points).values
        _, first, times = np.unique(values, return_index=True, return_counts=True)
        tied = times > 1
        return cls(first[tied] / values.size, (first + times)[tied] / values.size)

    @property
    def is_empty(self) -> bool:
        """Whether the feature is continuous."""
        return not self.starts.size

    def flattened(self, values: Floats) -> Floats:
        """Return `values` with all that lie in one interval made equal; the intervals are on the scale of `values`."""
        at = np.searchsorted(self.starts, values, side="right") - 1
        within = (at >= 0) & (values < self.ends[at])
        return np.where(within, self.starts[at], values)

    @property
    def digest(self) -> str:
        """Names the intervals; of a continuous feature it is empty."""
        if self.is_empty:
            return ""
        return content_digest(self.starts.astype("<f8").tobytes() + self.ends.astype("<f8").tobytes())


CONTINUOUS = Atoms(np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class Independent:
    """Independent values, with ties where `atoms` has any.

    >>> Independent().draw(np.random.default_rng(1), 3).round(3).tolist()
    [0.512, 0.95, 0.144]
    """

    atoms: Atoms = CONTINUOUS

    @property
    def has_ties(self) -> bool:
        """Whether two values may be equal."""
        return not self.atoms.is_empty

    @property
    def key(self) -> Mapping[str, Any]:
        """Its kind and ties."""
        return {"kind": "independent", "atoms": self.atoms.digest}

    @property
    def words(self) -> str:
        """What it is, for a person."""
        return "independent values" + (" with ties" if self.has_ties else "")

    @property
    def variance_error(self) -> float:
        """None: it is a model."""
        return 0.0

    def of_one_stream(self, rng: np.random.Generator) -> "Independent":
        """Return itself: nothing of it is uncertain."""
        return self

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return `length` values."""
        values = rng.random(length)
        return self.atoms.flattened(values) if self.has_ties else values


@dataclass(frozen=True, eq=False)
class Autoregressive:
    """A stationary AR(1) of normal values, x(t) = coefficient x(t - 1) + noise, with ties where `atoms` has any.

    Any feature whose normal scores follow an AR(1) gives the same D. Raises ValueError unless 0 <= coefficient < 1.

    >>> x = Autoregressive(0.9).draw(np.random.default_rng(1), 20_000)
    >>> round(float(np.corrcoef(x[1:], x[:-1])[0, 1]), 2)
    0.9
    """

    coefficient: float
    atoms: Atoms = CONTINUOUS

    def __post_init__(self) -> None:
        if not 0.0 <= self.coefficient < 1.0:
            raise ValueError(f"the coefficient of an AR(1) must be 0 or more and below 1, not {self.coefficient}")

    @property
    def has_ties(self) -> bool:
        """Whether two values may be equal."""
        return not self.atoms.is_empty

    @property
    def key(self) -> Mapping[str, Any]:
        """Its kind, coefficient and ties."""
        return {"kind": "autoregressive", "coefficient": self.coefficient, "atoms": self.atoms.digest}

    @property
    def words(self) -> str:
        """What it is, for a person."""
        return f"an AR(1) series of coefficient {self.coefficient:g}" + (" with ties" if self.has_ties else "")

    @cached_property
    def _normal_atoms(self) -> Atoms:
        return Atoms(ndtri(self.atoms.starts), ndtri(self.atoms.ends))

    @property
    def variance_error(self) -> float:
        """None: it is a model."""
        return 0.0

    def of_one_stream(self, rng: np.random.Generator) -> "Autoregressive":
        """Return itself: nothing of it is uncertain."""
        return self

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return `length` successive values."""
        from scipy.signal import lfilter  # at first use: slow to import, and few need it

        noise = rng.standard_normal(length)
        noise[1:] *= np.sqrt(1.0 - self.coefficient**2)  # the first value has the stationary variance
        values: Floats = lfilter([1.0], [1.0, -self.coefficient], noise)
        return self._normal_atoms.flattened(values) if self.has_ties else values


@dataclass(frozen=True, eq=False)
class Recorded:
    """Blocks of a recorded series, drawn anew with replacement and put end to end: the circular block bootstrap.

    `values` are in the order of time, float64, without nulls; `block_length` values of a block stay together, so
    dependence up to about that length survives, and slow changes longer than a block become noise. At the seams
    dependence is cut, so a memory as long as a block comes out by a third too weak. Raises ValueError for fewer than
    two values or a block length outside of 1 to their number.

    Source: Politis & Romano, "A circular block-resampling procedure for stationary data", 1992.

    >>> Recorded(np.arange(100.0), 3).draw(np.random.default_rng(1), 5).tolist()
    [49.0, 51.0, 52.0, 53.0, 75.0]
    """

    values: Floats
    block_length: int

    def __post_init__(self) -> None:
        if self.values.size < 2:
            raise ValueError(f"a recorded series needs two values or more, not {self.values.size}")
        if not 1 <= self.block_length <= self.values.size:
            problem = f"must be 1 to the {self.values.size} values of the series, not {self.block_length}"
            raise ValueError(f"the block length {problem}")

    @property
    def has_ties(self) -> bool:
        """Always: a block may be drawn twice."""
        return True

    @cached_property
    def key(self) -> Mapping[str, Any]:
        """Its kind, block length and the digest of its values."""
        digest = content_digest(self.values.astype("<f8").tobytes())
        return {"kind": "recorded", "block_length": self.block_length, "values": digest}

    @property
    def words(self) -> str:
        """What it is, for a person."""
        return f"blocks of {self.block_length} of {self.values.size} recorded values"

    @property
    def variance_error(self) -> float:
        """That of a variance estimated from as many values as there are blocks: the square root of 2 / blocks."""
        return float(np.sqrt(2.0 * self.block_length / self.values.size))

    def of_one_stream(self, rng: np.random.Generator) -> "Recorded":
        """Return itself: nothing of it is uncertain."""
        return self

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return `length` values; the first block begins anywhere within, so no place in a draw is special."""
        blocks = length // self.block_length + 2
        first = rng.integers(0, self.values.size, blocks)
        places = (first[:, None] + np.arange(self.block_length)).ravel() % self.values.size
        skipped = int(rng.integers(0, self.block_length))
        drawn: Floats = self.values[places[skipped : skipped + length]]
        return drawn


@dataclass(frozen=True, eq=False)
class Shaped:
    """Values distributed as a reference's, whose order is that of an AR(1) of `coefficient`, 0 for independent ones.

    For statistics that depend on how far apart values are. `points` are the reference's, ascending and finite, out of
    `n_raw` values; `minimum` and `maximum` are their ends. Each stream has a distribution of its own, drawn around the
    reference's (Dirichlet: those that a reference of so many values may have come from); between points it is linear.
    Repeated points are ties. Source: Rubin, "The Bayesian bootstrap", Ann. Stat. 9, 1981.

    >>> shaped = Shaped(np.array([1.0, 1.0, 4.0]), 3, 1.0, 5.0)
    >>> shaped.draw(np.random.default_rng(1), 4).round(2).tolist()
    [1.11, 4.7, 1.0, 4.69]
    """

    points: Floats
    n_raw: int
    minimum: float
    maximum: float
    coefficient: float = 0.0
    ranks: Floats | None = None

    @cached_property
    def has_ties(self) -> bool:
        """Whether two values may be equal."""
        return bool((np.diff(self.points) == 0.0).any())

    @cached_property
    def key(self) -> Mapping[str, Any]:
        """Its kind, coefficient, how many values it stands for, and the digest of its points."""
        digest = content_digest(self._values.astype("<f8").tobytes())
        return {"kind": "shaped", "coefficient": self.coefficient, "n_raw": self.n_raw, "points": digest}

    @property
    def words(self) -> str:
        """What it is, for a person."""
        order = f"an AR(1) series of coefficient {self.coefficient:g}" if self.coefficient else "independent values"
        return f"{order}, distributed as the reference"

    @property
    def variance_error(self) -> float:
        """None: each stream has another distribution."""
        return 0.0

    @cached_property
    def _values(self) -> Floats:
        return np.concatenate([[self.minimum], self.points, [self.maximum]])

    @cached_property
    def _gaps(self) -> Floats:
        """The likeliest shares of the gaps between points, and beyond them."""
        gaps = np.ones(self.points.size + 1)
        gaps[[0, -1]] = 0.5
        return gaps / self.points.size

    def of_one_stream(self, rng: np.random.Generator) -> "Shaped":
        """Return one of the distributions that the reference may have come from."""
        independent = (1.0 - self.coefficient) / (1.0 + self.coefficient)
        gaps = rng.dirichlet(self._gaps * max(2.0, self.n_raw * independent))
        return replace(self, ranks=np.minimum(np.append(0.0, np.cumsum(gaps)), 1.0))

    def draw(self, rng: np.random.Generator, length: int) -> Floats:
        """Return `length` successive values."""
        ranks = ndtr(Autoregressive(self.coefficient).draw(rng, length)) if self.coefficient else rng.random(length)
        known = np.append(0.0, np.cumsum(self._gaps)) if self.ranks is None else self.ranks
        return np.interp(ranks, known, self._values)
