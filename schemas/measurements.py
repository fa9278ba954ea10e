"""One metric point, as topic `measurements` carries it: the one list of its fields, and every schema made of that list.

The value is JSON, one flat object a point; a field that is null is left out, zero is a value and is written, and no
number is ever NaN or infinite. What a point holds follows from its kind:

    gauge            `value`
    counter_delta    `value`: what was added from start_time_ms to event_time_ms
    histogram_delta  `count` and `sum` of what was observed in that time, and one of
                     `bounds`, `bucket_counts`: explicit, one count more than bounds; bucket i is (bound i-1, bound i]
                     `scale`, `zero_count`, `zero_threshold`, `positive_*`, `negative_*`: exponential, as in OTLP

So every increase can be added up over any time and any series without another look at where a counter stood.

`python -m schemas.measurements` prints the JSON Schema that lies beside this file as measurements.schema.json.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa

from schemas.field_types import FieldType
from schemas.ids import record_id


class MeasurementKind(StrEnum):
    """What a point is."""

    GAUGE = "gauge"
    COUNTER_DELTA = "counter_delta"
    HISTOGRAM_DELTA = "histogram_delta"


class DataQuality(StrEnum):
    """What a reader should know of a point before it trusts it. The closed list."""

    RESET = "reset"  # the counter began anew: what was added between its last report and its end is lost
    LAYOUT_CHANGED = "layout_changed"  # buckets changed: counts are on the bounds that both layouts have
    SUSPECT_IMPLAUSIBLE = "suspect_implausible"  # the mean is one that no server reaches
    SUSPECT_ALL_ZERO = "suspect_all_zero"  # observations, every one of them 0
    NO_BUCKETS = "no_buckets"  # a count and a sum alone: no quantile can be had
    LABELS_CUT = "labels_cut"  # labels beyond the most that a record may carry
    UNIT_KEPT = "unit_kept"  # buckets in a unit that can't be converted exactly: the name is the source's own


@dataclass(frozen=True, slots=True)
class MeasurementField:
    """One field: its name (unit last), type, meaning, and whether it may be null."""

    name: str
    type: FieldType
    meaning: str
    required: bool = False


_S, _I, _F = FieldType.STRING, FieldType.INT64, FieldType.FINITE
_COUNTS = FieldType.COUNT_ARRAY

MEASUREMENT_FIELDS: tuple[MeasurementField, ...] = (
    MeasurementField(
        "measurement_id", _S, "32 hex digits over series, times and kind: the same point, the same id", True
    ),
    MeasurementField("series_id", _S, "32 hex digits: one metric of one resource with one set of attributes", True),
    MeasurementField("name", _S, "canonical name (schemas.metric_names), or the source's where it has none", True),
    MeasurementField("source_name", _S, "the metric's name as it came", True),
    MeasurementField("kind", _S, "gauge, counter_delta or histogram_delta", True),
    MeasurementField("unit", _S, "UCUM unit of value, bounds and sum: s, By, 1, {token}..."),
    MeasurementField("service_name", _S, "resource attribute service.name, else unknown_service", True),
    MeasurementField("model", _S, "the model that the point speaks of, where it says so"),
    MeasurementField("labels", FieldType.STRING_MAP, "attributes of the point and of its resource, as texts", True),
    MeasurementField("event_time_ms", _I, "time of the point, milliseconds since 1970", True),
    MeasurementField("start_time_ms", _I, "where a delta begins, milliseconds since 1970; null for a gauge"),
    MeasurementField("value", _F, "a gauge's value, or what a counter added"),
    MeasurementField("count", _I, "observations of a histogram"),
    MeasurementField("sum", _F, "sum of the observations"),
    MeasurementField("min", _F, "smallest observation, where the source gives it for this time"),
    MeasurementField("max", _F, "largest observation, where the source gives it for this time"),
    MeasurementField("bounds", FieldType.FINITE_ARRAY, "upper bounds of explicit buckets, ascending, without +Inf"),
    MeasurementField("bucket_counts", _COUNTS, "observations in each bucket, the last above every bound"),
    MeasurementField("scale", _I, "exponential buckets: bucket i is (base^i, base^(i+1)], base = 2^(2^-scale)"),
    MeasurementField("zero_count", _I, "observations within zero_threshold of 0"),
    MeasurementField("zero_threshold", _F, "width of the zero bucket"),
    MeasurementField("positive_offset", _I, "index of the first of positive_counts"),
    MeasurementField("positive_counts", _COUNTS, "observations above the zero bucket"),
    MeasurementField("negative_offset", _I, "index of the first of negative_counts"),
    MeasurementField("negative_counts", _COUNTS, "observations below the zero bucket, by their absolute value"),
    MeasurementField("data_quality", FieldType.STRING_ARRAY, "what to know before trusting the point, or none", True),
)

_BY_NAME = {f.name: f for f in MEASUREMENT_FIELDS}


@dataclass(frozen=True, slots=True)
class Measurement:
    """One point; the meaning of each field is in `MEASUREMENT_FIELDS`. `measurement_id` is derived.

    >>> point = Measurement("s1", "queue_seconds", "q", "gauge", "api", {"pod": "a"}, 1_700_000_000_000, value=0.5)
    >>> Measurement.from_json(point.to_json()) == point
    True
    """

    series_id: str
    name: str
    source_name: str
    kind: str
    service_name: str
    labels: dict[str, str]
    event_time_ms: int
    start_time_ms: int | None = None
    model: str | None = None
    unit: str | None = None
    value: float | None = None
    count: int | None = None
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    bounds: tuple[float, ...] | None = None
    bucket_counts: tuple[int, ...] | None = None
    scale: int | None = None
    zero_count: int | None = None
    zero_threshold: float | None = None
    positive_offset: int | None = None
    positive_counts: tuple[int, ...] | None = None
    negative_offset: int | None = None
    negative_counts: tuple[int, ...] | None = None
    data_quality: tuple[str, ...] = field(default=())

    @property
    def measurement_id(self) -> str:
        """Name of the point: a job that reads its source again gives the same one."""
        start = "" if self.start_time_ms is None else self.start_time_ms
        return record_id(self.series_id, self.kind, start, self.event_time_ms)

    def to_json(self) -> bytes:
        """Return the value of topic `measurements`. O(fields and buckets)."""
        return orjson.dumps({name: value for name in _BY_NAME if (value := getattr(self, name)) is not None})

    @classmethod
    def from_json(cls, value: bytes | str) -> "Measurement":
        """Read one value back; fields that a later version may add are passed over. Raises ValueError on no JSON object
        and where a required field is missing.
        """
        try:
            found = orjson.loads(value)
            taken = {f.name: found[f.name] for f in fields(cls) if f.name in found}
            plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in taken.items()}
            return cls(**plain)
        except (orjson.JSONDecodeError, TypeError) as error:
            raise ValueError(f"no measurement: {error}") from None


def measurement_fields(names: Iterable[str] | None = None) -> tuple[MeasurementField, ...]:
    """Return the fields called `names` in that order, or all. Raises ValueError on a name that is no field.

    >>> [f.type.name for f in measurement_fields(["event_time_ms", "bucket_counts"])]
    ['INT64', 'COUNT_ARRAY']
    """
    if names is None:
        return MEASUREMENT_FIELDS
    wanted = list(names)
    if unknown := [name for name in wanted if name not in _BY_NAME]:
        raise ValueError(f"no field of a measurement: {', '.join(unknown)}; the fields are {', '.join(_BY_NAME)}")
    return tuple(_BY_NAME[name] for name in wanted)


def flink_columns(names: Iterable[str] | None = None) -> str:
    """Return the column list of a Flink CREATE TABLE over topic `measurements` (format json), without parentheses.

    Raises ValueError on a name that is no field.

    >>> print(flink_columns(["name", "labels"]))
    `name` STRING,
      `labels` MAP<STRING, STRING>
    """
    return ",\n  ".join(f"`{f.name}` {f.type.value.flink}" for f in measurement_fields(names))


def spark_ddl(names: Iterable[str] | None = None) -> str:
    """Return the schema as a Spark DDL text. Raises ValueError as above.

    >>> spark_ddl(["bounds", "bucket_counts"])
    'bounds ARRAY<DOUBLE>, bucket_counts ARRAY<BIGINT>'
    """
    return ", ".join(f"{f.name} {f.type.value.spark}" for f in measurement_fields(names))


def arrow_schema(names: Iterable[str] | None = None) -> pa.Schema:
    """Return the pyarrow schema; required fields are not nullable. Raises ValueError as above.

    >>> arrow_schema(["count"]).field("count").type
    DataType(int64)
    """
    return pa.schema([pa.field(f.name, f.type.value.arrow, nullable=not f.required) for f in measurement_fields(names)])


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one value of topic `measurements`: which fields each kind has, too.

    >>> json_schema()["properties"]["kind"]["enum"]
    ['gauge', 'counter_delta', 'histogram_delta']
    """
    properties = {f.name: {"description": f.meaning, **f.type.value.json} for f in MEASUREMENT_FIELDS}
    properties["kind"]["enum"] = [str(kind) for kind in MeasurementKind]
    properties["data_quality"]["items"] = {"enum": [str(flag) for flag in DataQuality]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Measurement",
        "description": "One value of Kafka topic `measurements`.",
        "type": "object",
        "additionalProperties": False,
        "required": [f.name for f in MEASUREMENT_FIELDS if f.required],
        "properties": properties,
        "oneOf": [
            _of_kind(MeasurementKind.GAUGE, ["value"]),
            _of_kind(MeasurementKind.COUNTER_DELTA, ["value", "start_time_ms"]),
            _of_kind(MeasurementKind.HISTOGRAM_DELTA, ["count", "start_time_ms"]),
        ],
        "dependentRequired": {
            "bounds": ["bucket_counts"],
            "bucket_counts": ["bounds"],
            "scale": ["zero_count", "zero_threshold", "positive_offset", "positive_counts", "negative_offset",
                      "negative_counts"],
        },
    }  # fmt: skip


def _of_kind(kind: MeasurementKind, names: list[str]) -> dict[str, Any]:
    return {"properties": {"kind": {"const": str(kind)}}, "required": names}


if __name__ == "__main__":
    print(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode())
