"""What the metrics job calls first: a batch of Kafka messages in, one text of lines a message out.

    B{"points":n}                   one a message, first
    P + family (32 hex digits) + place in the message (8 digits) + JSON of the point, one that can be used
    D{"reason":...}                 one that can't: dead_lines.py

No line holds a line break. For every message, points = its P and D lines; a message that can't be read counts as one.
"""

from collections.abc import Sequence
from functools import lru_cache

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from schemas.ids import record_id
from udfs.telemetry.batch import AUTO, encoding_of
from udfs.telemetry.dead_lines import dead_line
from udfs.telemetry.encodings import ENCODINGS, unknown_encoding
from udfs.telemetry.metric_points import MetricPoint
from udfs.telemetry.metric_series import NS_PER_MS
from udfs.telemetry.otlp_metrics import read_points

FAMILY_AT, PLACE_AT, POINT_AT = 1, 33, 41

_SKEW = "the point's time is later after its Kafka timestamp than the allowed skew"


def metric_lines(
    values: Sequence[bytes | None],
    kafka_timestamps_ms: Sequence[int],
    *,
    encoding: str = AUTO,
    lenient: bool = False,
    max_skew_ms: int,
) -> list[str]:
    """Return one text of lines for each message (format above), in the order of `values`.

    `encoding` is otlp_proto, otlp_json, or auto (judged message by message). A None value gives a dead letter
    `no_value`. A point more than `max_skew_ms` after its message's Kafka timestamp is `clock_skew`; a negative one
    means that Kafka has none, and checks nothing. Never raises on content; ValueError on an unknown encoding. O(bytes).

    >>> print(*metric_lines([b"", None], [0, 0], max_skew_ms=0), sep="; ")  # doctest: +ELLIPSIS
    B{"points":0}; B{"points":1}
    D{"reason":"no_value",...
    """
    if encoding not in (AUTO, *ENCODINGS):
        raise unknown_encoding(encoding)
    pairs = zip(values, kafka_timestamps_ms, strict=True)
    return [_lines(value, stamp + max_skew_ms if stamp >= 0 else None, encoding, lenient) for value, stamp in pairs]


def family_of(point: MetricPoint) -> str:
    """Return the name of what has one cap of series: a metric of a service."""
    return _family(point.service_name, point.source_name)


@lru_cache(maxsize=4096)
def _family(service_name: str, source_name: str) -> str:
    return record_id(service_name, source_name)


def _lines(value: bytes | None, latest_ms: int | None, encoding: str, lenient: bool) -> str:
    lines: list[str] = []
    if value is None:
        letter = DeadLetter(Reason.NO_VALUE, "the message has no value", 0, WHOLE_MESSAGE, b"")
        return f'B{{"points":1}}\n{dead_line(letter)}'
    chosen = encoding_of(value) if encoding == AUTO else encoding
    for found in read_points(0, value, chosen, lenient=lenient):
        if isinstance(found, DeadLetter):
            lines.append(dead_line(found))
            continue
        place, point = found
        if latest_ms is not None and point.time_ns > latest_ms * NS_PER_MS:
            letter = DeadLetter(Reason.CLOCK_SKEW, _SKEW, 0, place, point.to_json())
            lines.append(dead_line(letter, point.time_ns // NS_PER_MS))
        else:
            lines.append(f"P{family_of(point)}{place:08d}{point.to_json().decode()}")
    return "\n".join([f'B{{"points":{len(lines)}}}', *lines])
