"""Embedding reference: the stored centroid and similarities that windows of embeddings are judged against (spec D3).

It is one JSON file, named by its digest, `<name>-<first 12 hex digits>.embedding.json`, and never changed. It holds no
embedding but their centroid, and at most some thousand of the cosines that the reference's own embeddings have to it.
"""

import math
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import orjson
from numpy.typing import NDArray

from schemas.ids import content_digest
from schemas.times import rfc3339
from udfs.references.errors import ReferenceProfileError, missing_reference
from udfs.references.feature import FeatureReference
from udfs.sketches.reference import RankReference
from udfs.sketches.vector_sum import VectorSum
from udfs.statistics.cosines import cosines_to

SCHEMA_VERSION = 1
DEFAULT_MAX_POINTS = 1000
SHORTEST_CENTROID = 1e-6
"""Below it the directions cancel out (VectorSum rounds at 1e-10): there is no centroid to be near to."""

_DIGEST_HEX_IN_NAME = 12
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_REBUILD = "Build the reference again: one is never edited."


@dataclass(frozen=True, eq=False)
class EmbeddingReference:
    """What is kept of a sample of embeddings.

    `centroid` is the mean of the unit embeddings, float64 of shape (dimension,), at most 1 long. `similarity_points`
    are the cosines of the reference's own embeddings to it, ascending, compressed as `udfs.references.feature` does
    it; `mean_cosine` is the mean of all. `n` counts the embeddings that took part; zero ones, those of another
    dimension or with NaN or an infinity, and missing ones are counted apart. The digest covers all but `created_at`.
    """

    name: str
    source: str
    created_at: str
    centroid: NDArray[np.float64]
    mean_cosine: float
    similarity_points: NDArray[np.float64]
    quantisation_bound: float
    n: int
    n_zero: int
    n_invalid: int
    n_null: int

    @property
    def dimension(self) -> int:
        """How many entries an embedding has."""
        return int(self.centroid.size)

    @cached_property
    def direction(self) -> NDArray[np.float64]:
        """The centroid scaled to length 1: float64 of shape (dimension,)."""
        return np.asarray(self.centroid / math.hypot(*self.centroid.tolist()))

    @cached_property
    def similarities(self) -> RankReference:
        """The similarity points, prepared for sketches."""
        return RankReference.from_values(self.similarity_points, n_null=self.n_zero + self.n_invalid + self.n_null)

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hex digits over the canonical content."""
        return content_digest(orjson.dumps(self._content(), option=orjson.OPT_SORT_KEYS))

    @property
    def file_name(self) -> str:
        """`<name>-<first 12 hex digits of the digest>.embedding.json`."""
        return f"{self.name}-{self.digest.removeprefix('sha256:')[:_DIGEST_HEX_IN_NAME]}.embedding.json"

    def save(self, folder: Path | str) -> Path:
        """Write the file into `folder` (made where missing), whole or not at all, and return its path."""
        path = Path(folder) / self.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = {"schema_version": SCHEMA_VERSION, "digest": self.digest, "created_at": self.created_at}
        unfinished = path.with_suffix(f".{os.getpid()}.unfinished")
        unfinished.write_bytes(orjson.dumps(head | self._content(), option=orjson.OPT_INDENT_2))
        unfinished.replace(path)
        return path

    @classmethod
    def load(cls, path: Path | str) -> "EmbeddingReference":
        """Read a reference back and verify its digest. Raises ReferenceProfileError naming the field and the remedy."""
        where = str(path)
        try:
            body = orjson.loads(Path(path).read_bytes())
        except FileNotFoundError as error:
            raise missing_reference(path, "embed", ".embedding.json") from error
        except OSError as error:
            raise ReferenceProfileError(where, "file", f"{error.strerror}", _REBUILD) from error
        except orjson.JSONDecodeError as error:
            raise ReferenceProfileError(where, "file", f"it is not JSON ({error})", _REBUILD) from error
        if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
            raise ReferenceProfileError(where, "schema_version", f"it must be {SCHEMA_VERSION}", _REBUILD)
        reference = _from_body(_Body(where, body))
        if body.get("digest") != reference.digest:
            problem = f"the content's digest is {reference.digest}, so the file was changed"
            raise ReferenceProfileError(where, "digest", problem, _REBUILD)
        return reference

    def _content(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "source": self.source,
            "dimension": self.dimension,
            "n": self.n,
            "n_zero": self.n_zero,
            "n_invalid": self.n_invalid,
            "n_null": self.n_null,
            "mean_cosine": self.mean_cosine,
            "quantisation_bound": self.quantisation_bound,
            "centroid": self.centroid.tolist(),
            "similarity_points": self.similarity_points.tolist(),
        }


def build_embedding_reference(
    vectors: Sequence[Any] | NDArray[Any],
    *,
    name: str,
    source: str,
    max_points: int = DEFAULT_MAX_POINTS,
    created_at_ms: int | None = None,
) -> EmbeddingReference:
    """Build a reference of raw embeddings: an array of shape (n, dimension), or a list of vectors, some of them None.

    The dimension is the commonest one; of two as common, the larger. Raises ReferenceProfileError for a name that is no
    file name, `max_points` below 2, no usable embedding, entries that are no numbers, and directions that cancel out.
    O(n dimension).

    >>> reference = build_embedding_reference([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], None], name="chat", source="example")
    >>> reference.dimension, reference.n, reference.n_zero, reference.n_null, round(reference.mean_cosine, 6)
    (2, 2, 1, 1, 0.707107)
    """
    where = f"embedding reference {name!r}"
    if not _NAME.fullmatch(name):
        problem = "it may hold letters, digits, '.', '_' and '-', and starts with a letter or digit"
        raise ReferenceProfileError(where, "name", problem, "Choose a name fit for a file.")
    if max_points < 2:
        raise ReferenceProfileError(where, "max_points", f"{max_points} is too few", "Give 2 or more, say 1000.")
    try:
        total = VectorSum.from_vectors(vectors, _commonest_dimension(vectors))
    except ValueError as error:
        raise ReferenceProfileError(where, "vectors", str(error), "Give lists of numbers.") from error
    centroid, length = total.centroid(), total.resultant_length()
    if centroid is None or length is None:
        problem = f"there is no usable embedding ({len(vectors)} looked at)"
        raise ReferenceProfileError(where, "vectors", problem, "Take a source where the field holds embeddings.")
    if length < SHORTEST_CENTROID:
        problem = "their directions cancel out, so they have no centroid"
        raise ReferenceProfileError(where, "vectors", problem, "Split the sample: by template, tenant or language.")
    cosines = cosines_to(vectors, np.asarray(centroid / math.hypot(*centroid.tolist())))
    now_ms = time.time_ns() // 1_000_000 if created_at_ms is None else created_at_ms
    present = cosines[~np.isnan(cosines)]
    similarities = FeatureReference.from_values(present, max_points=max_points)
    return EmbeddingReference(
        name=name,
        source=source,
        created_at=rfc3339(now_ms),
        centroid=centroid,
        mean_cosine=math.fsum(present) / total.n,
        similarity_points=similarities.points,
        quantisation_bound=similarities.quantisation_bound,
        n=total.n,
        n_zero=total.n_zero,
        n_invalid=total.n_invalid,
        n_null=total.n_null,
    )


def _commonest_dimension(vectors: Sequence[Any] | NDArray[Any]) -> int:
    lengths = Counter(len(v) for v in vectors if v is not None and np.ndim(v) == 1 and len(v))
    return max(lengths, key=lambda length: (lengths[length], length), default=1)


@dataclass(frozen=True)
class _Body:
    """Takes fields out of a file's object, refusing what is not as it must be."""

    where: str
    body: Mapping[str, Any]

    def refuse(self, name: str, problem: str) -> NoReturn:
        raise ReferenceProfileError(self.where, name, problem, _REBUILD)

    def text(self, name: str) -> str:
        found = self.body.get(name)
        return found if isinstance(found, str) else self.refuse(name, "it must be text")

    def count(self, name: str) -> int:
        found = self.body.get(name)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            self.refuse(name, "it must be a whole number of at least 0")
        return found

    def number(self, name: str) -> float:
        return float(self.numbers(name, [self.body.get(name)])[0])

    def numbers(self, name: str, found: Any) -> NDArray[np.float64]:
        if not isinstance(found, list) or not found:
            self.refuse(name, "it must be a list of numbers")
        if any(isinstance(entry, bool) or not isinstance(entry, int | float) for entry in found):
            self.refuse(name, "it must be numbers")
        return np.array(found, dtype=np.float64)


def _from_body(file: _Body) -> EmbeddingReference:
    centroid = file.numbers("centroid", file.body.get("centroid"))
    points = file.numbers("similarity_points", file.body.get("similarity_points"))
    if centroid.size != file.count("dimension"):
        file.refuse("dimension", f"it is not the centroid's {centroid.size}")
    if not math.hypot(*centroid.tolist()) >= SHORTEST_CENTROID:
        file.refuse("centroid", "its length is 0")
    if np.any(points[1:] < points[:-1]):
        file.refuse("similarity_points", "they must ascend")
    return EmbeddingReference(
        name=file.text("name"),
        source=file.text("source"),
        created_at=file.text("created_at"),
        centroid=centroid,
        mean_cosine=file.number("mean_cosine"),
        similarity_points=points,
        quantisation_bound=file.number("quantisation_bound"),
        n=file.count("n"),
        n_zero=file.count("n_zero"),
        n_invalid=file.count("n_invalid"),
        n_null=file.count("n_null"),
    )
