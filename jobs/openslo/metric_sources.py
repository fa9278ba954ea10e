"""`metricSource` of type slacktide: which records, under which conditions, and which figure of them."""

from dataclasses import dataclass, fields
from typing import Any

from jobs.openslo.documents import Documents, mapping
from jobs.openslo.record_fields import MEASUREMENTS, REQUESTS, SOURCES, RecordFields
from jobs.openslo.values import part_of_a_minute
from jobs.yaml_fields import (
    REQUIRED,
    Check,
    Place,
    WrongValueError,
    fields_of,
    finite_number,
    nearest,
    one_of,
    optional,
    some_list,
    strictly_between_0_and_1,
    text,
)
from schemas.metric_names import canonical_metric
from udfs.slo.adaptive_latency import AdaptiveLatency
from udfs.slo.conditions import NUMBER_OPERATORS, TEXT_OPERATORS, Condition, NumberIs, TextIs, WithinAdaptiveLatency

Fields = dict[str, tuple[Check, Any]]
OWN_TYPE = "slacktide"


def _true(value: Any) -> bool:
    if value is not True:
        raise WrongValueError(f"{value!r} is not true", "Write `per_second: true`, or leave it out")
    return True


_METRIC = {"metricSource": (mapping, REQUIRED)}
_SOURCE = {
    "metricSourceRef": (optional(text), None),
    "type": (optional(text), None),
    "spec": (mapping, REQUIRED),
}
_DATA_SOURCE = {"description": (optional(text), None), "type": (text, REQUIRED), "connectionDetails": (mapping, {})}
_SPEC: Fields = {
    "from": (one_of(tuple(SOURCES)), REQUESTS),
    "score": (optional(text), None),
    "name": (optional(text), None),
    "at_most": (optional(finite_number), None),
    "where": (some_list, []),
    "adaptive_latency": (optional(mapping), None),
    "field": (optional(text), None),
    "quantile": (optional(strictly_between_0_and_1), None),
    "per_second": (optional(_true), None),
    "window": (optional(part_of_a_minute), None),
    "slide": (optional(part_of_a_minute), None),
}
_CONDITION = {"field": (text, REQUIRED), "op": (text, "eq"), "value": (lambda value: value, REQUIRED)}


@dataclass(frozen=True)
class Source:
    """What a metricSource of ours says. `records` are those it counts; `at_most` is for a histogram's buckets."""

    records: RecordFields
    at_most: float | None
    where: tuple[Condition, ...]
    field: str | None
    quantile: float | None
    per_second: bool
    window_ms: int | None
    slide_ms: int | None
    place: Place


def source_of(place: Place, body: Any, documents: Documents) -> Source:
    """Read `good`, `bad`, `total` or `thresholdMetric`. Raises ConfigurationError for what Slacktide can't read."""
    at = place.field("metricSource")
    values = fields_of(at, fields_of(place, body, _METRIC)["metricSource"], _SOURCE)
    _check_type(at, values, documents)
    spec = fields_of(at.field("spec"), values["spec"], _SPEC)
    records = SOURCES[spec["from"]]
    where: list[Condition] = [*_named(at.field("spec"), spec, records)]
    where += [condition_of(at.field(f"spec.where[{n}]"), one, records) for n, one in enumerate(spec["where"])]
    if spec["adaptive_latency"] is not None:
        if records.topic != REQUESTS:
            at.field("spec.adaptive_latency").refuse(f"is not of {records.topic}", "Count from requests")
        where.append(_adaptive(at.field("spec.adaptive_latency"), spec["adaptive_latency"]))
    return Source(
        records,
        spec["at_most"],
        tuple(where),
        spec["field"],
        spec["quantile"],
        bool(spec["per_second"]),
        spec["window"],
        spec["slide"],
        at.field("spec"),
    )


def _named(place: Place, spec: dict[str, Any], records: RecordFields) -> list[Condition]:
    """Which score, or which metric: it must be said where a topic holds several."""
    for name in ("score", "name"):
        if spec[name] is not None and name != records.named_by:
            place.field(name).refuse(f"is not of {records.topic}", "Leave it out, or name another topic under `from`")
    if records.named_by is None:
        return []
    if spec[records.named_by] is None:
        place.field(records.named_by).refuse("is missing", f"Topic {records.topic} holds many; name the one to count")
    wanted = spec[records.named_by]
    if records.topic == MEASUREMENTS:
        canonical = canonical_metric(wanted, "", {}).name
        if canonical != wanted:
            remedy = f"Write {canonical}: topic measurements has it so, in that unit, whatever server it is from"
            place.field("name").refuse(f"{wanted} is a server's own name", remedy)
    return [TextIs(records.named_by, (wanted,))]


def condition_of(place: Place, body: Any, records: RecordFields) -> Condition:
    """Read one condition: `{field: end_to_end_seconds, op: lt, value: 2.5}`."""
    values = fields_of(place, body, _CONDITION)
    name, op, value = values["field"], values["op"], values["value"]
    if records.is_number(place.field("field"), name):
        if op not in NUMBER_OPERATORS:
            place.field("op").refuse(f"{op!r} can't be asked of a number", nearest(op, NUMBER_OPERATORS))
        return NumberIs(name, op, _checked(place.field("value"), value))
    if op not in TEXT_OPERATORS:
        place.field("op").refuse(f"{op!r} can't be asked of a text, or of true and false", nearest(op, TEXT_OPERATORS))
    wanted = value if isinstance(value, list) else [value]
    if (op in ("in", "not_in")) != isinstance(value, list) or not wanted:
        place.field("value").refuse(f"{value!r} does not go with {op}", "Give a list to in and not_in, else one text")
    texts = tuple(_text(place.field("value"), entry) for entry in wanted)
    return TextIs(name, texts, among=op in ("eq", "in"))


def check_data_sources(documents: Documents) -> None:
    """Check the DataSources of the file, those that no metric names too."""
    for document in documents.of("DataSource"):
        document.check_annotations(())
        fields_of(document.spec_place, document.spec, _DATA_SOURCE)


def _check_type(place: Place, values: dict[str, Any], documents: Documents) -> None:
    """Refuse a source that some other system would have to be asked for."""
    named, reference = values["type"], values["metricSourceRef"]
    if reference is not None:
        document = documents.get("DataSource", reference, place.field("metricSourceRef"))
        of_document = fields_of(document.spec_place, document.spec, _DATA_SOURCE)["type"]
        named = of_document if named is None else named
        if named != of_document:
            place.field("type").refuse(f"{named} is not the type of DataSource {reference}", "Leave one of them out")
    if named is None:
        place.field("type").refuse("is missing", "Name the type, slacktide, or a DataSource of that type")
    if named.lower() != OWN_TYPE:
        remedy = "Slacktide reads its own topics: write `type: slacktide` and what to count, as docs/slos.md shows"
        place.field("type").refuse(f"Slacktide can't ask {named}", remedy)


def _adaptive(place: Place, body: dict[str, Any]) -> WithinAdaptiveLatency:
    known: Fields = {one.name: (finite_number, one.default) for one in fields(AdaptiveLatency)}
    names: Fields = {one.name: (text, one.default) for one in fields(WithinAdaptiveLatency) if one.name != "limit"}
    values = fields_of(place, body, known | names)
    for name in names:
        if not SOURCES[REQUESTS].is_number(place.field(name), values[name]):
            place.field(name).refuse(f"{values[name]!r} is no number", "Name a field of a request that is a number")
    try:
        limit = AdaptiveLatency(**{name: values[name] for name in known})
    except ValueError as error:
        place.refuse(str(error), "Mend the numbers; the published ones are 1200, 0.002, 1.5 and 0.8")
    return WithinAdaptiveLatency(limit, **{name: values[name] for name in names})


def _checked(place: Place, value: Any) -> float:
    try:
        return float(finite_number(value))
    except WrongValueError as wrong:
        place.refuse(wrong.problem, wrong.remedy)


def _text(place: Place, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        place.refuse(f"{value!r} is no text", "Put it in quotes, or write true or false")
    return value
