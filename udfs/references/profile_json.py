"""The JSON of a reference profile: infinities as text, floats in their shortest exact form.

Schema version 1 holds numeric features; version 2 holds `categories` as well. A profile without categories is written
as version 1, so that its bytes and its digest are what they always were.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import orjson

from udfs.references.category_feature import CategoryReference
from udfs.references.errors import ReferenceProfileError, missing_reference
from udfs.references.feature import FeatureReference
from udfs.sketches.category import CategoryCounts
from udfs.statistics.categories import Category

NUMERIC_VERSION, CATEGORIES_VERSION = 1, 2
_REMEDY = "Build the reference again with `slacktide reference build`."
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}
_KINDS: dict[str, tuple[type, ...]] = {"text": (str,), "number": (int, float), "truth": (bool,)}
_JSON_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class FileContent:
    """What a file says, its digest not yet verified."""

    name: str
    source: str
    created_at: str
    digest: str
    features: dict[str, FeatureReference]
    categories: dict[str, CategoryReference]


def canonical_content(
    name: str, source: str, features: Mapping[str, FeatureReference], categories: Mapping[str, CategoryReference]
) -> bytes:
    """Return the bytes that the digest is over: keys sorted, no spaces, without `created_at`."""
    return orjson.dumps(_content(name, source, features, categories), option=orjson.OPT_SORT_KEYS)


def whole_file(
    name: str,
    source: str,
    features: Mapping[str, FeatureReference],
    categories: Mapping[str, CategoryReference],
    *,
    digest: str,
    created_at: str,
) -> bytes:
    """Return the bytes of the file."""
    version = CATEGORIES_VERSION if categories else NUMERIC_VERSION
    head = {"schema_version": version, "digest": digest, "created_at": created_at}
    content = _content(name, source, features, categories)
    return orjson.dumps(head | content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_file(path: Path | str) -> FileContent:
    """Read a file, every field checked. Raises ReferenceProfileError naming file, field and remedy."""
    where = str(path)
    try:
        body = orjson.loads(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise missing_reference(path, "build", ".json") from error
    except OSError as error:
        raise ReferenceProfileError(where, "file", f"{error.strerror}", _REMEDY) from error
    except orjson.JSONDecodeError as error:
        raise ReferenceProfileError(where, "file", f"it is not JSON ({error})", _REMEDY) from error
    reader = _Reader(where)
    version = CATEGORIES_VERSION if isinstance(body, dict) and "categories" in body else NUMERIC_VERSION
    if not isinstance(body, dict) or body.get("schema_version") != version:
        reader.refuse("schema_version", f"it must be {NUMERIC_VERSION}, or {CATEGORIES_VERSION} with categories")
    categories = reader.field("categories", body, dict) if version == CATEGORIES_VERSION else {}
    return FileContent(
        name=reader.field("name", body, str),
        source=reader.field("source", body, str),
        created_at=reader.field("created_at", body, str),
        digest=reader.field("digest", body, str),
        features={name: reader.feature(name, value) for name, value in reader.field("features", body, dict).items()},
        categories={name: reader.category(name, value) for name, value in categories.items()},
    )


def _content(
    name: str, source: str, features: Mapping[str, FeatureReference], categories: Mapping[str, CategoryReference]
) -> dict[str, Any]:
    content = {"name": name, "source": source, "features": {key: _feature(features[key]) for key in sorted(features)}}
    if categories:
        content["categories"] = {key: _category(categories[key]) for key in sorted(categories)}
    return content


def _feature(feature: FeatureReference) -> dict[str, Any]:
    # Left out where it is unknown: files written before it was thought of keep their digests.
    known = {} if feature.autocorrelation is None else {"autocorrelation": feature.autocorrelation}
    return known | {
        "n_raw": feature.n_raw,
        "n_null": feature.n_null,
        "n_infinite": feature.n_infinite,
        "minimum": _number(feature.minimum),
        "maximum": _number(feature.maximum),
        "quantisation_bound": feature.quantisation_bound,
        "points": [_number(point) for point in feature.points.tolist()],
    }


def _category(feature: CategoryReference) -> dict[str, Any]:
    counts = feature.counts
    by_kind = {
        kind: [
            [_number(value) if isinstance(value, float) else value, counts.counts[Category(kind, value)]]
            for _, value in sorted(category for category in counts.counts if category.kind == kind)
        ]
        for kind in _KINDS
    }
    body = {"n_null": counts.n_null, "n_other": counts.n_other, "n_categories": feature.n_categories}
    return body | {"counts": {kind: pairs for kind, pairs in by_kind.items() if pairs}}


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


@dataclass(frozen=True)
class _Reader:
    """Takes fields out of one file, refusing what is not as it must be."""

    where: str

    def refuse(self, field_name: str, problem: str) -> NoReturn:
        raise ReferenceProfileError(self.where, field_name, problem, _REMEDY)

    def field(self, path: str, body: dict[str, Any], kind: type) -> Any:
        value = body.get(path.rsplit(".", 1)[-1])
        if not isinstance(value, kind) or isinstance(value, bool):
            self.refuse(path, f"it must be {_JSON_NAMES[kind]}")
        return value

    def number(self, path: str, value: Any) -> float:
        if isinstance(value, str) and value in _INFINITIES:
            return _INFINITIES[value]
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.refuse(path, "it must be a number, 'Infinity' or '-Infinity'")
        return float(value)

    def feature(self, name: str, body: Any) -> FeatureReference:
        path = f"features.{name}"
        if not isinstance(body, dict):
            self.refuse(path, "it must be an object")
        points = np.array([self.number(f"{path}.points", p) for p in self.field(f"{path}.points", body, list)])
        if not points.size or np.any(points[1:] < points[:-1]):
            self.refuse(f"{path}.points", "it must be a list of one number or more, ascending")
        return FeatureReference(
            points=points,
            n_raw=self.field(f"{path}.n_raw", body, int),
            n_null=self.field(f"{path}.n_null", body, int),
            n_infinite=self.field(f"{path}.n_infinite", body, int),
            minimum=self.number(f"{path}.minimum", body.get("minimum")),
            maximum=self.number(f"{path}.maximum", body.get("maximum")),
            quantisation_bound=self.number(f"{path}.quantisation_bound", body.get("quantisation_bound")),
            autocorrelation=self.share(f"{path}.autocorrelation", body.get("autocorrelation")),
        )

    def share(self, path: str, value: Any) -> float | None:
        """A number from 0 up to, not including, 1, or nothing."""
        if value is None:
            return None
        number = self.number(path, value)
        if not 0.0 <= number < 1.0:
            self.refuse(path, "it must be 0 or more and below 1, or be left out")
        return number

    def category(self, name: str, body: Any) -> CategoryReference:
        path = f"categories.{name}"
        if not isinstance(body, dict):
            self.refuse(path, "it must be an object")
        n_null, n_other, n_categories = (
            self.field(f"{path}.{key}", body, int) for key in ("n_null", "n_other", "n_categories")
        )
        kinds = self.field(f"{path}.counts", body, dict)
        counts = {
            Category(kind, value): count
            for kind, pairs in kinds.items()
            for value, count in self.pairs(f"{path}.counts.{kind}", kind, pairs)
        }
        if not counts:
            self.refuse(f"{path}.counts", "it must name at least one category")
        return CategoryReference(CategoryCounts(counts, n_null, n_other), n_categories)

    def pairs(self, path: str, kind: str, pairs: Any) -> list[tuple[Any, int]]:
        """Take a list of [category, count]."""
        if kind not in _KINDS or not isinstance(pairs, list):
            self.refuse(path, f"it must be one of {', '.join(_KINDS)}, and a list")
        taken = []
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2 or type(pair[1]) is not int or pair[1] < 1:
                self.refuse(path, "it must hold pairs of a category and a count of at least 1")
            value = self.number(path, pair[0]) if kind == "number" and isinstance(pair[0], str) else pair[0]
            if type(value) not in _KINDS[kind]:
                self.refuse(path, f"{pair[0]!r} is no {kind}")
            taken.append((value, pair[1]))
        return taken
