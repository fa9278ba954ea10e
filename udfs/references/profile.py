"""Reference profile: the stored features that the drift job judges every window against.

It is one JSON file (`profile_json.py`), named by its digest, `<name>-<first 12 hex digits>.json`, and never changed: a
verdict names the digest that it was judged against.
"""

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd
from numpy.typing import ArrayLike

from schemas.ids import content_digest
from schemas.times import rfc3339
from udfs.references.errors import ReferenceProfileError
from udfs.references.feature import FeatureReference
from udfs.references.profile_json import canonical_content, read_file, whole_file
from udfs.sketches.reference import RankReference

__all__ = ["DEFAULT_MAX_POINTS", "ReferenceProfile", "ReferenceProfileError"]

DEFAULT_MAX_POINTS = 1000
DIGEST_HEX_IN_NAME = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, eq=False)
class ReferenceProfile:
    """Named features with their reference points.

    `source` says in words where the values came from, `created_at` (RFC 3339) when the profile was built. The digest
    covers everything but `created_at`, so the same values give the same file name.
    """

    name: str
    source: str
    created_at: str
    features: Mapping[str, FeatureReference]

    @classmethod
    def build(
        cls,
        name: str,
        columns: Mapping[str, ArrayLike | pd.Series],
        *,
        source: str,
        max_points: int = DEFAULT_MAX_POINTS,
        created_at_ms: int | None = None,
    ) -> "ReferenceProfile":
        """Build a profile of raw columns; constant columns are fine. O(n log n) a column.

        Raises ReferenceProfileError for a name that is no file name, no columns, a column without a usable value or
        not of numbers, or `max_points` below 2.

        >>> profile = ReferenceProfile.build("chat", {"tokens": [3, 1, None]}, source="an example")
        >>> profile.features["tokens"].points.tolist(), profile.features["tokens"].n_null
        ([1.0, 3.0], 1)
        """
        where = f"reference {name!r}"
        if not _NAME.fullmatch(name):
            problem = "it may hold letters, digits, '.', '_' and '-', and starts with a letter or digit"
            raise ReferenceProfileError(where, "name", problem, "Choose a name fit for a file.")
        if max_points < 2:
            raise ReferenceProfileError(where, "max_points", f"{max_points} is too few", "Give 2 or more, say 1000.")
        if not columns:
            raise ReferenceProfileError(where, "features", "there are none", "Name at least one numeric feature.")
        features = {}
        for feature, values in columns.items():
            try:
                features[feature] = FeatureReference.from_values(values, max_points=max_points)
            except ValueError as error:
                remedy = "Leave the feature out, or take a source where it holds numbers."
                raise ReferenceProfileError(where, feature, str(error), remedy) from error
        now_ms = time.time_ns() // 1_000_000 if created_at_ms is None else created_at_ms
        return cls(name, source, rfc3339(now_ms), features)

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the canonical content, `created_at` left out."""
        return content_digest(canonical_content(self.name, self.source, self.features))

    @property
    def file_name(self) -> str:
        """`<name>-<first 12 hex digits of the digest>.json`."""
        return f"{self.name}-{self.digest.removeprefix('sha256:')[:DIGEST_HEX_IN_NAME]}.json"

    def feature(self, name: str) -> RankReference:
        """Return a feature's points, prepared for sketches. Raises ReferenceProfileError where it is not in here."""
        if name not in self.features:
            remedy = f"It has: {', '.join(sorted(self.features))}."
            raise ReferenceProfileError(f"reference {self.name!r}", name, "there is no such feature", remedy)
        return self.features[name].ranks

    def save(self, folder: Path | str) -> Path:
        """Write the file into `folder` (made where missing), whole or not at all, and return its path."""
        path = Path(folder) / self.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        unfinished.write_bytes(whole_file(self.name, self.source, self.features, self.digest, self.created_at))
        unfinished.replace(path)
        return path

    @classmethod
    def load(cls, path: Path | str) -> "ReferenceProfile":
        """Read a profile back and verify its digest. Raises ReferenceProfileError naming the field and the remedy."""
        content = read_file(path)
        profile = cls(content.name, content.source, content.created_at, content.features)
        if content.digest != profile.digest:
            problem = f"the content's digest is {profile.digest}, so the file was changed"
            raise ReferenceProfileError(str(path), "digest", problem, "Build it again: a reference is never edited.")
        return profile
