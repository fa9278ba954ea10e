"""What the metrics job's first call makes of a batch: lines of points and dead letters, every point once."""

import base64

import orjson
import pytest

from schemas.dead_letters import WHOLE_MESSAGE, Reason
from tests.otlp_metrics import as_proto, at, counter, gauge, metrics_json
from udfs.telemetry.dead_lines import record_of_line
from udfs.telemetry.metric_lines import FAMILY_AT, PLACE_AT, POINT_AT, family_of, metric_lines
from udfs.telemetry.metric_points import MetricPoint

NOW = 1_700_000_000
GOOD = metrics_json(
    counter("c", at(NOW, asInt="1"), {"asInt": "2"}, at(NOW + 1, asInt="3")), gauge("g", at(NOW, asInt=4))
)


def points_of(text: str) -> list[MetricPoint]:
    return [MetricPoint.from_json(line[POINT_AT:]) for line in text.split("\n") if line[0] == "P"]


def letters_of(text: str) -> list[dict[str, object]]:
    return [orjson.loads(line[1:]) for line in text.split("\n") if line[0] == "D"]


def test_both_encodings_in_one_batch_are_told_apart() -> None:
    in_json, in_proto = metric_lines([GOOD, as_proto(GOOD)], [NOW * 1000] * 2, max_skew_ms=0 + 1000)
    assert points_of(in_json) == points_of(in_proto)
    assert [point.value for point in points_of(in_json)] == [1, 3, 4]
    books, *rest = in_json.split("\n")
    assert (books, len(rest)) == ('B{"points":4}', 4)
    assert [line[PLACE_AT:POINT_AT] for line in rest if line[0] == "P"] == ["00000000", "00000002", "00000003"]
    assert len({line[FAMILY_AT:PLACE_AT] for line in rest if line[0] == "P"}) == 2
    ((bad),) = letters_of(in_json)
    assert (bad["reason"], bad["index"]) == (Reason.BAD_TIME, 1)


def test_a_point_ahead_of_its_message_is_skewed_and_kept_whole() -> None:
    (text,) = metric_lines([GOOD], [NOW * 1000 - 500], max_skew_ms=500)
    (bad, skewed) = sorted(letters_of(text), key=lambda letter: str(letter["reason"]))
    assert (bad["reason"], skewed["reason"], skewed["index"]) == (Reason.BAD_TIME, Reason.CLOCK_SKEW, 2)
    assert skewed["event_time_ms"] == (NOW + 1) * 1000
    assert MetricPoint.from_json(base64.b64decode(str(skewed["payload_base64"]))).value == 3
    (unchecked,) = metric_lines([GOOD], [-1], max_skew_ms=0)
    assert len(points_of(unchecked)) == 3


def test_no_value_garbage_and_an_empty_message() -> None:
    none, garbage, empty = metric_lines([None, b"\xff\x00", b""], [0, 0, 0], max_skew_ms=0)
    assert [letters_of(text)[0]["reason"] for text in (none, garbage)] == [Reason.NO_VALUE, Reason.MALFORMED_PROTO]
    assert empty == 'B{"points":0}'
    place = {"topic": "t", "partition": 1, "offset": 2, "kafka_timestamp_ms": 3}
    record = orjson.loads(record_of_line(garbage.split("\n")[1], job="ingest-metrics", **place))
    assert (record["index"], record["payload_base64"]) == (WHOLE_MESSAGE, base64.b64encode(b"\xff\x00").decode())
    with pytest.raises(ValueError, match="unknown encoding 'avro'"):
        metric_lines([], [], encoding="avro", max_skew_ms=0)


def test_no_label_breaks_a_line() -> None:
    odd = 'a\nb\r\u2028\x00,"}P'
    (text,) = metric_lines([metrics_json(gauge(odd, at(NOW, asInt=1)), service=odd)], [-1], max_skew_ms=0)
    assert text.count("\n") == 1
    (point,) = points_of(text)
    assert (point.source_name, point.service_name) == (odd, odd)
    assert text.split("\n")[1][FAMILY_AT:PLACE_AT] == family_of(point)
