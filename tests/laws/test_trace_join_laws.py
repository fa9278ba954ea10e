"""The join of a trace over messages: how its spans were spread and in which order they came changes no request."""

from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from schemas.semconv import PHASE_SPANS
from tests.otlp import message
from udfs.telemetry import otlp
from udfs.telemetry.batch import ingest_lines
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.request_lines import request_json
from udfs.telemetry.trace_join import Entry, Released, decode_entry, encode_entry, release
from udfs.telemetry.waiting_bucket import release_due
from udfs.telemetry.wall_clock import Cutoff

NOW_NS = 1_700_000_000_000_000_000
KEYS = ["gen_ai.usage.input_tokens", "gen_ai.response.model", "gen_ai.server.ttft", "tenant", "slacktide.attempts"]
KEYS += ["gen_ai.latency.time_in_queue", "error.type", "slacktide.perplexity", "feature.a", "user.id"]
VALUES = st.one_of(
    st.integers(-2, 9).map(lambda n: AnyValue(int_value=n)),
    st.sampled_from([0.0, 0.5, float("nan")]).map(lambda x: AnyValue(double_value=x)),
    st.sampled_from(["a", "7", ""]).map(lambda text: AnyValue(string_value=text)),
)
CHAT = [KeyValue(key="gen_ai.operation.name", value=AnyValue(string_value="chat"))]


@st.composite
def traces(draw: st.DrawFn) -> list[Span]:
    """Spans of one trace, no two of one id: parents known, unknown, none and in circles."""
    spans = []
    for number in draw(st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=8)):
        start_ns = NOW_NS + draw(st.integers(0, 3)) * 1_000_000
        parent = draw(st.integers(0, 9))
        pairs = [KeyValue(key=key, value=draw(VALUES)) for key in draw(st.lists(st.sampled_from(KEYS), max_size=4))]
        spans.append(
            Span(
                trace_id=b"t" * 16,
                span_id=number.to_bytes(8, "big"),
                parent_span_id=parent.to_bytes(8, "big") if parent else b"",
                name=draw(st.sampled_from([*PHASE_SPANS, "POST"])),
                kind=draw(st.integers(0, 5)),
                start_time_unix_nano=start_ns,
                end_time_unix_nano=start_ns + draw(st.integers(0, 3_000_000_000)),
                attributes=pairs + (CHAT if draw(st.booleans()) else []),
                status=Status(code=draw(st.sampled_from([0, 2]))),
            )
        )
    return spans


def read(text: bytes | str) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(text)
    return body


def by_id(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(requests, key=lambda request: str(request["span_id"]))


def entries_of(messages: list[list[Span]], arrivals_ms: list[int]) -> list[Entry]:
    """What waits of these messages if every span waits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(otlp, "open_spans", lambda batch, *_: np.ones(len(batch), dtype=np.bool_))
        texts = ingest_lines([message(spans) for spans in messages], [-1] * len(messages))
    lines = [(at, text.split("\n")) for at, text in zip(arrivals_ms, texts, strict=True)]
    return [Entry(at, line) for at, (_, *of_message) in lines for line in of_message]


def requests_of(released: Released) -> list[dict[str, Any]]:
    return by_id([read(request.json) for request in released.requests])


@settings(max_examples=150)
@given(traces(), st.data())
def test_spread_over_messages_in_any_order_gives_what_one_message_gives(spans: list[Span], data: st.DataObject) -> None:
    table = decode_spans([message(spans)], "otlp_proto")[0]
    whole = by_id([read(text) for text in request_json(table.filter(table["is_request"])).to_pylist()])
    places = data.draw(st.lists(st.integers(0, 3), min_size=len(spans), max_size=len(spans)))
    spread = [[span for span, place in zip(spans, places, strict=True) if place == number] for number in range(4)]
    entries = data.draw(st.permutations(entries_of(spread, [5, 3, 3, 4])))
    released = release(entries, None)
    assert requests_of(released) == whole
    assert released.children == len(spans) - len(whole)
    assert released.waiting == ()


@settings(max_examples=100)
@given(traces(), st.data())
def test_each_span_comes_out_once_however_it_is_released(spans: list[Span], data: st.DataObject) -> None:
    arrivals = data.draw(st.lists(st.integers(0, 40), min_size=len(spans), max_size=len(spans)))
    copies = data.draw(st.lists(st.sampled_from(range(len(spans))), max_size=2))
    messages = [[span] for span in spans] + [[spans[number]] for number in copies]
    entries = entries_of(messages, arrivals + [arrivals[number] for number in copies])
    held: list[Entry] = []
    out: list[dict[str, Any]] = []
    children = 0
    for now_ms in range(41):
        held += [entry for entry in entries if entry.arrival_ms == now_ms]
        released = release([decode_entry(encode_entry(entry)) for entry in held], now_ms - 10)
        held = list(released.waiting)
        out += [read(request.json) for request in released.requests]
        children += released.children
        assert all(entry.arrival_ms > now_ms - 10 or is_below(entry, held) for entry in held)
    last = release(held, None)
    out += [read(request.json) for request in last.requests]
    assert len(out) + children + last.children == len(entries)
    assert len({request["span_id"] for request in out}) == len(out)


def is_below(entry: Entry, held: list[Entry]) -> bool:
    """Whether an entry is old but lies below another that waits."""
    ids = {read(other.line[111:])["span_id"] for other in held if other is not entry}
    return read(entry.line[111:]).get("parent_span_id") in ids


@settings(max_examples=60)
@given(st.lists(traces(), min_size=1, max_size=3), st.integers(0, 40), st.data())
def test_a_bucket_lets_go_what_each_trace_alone_lets_go(of: list[list[Span]], by_ms: int, data: st.DataObject) -> None:
    entries = []
    for number, spans in enumerate(of):
        for span in spans:
            span.trace_id = (number + 1).to_bytes(16, "big")
        arrivals = data.draw(st.lists(st.integers(0, 40), min_size=len(spans), max_size=len(spans)))
        entries.append(entries_of([[span] for span in spans], arrivals))
    alone = [release(of_trace, by_ms) for of_trace in entries]
    texts = data.draw(st.permutations([encode_entry(entry) for of_trace in entries for entry in of_trace]))
    bucket = release_due(texts, Cutoff(by_ms))
    assert sorted(r.json for r in bucket.requests) == sorted(r.json for each in alone for r in each.requests)
    assert bucket.children == sum(each.children for each in alone)
    waiting = texts if bucket.waiting is None else bucket.waiting
    assert sorted(waiting) == sorted(encode_entry(entry) for each in alone for entry in each.waiting)
