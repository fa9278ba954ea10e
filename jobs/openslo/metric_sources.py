"""`metricSource` of type slacktide: which records, under which conditions, and which figure of them."""

from dataclasses import dataclass, fields
from typing import Any

from jobs.monitors import FEATURES
from jobs.openslo.documents import Documents, mapping
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
from schemas.requests import numeric_field_names
from udfs.slicing.fields import ATTRIBUTE
from udfs.slo.adaptive_latency import AdaptiveLatency
from udfs.slo.conditions import NUMBER_OPERATORS, TEXT_OPERATORS, Condition, NumberIs, TextIs, WithinAdaptiveLatency

Fields = dict[str, tuple[Check, Any]]
OWN_TYPE = "slacktide"
REQUESTS = "requests"
_NUMBERS = frozenset(numeric_field_names())


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
_SPEC = {
    "from": (one_of((REQUESTS,)), REQUESTS),
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
    """What a metricSource of ours says."""

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
    where = [condition_of(at.field(f"spec.where[{n}]"), one) for n, one in enumerate(spec["where"])]
    if spec["adaptive_latency"] is not None:
        where.append(_adaptive(at.field("spec.adaptive_latency"), spec["adaptive_latency"]))
    return Source(
        tuple(where),
        spec["field"],
        spec["quantile"],
        bool(spec["per_second"]),
        spec["window"],
        spec["slide"],
        at.field("spec"),
    )


def condition_of(place: Place, body: Any) -> Condition:
    """Read one condition: `{field: end_to_end_seconds, op: lt, value: 2.5}`."""
    values = fields_of(place, body, _CONDITION)
    name, op, value = values["field"], values["op"], values["value"]
    if is_number_field(place.field("field"), name):
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


def is_number_field(place: Place, name: str) -> bool:
    """Whether a field of a request is a number, else a text, or true and false. Refuses a name that is no field."""
    if name.startswith(ATTRIBUTE) and len(name) > len(ATTRIBUTE):
        return True
    if name not in FEATURES:
        place.refuse(f"{name!r} is no field of a request", nearest(name, FEATURES, f", {ATTRIBUTE}NAME"))
    return name in _NUMBERS


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
        if not is_number_field(place.field(name), values[name]):
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
