"""Requests read by the headers that ingest writes: the same packets, letters and counts as by their values."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.request_headers import LABELS, NUMBERS, request_headers
from schemas.requests import REQUEST_FIELDS
from udfs.flink_drift import TakeRequests
from udfs.judging.window_judge import Input, InputKind
from udfs.slicing.from_headers import in_headers
from udfs.slicing.label_table import MOST_KEPT
from udfs.slicing.packets import unpack
from udfs.slicing.slicer import NO_TIME_MS, Batch, RequestSlicer, SlicePlan, Taken

NOW_MS = 1_000_000_000_000
BOUND_MS = 5_000
INPUTS = (
    Input("input_tokens", InputKind.NUMBER),
    Input("perplexity", InputKind.NUMBER),
    Input("arm", InputKind.TEXT),
    Input("is_error", InputKind.TEXT),
)
PLANS = (
    SlicePlan("by model", ("model", "tenant"), 10_000, 1, INPUTS),
    SlicePlan("all", (), 4_000, 2, INPUTS[:1]),
)


def slicer(*plans: SlicePlan) -> RequestSlicer:
    return RequestSlicer("drift", plans or PLANS, "requests", max_skew_ms=300_000)


def batch(requests: list[dict[str, Any]], has_headers: list[bool], keeps_value: bool = True) -> Batch:
    """As the engine gives it: the value goes along where there are no headers, or the record is late."""
    headers = [dict(request_headers(request)) for request in requests]
    seen = np.array([max(request["event_time_ms"], 0) for request in requests], dtype=np.int64)
    closed = np.maximum.accumulate(seen) - BOUND_MS
    values: list[bytes | None] = [orjson.dumps(request) for request in requests]
    timestamps = np.full(len(values), NOW_MS)
    if not keeps_value:
        unsure = ~np.array(has_headers) | (seen <= np.maximum(closed, 0)) | (seen > NOW_MS + 300_000)
        values = [value if which else None for value, which in zip(values, unsure, strict=True)]
        timestamps[~unsure] = closed[~unsure] = NO_TIME_MS
    return Batch(
        values=values,
        partitions=[0] * len(values),
        offsets=np.arange(len(values)),
        timestamps_ms=timestamps,
        seen_ms=seen,
        closed_ms=closed,
        numbers=[of["numbers_v1"] if has else None for of, has in zip(headers, has_headers, strict=True)],
        labels=[of["labels_v1"] if has else None for of, has in zip(headers, has_headers, strict=True)],
    )


def by_values(of: Batch) -> Batch:
    return Batch(of.values, of.partitions, of.offsets, of.timestamps_ms, of.seen_ms, of.closed_ms)


REQUESTS = st.builds(
    lambda event_time_ms, fields: {"event_time_ms": event_time_ms} | fields,
    st.integers(NOW_MS - 60_000, NOW_MS + 320_000) | st.sampled_from([-1, 0]),
    st.fixed_dictionaries(
        {},
        optional={
            "model": st.sampled_from(["a", "b", "", 'with "quotes"', "é"]),
            "tenant": st.sampled_from(["t", "u"]),
            "input_tokens": st.integers(-(2**63), 2**63 - 1),
            "perplexity": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["NaN", "-Infinity"]),
            "arm": st.sampled_from(["treatment", "control"]),
            "is_error": st.booleans(),
        },
    ),
)


def in_order(taken: Taken) -> Taken:
    """The order of packets in a batch means nothing: each stands in its own row."""
    return replace(taken, packets=[sorted(of, key=lambda packet: packet.row) for of in taken.packets])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(REQUESTS, st.booleans()), min_size=1, max_size=40), st.booleans())
def test_headers_and_values_give_the_same(rows: list[tuple[dict[str, Any], bool]], keeps_value: bool) -> None:
    requests, has_headers = map(list, zip(*rows, strict=True))
    expected = slicer().take(by_values(batch(requests, has_headers)))
    assert in_order(slicer().take(batch(requests, has_headers, keeps_value))) == in_order(expected)


@pytest.mark.parametrize(
    ("numbers", "labels"),
    [
        (b"", None),
        (b"\x00" * 8, None),
        (None, b"[]"),
        (None, b"not JSON"),
        (None, b"{}"),
        (None, b"\xff\xfe"),
        (None, b"[" * 100_000),
    ],
)
def test_headers_that_cannot_be_read_fall_back_to_the_value(numbers: bytes | None, labels: bytes | None) -> None:
    request = {"event_time_ms": NOW_MS, "model": "a", "input_tokens": 3}
    good = batch([request, request], [True, True])
    bad = Batch(
        **{name: getattr(good, name) for name in ("values", "partitions", "offsets", "timestamps_ms", "seen_ms")},
        closed_ms=good.closed_ms,
        numbers=[good.numbers[0], numbers if numbers is not None else good.numbers[1]],
        labels=[good.labels[0], labels if labels is not None else good.labels[1]],
    )
    assert slicer().take(bad) == slicer().take(by_values(good))


def reasons(taken: Taken) -> dict[int, tuple[str, str]]:
    letters = {row: orjson.loads(letter) for row, letter in taken.letters.items()}
    return {row: (letter["reason"], letter["detail"]) for row, letter in letters.items()}


def test_bad_headers_without_a_value_are_a_dead_letter_not_a_loss() -> None:
    request = {"event_time_ms": NOW_MS, "model": "a", "input_tokens": 3}
    of = batch([request, request | {"event_time_ms": NOW_MS + 1}, request], [True] * 3, keeps_value=False)
    of.seen_ms[1] = NOW_MS  # the headers of one record that contradict each other
    of.numbers[2] = b"short"  # type: ignore[index]
    taken = slicer().take(of)
    refused = "bad_value", "its headers can't be read, or tell another event time"
    assert reasons(taken) == {1: refused, 2: refused}
    assert (taken.n_dead, [packet.n for packet in taken.packets[0]]) == (2, [1])


def test_a_record_without_value_and_headers_has_no_value() -> None:
    of = batch([{"event_time_ms": NOW_MS}], [False])
    of.values[0] = None  # type: ignore[index]
    assert reasons(slicer().take(of))[0][0] == "no_value"


def test_headers_serve_where_they_have_all_that_is_wanted() -> None:
    assert slicer().reads_headers
    for field, kind in (
        ("attributes.temperature", InputKind.NUMBER),
        ("prompt_embedding", InputKind.VECTOR),
        ("input_tokens", InputKind.TEXT),
        ("arm", InputKind.NUMBER),
    ):
        assert not in_headers(Input(field, kind))
        assert not slicer(SlicePlan("m", (), 1000, 1, (INPUTS[0], Input(field, kind)))).reads_headers
    assert not slicer(SlicePlan("m", ("user_hash",), 1000, 1, INPUTS)).reads_headers


def test_the_lists_are_fields_and_stay_as_they_are() -> None:
    """Their order is the format of records that lie in topics: another list needs another version."""
    fields = {field.name: field.type.name for field in REQUEST_FIELDS}
    assert {fields[name] for name in NUMBERS} == {"INT64", "FLOAT64"}
    assert {fields[name] for name in LABELS} == {"STRING", "BOOL"}
    assert (len(NUMBERS), NUMBERS[0], NUMBERS[5], NUMBERS[-1]) == (
        23, "event_time_ms", "end_to_end_seconds", "child_span_count")  # fmt: skip
    assert (len(LABELS), LABELS[0], LABELS[8], LABELS[-1]) == (18, "service_name", "experiment", "guardrail_triggered")


def test_the_rows_that_flink_gets() -> None:
    of = batch([{"event_time_ms": NOW_MS, "model": "a", "input_tokens": 2**53 + 1, "perplexity": "Infinity"}], [True])
    times = [pd.to_datetime(pd.Series(ms), unit="ms") for ms in (of.timestamps_ms, of.seen_ms, of.closed_ms)]
    columns = [pd.Series(column) for column in ([None], of.partitions, of.offsets)]
    headers = [pd.Series(of.numbers), pd.Series(of.labels)]
    (row,) = TakeRequests(slicer()).eval(*columns, *times, *headers)
    tokens, perplexity, arms, errors = unpack([row[1][0]], INPUTS)
    assert (row[0][0], list(tokens), list(perplexity)) == (b'["a",""]', [float(2**53)], [math.inf])
    assert (arms, errors) == ([None], [None])


def test_the_table_of_labels_is_bounded_and_means_nothing_to_results() -> None:
    """Labels that are nearly all distinct: the table starts anew again and again."""
    of = slicer(SlicePlan("by tenant", ("tenant",), 10_000, 1, INPUTS, max_series=10**9))
    for start in range(0, 4 * MOST_KEPT, MOST_KEPT // 2 + 1):
        tenants = range(start, start + MOST_KEPT // 2 + 1)
        requests = [{"event_time_ms": NOW_MS, "tenant": str(tenant), "arm": "a"} for tenant in tenants]
        taken = of.take(batch(requests[:50], [True] * 50))
        assert {packet.series for packet in taken.packets[0]} == {f'["{start + n}"]' for n in range(50)}
        of.take(batch(requests, [True] * len(requests)))
        assert len(of._labels._codes) <= 2 * MOST_KEPT
