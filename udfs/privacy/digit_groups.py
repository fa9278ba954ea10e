"""Runs of digit groups, and the windows of them whose group sizes a number of some kind may have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set

from udfs.privacy.linear_pattern import Span

Shapes = Mapping[int, Set[tuple[int, ...]]]
_GROUP = re.compile(rb"[0-9]+")


def group_ends(data: bytes, start: int, end: int) -> list[int]:
    """Return where the digit groups of [start, end) end, the last first: a number may end at any of them.

    >>> group_ends(b"12 34-5x", 0, 7)
    [7, 5, 2]
    """
    return [match.end() for match in _GROUP.finditer(data, start, end)][::-1]


def by_width(shapes: Iterable[tuple[int, ...]]) -> Shapes:
    """Return `shapes`, each the sizes of consecutive digit groups, by how many groups they have."""
    result: dict[int, set[tuple[int, ...]]] = {}
    for shape in shapes:
        result.setdefault(len(shape), set()).add(shape)
    return result


def shaped_windows(data: bytes, start: int, end: int, shapes: Shapes) -> Iterator[Span]:
    """Yield the windows of [start, end) whose consecutive digit groups have the sizes of one of `shapes`.

    O(groups x widths): numbers of one digit a group can't make it slow. Windows may overlap.

    >>> list(shaped_windows(b"12 4111 1111", 0, 12, by_width([(4, 4)])))
    [(3, 12)]
    """
    groups = [match.span() for match in _GROUP.finditer(data, start, end)]
    sizes = tuple([last - first for first, last in groups])
    for width, wanted in shapes.items():
        for place in range(len(sizes) - width + 1):
            if sizes[place : place + width] in wanted:
                yield groups[place][0], groups[place + width - 1][1]
