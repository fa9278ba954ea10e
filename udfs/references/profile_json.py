"""The JSON of a reference profile, schema version 1: infinities as text, floats in their shortest exact form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import orjson

from udfs.references.errors import ReferenceProfileError
from udfs.references.feature import FeatureReference

SCHEMA_VERSION = 1
_REMEDY = "Build the reference again with `slacktide reference build`."
_INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}
_JSON_NAMES = {str: "text", int: "a whole number", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class FileContent:
    """What a file says, its digest not yet verified."""

    name: str
    source: str
    created_at: str
    digest: str
    features: dict[str, FeatureReference]


def canonical_content(name: str, source: str, features: Mapping[str, FeatureReference]) -> bytes:
    """Return the bytes that the digest is over: keys sorted, no spaces, without `created_at`."""
    return orjson.dumps(_content(name, source, features), option=orjson.OPT_SORT_KEYS)


def whole_file(name: str, source: str, features: Mapping[str, FeatureReference], digest: str, created_at: str) -> bytes:
    """Return the bytes of the file."""
    head = {"schema_version": SCHEMA_VERSION, "digest": digest, "created_at": created_at}
    return orjson.dumps(head | _content(name, source, features), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def read_file(path: Path | str) -> FileContent:
    """Read a file, every field checked. Raises ReferenceProfileError naming file, field and remedy."""
    where = str(path)
    try:
        body = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise ReferenceProfileError(where, "file", f"{error.strerror}", _REMEDY) from error
    except orjson.JSONDecodeError as error:
        raise ReferenceProfileError(where, "file", f"it is not JSON ({error})", _REMEDY) from error
    reader = _Reader(where)
    if not isinstance(body, dict) or body.get("schema_version") != SCHEMA_VERSION:
        reader.refuse("schema_version", f"it must be {SCHEMA_VERSION}")
    return FileContent(
        name=reader.field("name", body, str),
        source=reader.field("source", body, str),
        created_at=reader.field("created_at", body, str),
        digest=reader.field("digest", body, str),
        features={name: reader.feature(name, value) for name, value in reader.field("features", body, dict).items()},
    )


def _content(name: str, source: str, features: Mapping[str, FeatureReference]) -> dict[str, Any]:
    return {"name": name, "source": source, "features": {key: _feature(features[key]) for key in sorted(features)}}


def _feature(feature: FeatureReference) -> dict[str, Any]:
    return {
        "n_raw": feature.n_raw,
        "n_null": feature.n_null,
        "n_infinite": feature.n_infinite,
        "minimum": _number(feature.minimum),
        "maximum": _number(feature.maximum),
        "quantisation_bound": feature.quantisation_bound,
        "points": [_number(point) for point in feature.points.tolist()],
    }


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
        )
