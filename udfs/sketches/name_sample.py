"""Name sample: exact counts of names, bounded by keeping the names of smallest hash.

A sketch that keeps the most frequent names as it goes (space-saving) depends on the order of its merges, and a replay
would judge differently. Here the names are kept whose hash is among the `limit` smallest. A name that is among them in
the whole is among them in every part it occurs in, so its count is exact, whatever was merged in whatever order. Up to
`limit` different names nothing is lost; beyond, the kept ones are a uniform random sample of all names, and
`n_names` estimates how many there are within about 1 / sqrt(limit). Memory: O(limit).

Sources: Bar-Yossef, Jayram, Kumar, Sivakumar & Trevisan, "Counting distinct elements in a data stream", RANDOM 2002
(k minimum values); Cohen & Kaplan, "Summarizing data using bottom-k sketches", PODC 2007.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from udfs.versioned_bytes import refuse, seal, unseal

_TAG, _VERSION = b"NAM", 1
_HASH_BYTES = 8
LONGEST_NAME = 200
"""A longer name is cut, and the hash of all of it put behind, so that two long names stay two."""


@dataclass(frozen=True)
class NameSample:
    """How often names occurred, of at most `limit` names.

    `counts` maps the names kept to their exact counts; `is_whole` says that none was dropped; `total` adds up the
    counts of all names, `n` counts the rows that they were found in, `n_null` the rows that were null. Unchangeable.
    """

    limit: int
    counts: Mapping[str, int] = field(default_factory=dict)
    n: int = 0
    n_null: int = 0
    total: int = 0
    is_whole: bool = True

    @classmethod
    def from_counts(cls, counts: Mapping[str, int], limit: int, *, n: int, n_null: int = 0) -> "NameSample":
        """Sample a slice's names. Raises ValueError where `limit` is below 1. O(names).

        >>> sample = NameSample.from_counts({"a": 3, "b": 1}, limit=10, n=4)
        >>> sample.counts, sample.is_whole, sample.n_names
        ({'a': 3, 'b': 1}, True, 2)
        """
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        short: Counter[str] = Counter()
        for name, count in counts.items():
            short[short_name(name)] += count
        kept = _smallest(short, limit)
        return cls(limit, kept, n, n_null, sum(counts.values()), len(kept) == len(short))

    @property
    def n_names(self) -> int:
        """How many different names there are: exact where `is_whole`, else estimated."""
        if self.is_whole or self.limit < 2:
            return len(self.counts)
        largest = max(map(_hash, self.counts))
        return round((self.limit - 1) * 2.0 ** (8 * _HASH_BYTES) / (int.from_bytes(largest, "big") + 1))

    def top(self, size: int) -> list[str]:
        """Return the `size` most frequent of the names kept, ties by name."""
        return sorted(self.counts, key=lambda name: (-self.counts[name], name))[:size]

    @classmethod
    def merge_all(cls, sketches: Iterable[bytes], limit: int) -> "NameSample":
        """Return the sample of all rows pooled; of none, the empty one.

        Raises ValueError on other bytes and where one has another limit. O(names kept).

        >>> slices = [NameSample.from_counts(c, 2, n=1).to_bytes() for c in ({"a": 1}, {"a": 1, "b": 1, "c": 1})]
        >>> pooled = NameSample.merge_all(slices, 2)
        >>> len(pooled.counts), pooled.total, pooled.is_whole
        (2, 4, False)
        """
        parts = [cls.from_bytes(data) for data in sketches]
        if any(part.limit != limit for part in parts):
            raise ValueError(f"name samples of another limit than {limit} can't be brought together")
        counts: Counter[str] = Counter()
        for part in parts:
            counts.update(part.counts)
        kept = _smallest(counts, limit)
        is_whole = all(part.is_whole for part in parts) and len(kept) == len(counts)
        n, n_null, total = (sum(getattr(part, name) for part in parts) for name in ("n", "n_null", "total"))
        return cls(limit, kept, n, n_null, total, is_whole)

    def to_bytes(self) -> bytes:
        """Return the sample as bytes (JSON in an envelope), the same for equal samples. O(limit)."""
        body = [self.limit, self.n, self.n_null, self.total, self.is_whole, sorted(self.counts.items())]
        return seal(_TAG, _VERSION, orjson.dumps(body))

    @classmethod
    def from_bytes(cls, data: bytes) -> "NameSample":
        """Read a sample back. Raises ValueError on bytes that are none."""
        body = unseal(data, _TAG)
        try:
            limit, n, n_null, total, is_whole, counts = orjson.loads(body)
            return cls(limit, dict(counts), n, n_null, total, is_whole)
        except (TypeError, ValueError) as error:
            refuse(_TAG, f"the body can't be read, {error!r}")

    __hash__ = None  # type: ignore[assignment]  # a mapping inside


def short_name(name: str) -> str:
    """Return a name as it is kept: text that UTF-8 can hold, cut where it is long.

    >>> short_name("finish"), len(short_name("x" * 10_000))
    ('finish', 217)
    """
    text = name if name.isascii() else name.encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}#{_hash(name).hex()}"


def smallest_by_hash(names: Iterable[str], limit: int) -> set[str]:
    """Return the `limit` names of smallest hash: which they are depends on no order. O(names).

    >>> smallest_by_hash(["a", "b"], 5) == {"a", "b"}, len(smallest_by_hash(map(str, range(99)), 5))
    (True, 5)
    """
    distinct = set(names)
    if len(distinct) <= limit:
        return distinct
    return set(heapq.nsmallest(limit, distinct, key=lambda name: (_hash(name), name)))


def _smallest(counts: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return the counts of the names with the smallest hashes, by name."""
    if len(counts) <= limit:
        return dict(sorted(counts.items()))
    return {name: counts[name] for name in sorted(smallest_by_hash(counts, limit))}


def _hash(name: str) -> bytes:
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_HASH_BYTES).digest()
