"""The records that a service level may be counted from, and which of their fields are numbers, texts and labels."""

from dataclasses import dataclass

from jobs.yaml_fields import Place, nearest
from schemas.field_types import FieldType
from schemas.requests import request_fields
from schemas.scores import REQUEST_LABELS

REQUESTS, SCORES, MEASUREMENTS = "requests", "scores", "measurements"


@dataclass(frozen=True)
class RecordFields:
    """The fields of one topic's records. Of those in `maps` any name may be asked for, as `MAP.NAME`.

    `named_by` is the field that says which figure a record is, and must be given; None where a record has all figures.
    """

    topic: str
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    number_maps: tuple[str, ...] = ()
    text_maps: tuple[str, ...] = ()
    named_by: str | None = None

    def is_number(self, place: Place, name: str) -> bool:
        """Whether a field is a number, else a text, or true and false. Refuses a name that is no field."""
        before, dot, after = name.partition(".")
        if dot and after and before in self.number_maps + self.text_maps:
            return before in self.number_maps
        if name not in self.numbers + self.texts:
            maps = "".join(f", {of}.NAME" for of in self.number_maps + self.text_maps)
            place.refuse(f"{name!r} is no field of {self.topic}", nearest(name, self.numbers + self.texts, maps))
        return name in self.numbers


# They name one request, one person, one instant, or are what somebody wrote: nothing to count by.
_NOTHING_TO_COUNT_BY = frozenset(
    {"trace_id", "span_id", "parent_span_id", "user_hash", "event_time_ms", "start_time_ms", "prompt", "response"}
)


def _request_fields(*types: FieldType) -> tuple[str, ...]:
    return tuple(f.name for f in request_fields() if f.type in types and f.name not in _NOTHING_TO_COUNT_BY)


SOURCES = {
    REQUESTS: RecordFields(
        REQUESTS,
        numbers=_request_fields(FieldType.INT64, FieldType.FLOAT64),
        texts=_request_fields(FieldType.STRING, FieldType.BOOL),
        labels=_request_fields(FieldType.STRING),
        number_maps=("attributes",),
    ),
    SCORES: RecordFields(
        SCORES,
        numbers=("value", "sampling_rate"),
        texts=("score", "label", "status", "truncated", "scorer", "scorer_version", *REQUEST_LABELS),
        labels=(*REQUEST_LABELS, "scorer", "scorer_version"),
        number_maps=("judge",),
        named_by="score",
    ),
    MEASUREMENTS: RecordFields(
        MEASUREMENTS,
        numbers=("value", "count", "sum"),
        texts=("name", "source_name", "kind", "unit", "service_name", "model"),
        labels=("service_name", "model", "series_id"),
        text_maps=("labels",),
        named_by="name",
    ),
}
JUDGE_F1, SAMPLING_RATE = "judge.f1", "sampling_rate"
