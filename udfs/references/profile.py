"""Reference profile: the stored features that the drift job judges every window against.

It is one JSON file (`profile_json.py`), named by its digest, `<name>-<first 12 hex digits>.json`, and never changed: a
verdict names the digest that it was judged against.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
from numpy.typing import ArrayLike

from schemas.ids import content_digest
from schemas.times import rfc3339
from udfs.references.category_feature import CategoryReference
from udfs.references.errors import ReferenceProfileError
from udfs.references.feature import FeatureReference
from udfs.references.profile_json import canonical_content, read_file, whole_file
from udfs.sketches.reference import RankReference

__all__ = ["DEFAULT_MAX_CATEGORIES", "DEFAULT_MAX_POINTS", "ReferenceProfile", "ReferenceProfileError"]

DEFAULT_MAX_POINTS = 1000
DEFAULT_MAX_CATEGORIES = 1000
DIGEST_HEX_IN_NAME = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_F = TypeVar("_F")


@dataclass(frozen=True, eq=False)
class ReferenceProfile:
    """Named features with their reference points, and named category features with their counts.

    `source` says in words where the values came from, `created_at` (RFC 3339) when the profile was built. The digest
    covers everything but `created_at`, so the same values give the same file name.
    """

    name: str
    source: str
    created_at: str
    features: Mapping[str, FeatureReference]
    category_features: Mapping[str, CategoryReference] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        name: str,
        columns: Mapping[str, ArrayLike | pd.Series],
        *,
        source: str,
        categories: Mapping[str, ArrayLike | pd.Series] | None = None,
        max_points: int = DEFAULT_MAX_POINTS,
        max_categories: int = DEFAULT_MAX_CATEGORIES,
        created_at_ms: int | None = None,
        in_time_order: bool = False,
    ) -> "ReferenceProfile":
        """Build a profile of raw columns: of numbers, and of `categories`. O(n log n) a column.

        Constant columns are fine. Where the rows are `in_time_order`, each feature's autocorrelation is kept as well
        (`udfs.references.feature`). Raises ReferenceProfileError for a name that is no file name, no columns, one
        column under both, a column without a usable value or not of its kind, `max_points` below 2, or
        `max_categories` below 1.

        >>> columns, categories = {"tokens": [3, 1, None]}, {"reason": ["stop", "stop", "length"]}
        >>> profile = ReferenceProfile.build("chat", columns, categories=categories, source="an example")
        >>> profile.features["tokens"].points.tolist(), profile.features["tokens"].n_null
        ([1.0, 3.0], 1)
        >>> profile.categories("reason").counts.count("stop")
        2
        """
        where = f"reference {name!r}"
        if not _NAME.fullmatch(name):
            problem = "it may hold letters, digits, '.', '_' and '-', and starts with a letter or digit"
            raise ReferenceProfileError(where, "name", problem, "Choose a name fit for a file.")
        if max_points < 2:
            raise ReferenceProfileError(where, "max_points", f"{max_points} is too few", "Give 2 or more, say 1000.")
        if max_categories < 1:
            raise ReferenceProfileError(where, "max_categories", f"{max_categories} is too few", "Give 1 or more.")
        texts = categories or {}
        if not columns and not texts:
            raise ReferenceProfileError(where, "features", "there are none", "Name at least one feature.")
        for feature in columns.keys() & texts.keys():
            raise ReferenceProfileError(where, feature, "it is both a number and a category", "Give it once.")
        features = {
            feature: _built(
                where,
                feature,
                "numbers",
                FeatureReference.from_values,
                values,
                max_points=max_points,
                in_time_order=in_time_order,
            )
            for feature, values in columns.items()
        }
        category_features = {
            feature: _built(
                where, feature, "categories", CategoryReference.from_values, values, max_categories=max_categories
            )
            for feature, values in texts.items()
        }
        now_ms = time.time_ns() // 1_000_000 if created_at_ms is None else created_at_ms
        return cls(name, source, rfc3339(now_ms), features, category_features)

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the canonical content, `created_at` left out."""
        return content_digest(canonical_content(self.name, self.source, self.features, self.category_features))

    @property
    def file_name(self) -> str:
        """`<name>-<first 12 hex digits of the digest>.json`."""
        return f"{self.name}-{self.digest.removeprefix('sha256:')[:DIGEST_HEX_IN_NAME]}.json"

    def feature(self, name: str) -> RankReference:
        """Return a feature's points, prepared for sketches. Raises ReferenceProfileError where it is not in here."""
        if name not in self.features:
            raise self._unknown(name, "feature", self.features)
        return self.features[name].ranks

    def categories(self, name: str) -> CategoryReference:
        """Return a category feature's counts. Raises ReferenceProfileError where it is not in here."""
        if name not in self.category_features:
            raise self._unknown(name, "category feature", self.category_features)
        return self.category_features[name]

    def _unknown(self, name: str, what: str, known: Mapping[str, Any]) -> ReferenceProfileError:
        remedy = f"It has: {', '.join(sorted(known)) or 'none'}."
        return ReferenceProfileError(f"reference {self.name!r}", name, f"there is no such {what}", remedy)

    def save(self, folder: Path | str) -> Path:
        """Write the file into `folder` (made where missing), whole or not at all, and return its path."""
        path = Path(folder) / self.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        whole = whole_file(
            self.name,
            self.source,
            self.features,
            self.category_features,
            digest=self.digest,
            created_at=self.created_at,
        )
        unfinished.write_bytes(whole)
        unfinished.replace(path)
        return path

    @classmethod
    def load(cls, path: Path | str) -> "ReferenceProfile":
        """Read a profile back and verify its digest. Raises ReferenceProfileError naming the field and the remedy."""
        content = read_file(path)
        profile = cls(content.name, content.source, content.created_at, content.features, content.categories)
        if content.digest != profile.digest:
            problem = f"the content's digest is {profile.digest}, so the file was changed"
            raise ReferenceProfileError(str(path), "digest", problem, "Build it again: a reference is never edited.")
        return profile


def _built(where: str, feature: str, kind: str, build: Callable[..., _F], values: Any, **options: int) -> _F:
    """Build one feature, its ValueError turned into one that names it."""
    try:
        return build(values, **options)
    except ValueError as error:
        remedy = f"Leave the feature out, or take a source where it holds {kind}."
        raise ReferenceProfileError(where, feature, str(error), remedy) from error
