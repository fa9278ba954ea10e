"""The levels that come with Slacktide (`thresholds.json`): continuous features, common references and windows.

`python -m udfs.budget.shipped FILE` simulates those that FILE lacks, some 5 seconds of one core each.
"""

import sys
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from udfs.budget.onset_levels import RATES, OnsetLevels
from udfs.budget.simulation import ALGORITHM_VERSION, DEFAULT_POLICY, TEST, SimulationPolicy, simulate_overlaps
from udfs.budget.sources import Autoregressive, Independent, Source

FILE = Path(__file__).with_name("thresholds.json")


@dataclass(frozen=True)
class ShippedGrid:
    """What is shipped. Windows of an overlap k are k slices; for each slice size only windows of `fewest` to `most`
    values. `n_points` is a prime below the 1000 points of a profile, so that D moves in fine steps and the levels lie
    on a smooth curve; three points of a thousand fewer move D by less than 0.000002.
    """

    n_references: tuple[int, ...] = (10_000, 1000, 2000)
    coefficients: tuple[float, ...] = (0.0, 0.6, 0.9)
    overlaps: tuple[int, ...] = (1, 2, 5, 10, 20)
    slice_sizes: tuple[int, ...] = (5, 10, 20, 50, 100, 200, 500, 1000)
    fewest: int = 50
    most: int = 5000
    n_points: int = 997
    windows: int = 300_000

    def overlaps_of(self, slice_size: int) -> tuple[int, ...]:
        """The overlaps for which windows of such slices are shipped."""
        return tuple(k for k in self.overlaps if self.fewest <= k * slice_size <= self.most)


GRID = ShippedGrid()


@dataclass(frozen=True)
class Entry:
    """The levels of one kind of windows."""

    n_reference: int
    coefficient: float
    overlap: int
    n: int
    levels: OnsetLevels

    @property
    def place(self) -> tuple[int, float, int, int]:
        """Which windows: reference, coefficient, overlap, n."""
        return self.n_reference, self.coefficient, self.overlap, self.n


def source_of(coefficient: float) -> Source:
    """The continuous source of a coefficient; 0 is independent."""
    return Autoregressive(coefficient) if coefficient else Independent()


def simulated_entries(
    grid: ShippedGrid, policy: SimulationPolicy, known: Collection[tuple[int, float, int, int]] = ()
) -> Iterator[Entry]:
    """Simulate what of the grid is not `known` by its place; windows of one slice size share their slices."""
    for n_reference in grid.n_references:
        for coefficient in grid.coefficients:
            for size in grid.slice_sizes:
                if {(n_reference, coefficient, k, k * size) for k in grid.overlaps_of(size)} <= set(known):
                    continue
                answers = simulate_overlaps(
                    source_of(coefficient),
                    n_reference=n_reference,
                    n_points=grid.n_points,
                    sizes=(size,),
                    overlaps=grid.overlaps_of(size),
                    policy=policy,
                    windows=grid.windows,
                )
                for overlap, levels in answers.items():
                    yield Entry(n_reference, coefficient, overlap, overlap * size, levels)


def file_of(entries: list[Entry], grid: ShippedGrid, policy: SimulationPolicy) -> bytes:
    """Return the bytes of the file: JSON with an entry a line."""
    head = {
        "version": ALGORITHM_VERSION,
        "test": TEST,
        "grid": asdict(grid),
        "policy": asdict(policy),
        "rates": RATES,
    }
    lines = []
    for entry in sorted(entries, key=lambda e: e.place):
        place = {name: getattr(entry, name) for name in ("n_reference", "coefficient", "overlap", "n")}
        lines.append(orjson.dumps(place | entry.levels.to_json()))
    return orjson.dumps(head)[:-1] + b',"entries":[\n' + b",\n".join(lines) + b"\n]}\n"


def entries_of(data: bytes) -> tuple[Entry, ...]:
    """Read the entries back. Raises ValueError on another version or broken content."""
    body: dict[str, Any] = orjson.loads(data)
    if body.get("version") != ALGORITHM_VERSION or body.get("rates") != list(RATES):
        raise ValueError("the shipped thresholds are of another version of the simulation: simulate them anew")
    return tuple(
        Entry(e["n_reference"], e["coefficient"], e["overlap"], e["n"], OnsetLevels.from_json(e))
        for e in body["entries"]
    )


@cache
def shipped_entries() -> tuple[Entry, ...]:
    """The entries of the file in the package, read once."""
    return entries_of(FILE.read_bytes())


def main(path: Path) -> None:
    """Complete the file at `path`, written anew after each slice size, so that it can be stopped and gone on with."""
    entries = {entry.place: entry for entry in (entries_of(path.read_bytes()) if path.exists() else ())}
    for entry in simulated_entries(GRID, DEFAULT_POLICY, set(entries)):
        entries[entry.place] = entry
        path.write_bytes(file_of(list(entries.values()), GRID, DEFAULT_POLICY))
        print(f"{len(entries)} entries: {entry.place}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
