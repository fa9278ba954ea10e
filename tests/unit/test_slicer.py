"""Requests taken apart without an engine: packets for slices, late and dead requests, counts."""

import math
from collections import Counter
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.flink_drift import TakeRequests
from udfs.judging.window_judge import Input, InputKind
from udfs.slicing.body import Body, decoder
from udfs.slicing.fields import column
from udfs.slicing.packets import pack, unpack
from udfs.slicing.slicer import NO_TIME_MS, Batch, RequestSlicer, SlicePlan, Taken

TOKENS = Input("input_tokens", InputKind.NUMBER)
ARM = Input("arm", InputKind.TEXT)
EMBEDDING = Input("prompt_embedding", InputKind.VECTOR)
BY_MODEL = SlicePlan("by_model", ("model",), 10_000, 1, (TOKENS, ARM))
ALL = SlicePlan("all", (), 4_000, 2, (TOKENS,))
NOW_MS = 1_000_000


BOUND_MS = 5_000


def slicer(*plans: SlicePlan) -> RequestSlicer:
    return RequestSlicer("drift", plans or (BY_MODEL, ALL), "requests", max_skew_ms=300_000)


def request(event_time_ms: Any, **fields: Any) -> bytes:
    return orjson.dumps({"event_time_ms": event_time_ms} | fields)


def batch(values: list[bytes | None], seen_ms: list[int] | None = None, **columns: Any) -> Batch:
    """A batch as the engine gives it: one partition, no watermark yet, its own idea of event times."""
    seen = np.array(seen_ms if seen_ms is not None else [orjson.loads(v or b"0")["event_time_ms"] for v in values])
    body = {
        "values": values,
        "partitions": [0] * len(values),
        "offsets": np.arange(len(values)),
        "timestamps_ms": np.full(len(values), NOW_MS),
        "seen_ms": seen,
        "closed_ms": np.maximum.accumulate(np.minimum(seen, NOW_MS)) - BOUND_MS,
    }
    return Batch(**(body | columns))


def reasons(taken: Taken) -> dict[int, str]:
    return {row: orjson.loads(letter)["reason"] for row, letter in taken.letters.items()}


def test_a_packet_holds_a_series_slice_and_stands_in_its_last_row() -> None:
    values = [
        request(10_000, model="a", input_tokens=1, arm="x"),
        request(10_500, model="b", input_tokens=2),
        request(19_999, model="a", input_tokens=None, arm="y"),
        request(20_000, model="a", input_tokens=4),
    ]
    taken = slicer(BY_MODEL).take(batch(values))
    found = {
        (packet.series, packet.row): [list(c) for c in unpack([packet.data], BY_MODEL.inputs)]
        for packet in taken.packets[0]
    }
    assert found.keys() == {('["a"]', 2), ('["b"]', 1), ('["a"]', 3)}
    tokens, arms = found['["a"]', 2]
    assert tokens[0] == 1.0
    assert math.isnan(tokens[1])
    assert arms == ["x", "y"]
    assert (taken.letters, taken.late, taken.n_dead) == ({}, [0], 0)


def test_shards_cut_a_slice_by_offset() -> None:
    values = [request(NOW_MS, input_tokens=n) for n in range(5)]
    packets = slicer(ALL).take(batch(values)).packets[0]
    parts = sorted(unpack([packet.data], ALL.inputs)[0].tolist() for packet in packets)  # type: ignore[union-attr]
    assert parts == [[0.0, 2.0, 4.0], [1.0, 3.0]]


def test_late_by_the_partition_for_one_monitor_and_in_time_for_another() -> None:
    values = [request(19_000), request(10_000), request(7_000)]
    taken = slicer().take(batch(values))
    assert taken.late == [1, 2]
    letters = {row: orjson.loads(letter) for row, letter in taken.letters.items()}
    assert {row: letter["detail"] for row, letter in letters.items()} == {
        1: "its slice had closed for all",
        2: "its slice had closed for by_model, all",
    }
    assert letters[1]["event_time_ms"] == 10_000
    assert sum(packet.n for packet in taken.packets[0]) == 2


def test_late_to_the_millisecond() -> None:
    for closed, late in ((NO_TIME_MS, 0), (9_998, 0), (9_999, 1)):
        taken = slicer(BY_MODEL).take(batch([request(9_999)], closed_ms=np.array([closed])))
        assert taken.late == [late]


@pytest.mark.parametrize(
    ("value", "seen_ms", "reason"),
    [
        (None, 0, "no_value"),
        (b"", 0, "no_value"),
        (b"\xff\xfe", 0, "malformed_json"),
        (b'{"event_time_ms": 17', 0, "malformed_json"),
        (b"[]", 0, "malformed_json"),
        (b'"event_time_ms"', 0, "malformed_json"),
        (b"123", 0, "malformed_json"),
        (request(None), 0, "bad_time"),
        (request("soon"), 0, "bad_time"),
        (request(-1), 0, "bad_time"),
        (request(0), 0, "bad_time"),
        (request(1.5), 0, "bad_time"),
        (request(True), 0, "bad_time"),
        (request(NOW_MS + 300_001), NOW_MS + 300_001, "clock_skew"),
        (b'{"attributes": {"event_time_ms": 5}, "event_time_ms": 9000}', 5, "bad_time"),
        (b'{"event_time_ms": 5, "event_time_ms": 9000}', 5, "bad_time"),
    ],
)
def test_what_can_not_be_used_is_a_dead_letter_with_its_bytes(value: bytes | None, seen_ms: int, reason: str) -> None:
    values = [request(9_000), value, request(9_001)]
    taken = slicer().take(batch(values, seen_ms=[9_000, seen_ms, 9_001], closed_ms=np.full(3, 4_001)))
    assert reasons(taken) == {1: reason}
    letter = orjson.loads(taken.letters[1])
    assert (letter["topic"], letter["partition"], letter["offset"]) == ("requests", 0, 1)
    assert (letter["length"], letter["kafka_timestamp_ms"]) == (len(value or b""), NOW_MS)
    assert taken.n_dead == 1
    assert [sum(packet.n for packet in packets) for packets in taken.packets] == [2, 2]


def test_five_minutes_ahead_is_still_in_time() -> None:
    assert not slicer().take(batch([request(NOW_MS + 300_000)])).letters


def bodies(field: str, *values: str) -> list[Body]:
    """Requests whose `field` has these JSON texts as values; "" leaves it out."""
    decode = decoder((field,)).decode
    return [
        decode(f'{{"event_time_ms": 1{value and f", {orjson.dumps(field).decode()}: {value}"}}}') for value in values
    ]


def test_a_field_of_the_wrong_kind_is_null_and_the_request_stays() -> None:
    numbers = (
        "1",
        "2.5",
        "true",
        '"NaN"',
        '"Infinity"',
        '"-Infinity"',
        '"7"',
        "[1]",
        "{}",
        "null",
        "",
        "1" + "0" * 400,
    )
    expected = [1.0, 2.5, math.nan, math.nan, math.inf, -math.inf] + [math.nan] * 6
    np.testing.assert_array_equal(column(bodies("input_tokens", *numbers), TOKENS), expected)
    texts = bodies("arm", '"a"', "1", "1.5", "false", "null", "[]")
    assert column(texts, ARM) == ["a", "1", "1.5", "false", None, None]
    vectors = column(bodies("prompt_embedding", "[1, 2.5]", "[]", '["a"]', "[true]", '"x"', "null"), EMBEDDING)
    assert [None if v is None else v.tolist() for v in vectors] == [[1.0, 2.5], None, None, None, None, None]
    attribute = Input("attributes.temperature", InputKind.NUMBER)
    found = column(bodies("attributes", '{"temperature": 0.5}', "{}", "null", '"x"'), attribute)
    np.testing.assert_array_equal(found, [0.5, math.nan, math.nan, math.nan])


def test_a_label_that_is_absent_empty_or_no_text() -> None:
    values = [request(NOW_MS, model=model) for model in ("", None, 1, True, "1", ["a"])]
    packets = slicer(BY_MODEL).take(batch(values)).packets[0]
    assert {packet.series: packet.n for packet in packets} == {'[""]': 3, '["1"]': 2, '["true"]': 1}


def test_packets_of_another_monitor_are_refused() -> None:
    with pytest.raises(ValueError, match="other columns"):
        unpack([pack([TOKENS], [np.zeros(1)])], [ARM])
    with pytest.raises(ValueError, match="no packet"):
        unpack([b"\x09"], [ARM])


VALUES = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.builds(
        lambda t, m, v: orjson.dumps({"event_time_ms": t, "model": m, "input_tokens": v}),
        st.integers(1, 60_000) | st.integers(NOW_MS, NOW_MS + 400_000),
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(0, 9) | st.sampled_from(["NaN", "Infinity", "x"]),
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=30), st.integers(1, 30))
def test_every_record_is_counted_once_however_batches_are_cut(values: list[bytes | None], size: int) -> None:
    def seen(value: bytes | None) -> int:
        try:
            return int(orjson.loads(value or b"")["event_time_ms"])
        except (ValueError, TypeError, KeyError):
            return 0

    whole = batch(values, seen_ms=[seen(value) for value in values])
    total: Counter[tuple[int, str]] = Counter()
    dead = late = 0
    letters: dict[int, bytes] = {}
    for start in range(0, len(values), size):
        cut = slice(start, start + size)
        part = Batch(*(getattr(whole, name)[cut] for name in Batch.__dataclass_fields__))
        taken = slicer().take(part)
        for monitor, packets in enumerate(taken.packets):
            for packet in packets:
                total[monitor, packet.series] += packet.n
        dead, late = dead + taken.n_dead, late + taken.late[0]
        letters |= {start + row: letter for row, letter in taken.letters.items()}
    at_once = slicer().take(whole)
    assert letters == at_once.letters
    assert (dead, late) == (at_once.n_dead, at_once.late[0])
    assert sum(n for (monitor, _), n in total.items() if monitor == 0) + late + dead == len(values)
    once: Counter[tuple[int, str]] = Counter()
    for monitor, packets in enumerate(at_once.packets):
        for packet in packets:
            once[monitor, packet.series] += packet.n
    assert total == once


def test_the_rows_that_flink_gets() -> None:
    values = [request(9_000, model="a", input_tokens=1), b"garbage", request(9_500, model="a", input_tokens=2)]
    stamp = pd.to_datetime(pd.Series([NOW_MS] * 3), unit="ms")
    seen = pd.to_datetime(pd.Series([9_000, 0, 9_500]), unit="ms")
    closed = pd.Series([pd.NaT] * 3)
    offsets = pd.Series([7, 8, 10])
    rows = TakeRequests(slicer()).eval(pd.Series(values), pd.Series([0] * 3), offsets, stamp, seen, closed)
    series, packets, sizes, letters, counts = zip(*rows, strict=True)
    assert sizes == ([b"0", b"1"], [b"0", b"0"], [b"2", b"1"])
    assert series == ([None, b"[]"], [None, None], [b'["a"]', b"[]"])
    assert [[cell is not None for cell in row] for row in packets] == [[False, True], [False, False], [True, True]]
    assert [None if cell is None else len(cell) for cell in letters] == [None, 1, None]
    assert counts == ([b"3", b"1", b"0", b"0"], None, None)
