"""Which span is a request, and what the spans below it in its message add."""

from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.otlp import message
from udfs.telemetry.otlp import decode_spans

END_MS = 1_700_000_000_000
CHAT = {"gen_ai.operation.name": "chat"}


def span(
    number: int,
    parent: int = 0,
    *,
    name: str = "span",
    kind: int = Span.SPAN_KIND_INTERNAL,
    trace: int = 1,
    seconds: float = 1.0,
    error: bool = False,
    attributes: dict[str, str | int] | None = None,
) -> Span:
    pairs = [
        KeyValue(key=key, value=AnyValue(string_value=v) if isinstance(v, str) else AnyValue(int_value=v))
        for key, v in (attributes or {}).items()
    ]
    return Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=name,
        kind=kind,
        start_time_unix_nano=END_MS * 1_000_000 - int(seconds * 1e9),
        end_time_unix_nano=END_MS * 1_000_000,
        attributes=pairs,
        status=Status(code=Status.STATUS_CODE_ERROR) if error else None,
    )


def decode(*spans: Span) -> list[dict[str, Any]]:
    table, dead = decode_spans([message(list(spans))], "otlp_proto")
    assert dead == []
    return table.to_pylist()


def requests_of(*spans: Span) -> list[int]:
    return [number for number, row in enumerate(decode(*spans)) if row["is_request"]]


SERVER, CLIENT, INTERNAL = Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_INTERNAL
USAGE = {"gen_ai.usage.prompt_tokens": 0}


@pytest.mark.parametrize(
    ("kind", "attributes", "expected"),
    [
        (CLIENT, CHAT, True),
        (INTERNAL, CHAT, True),  # a model in the same process
        (Span.SPAN_KIND_UNSPECIFIED, CHAT, True),
        (Span.SPAN_KIND_PRODUCER, CHAT, False),
        (Span.SPAN_KIND_CONSUMER, CHAT, False),
        (CLIENT, {"gen_ai.operation.name": "generate_content"}, True),
        (CLIENT, {"gen_ai.operation.name": "embeddings", **USAGE}, False),
        (CLIENT, {"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m"}, False),
        (CLIENT, {"gen_ai.operation.name": "", **USAGE}, True),  # says nothing, shows tokens
        (INTERNAL, {"openinference.span.kind": "LLM"}, True),
        (INTERNAL, {"openinference.span.kind": "TOOL", "gen_ai.operation.name": "chat"}, True),  # precedence
        (CLIENT, {"openinference.span.kind": "CHAIN", **USAGE}, False),
        (INTERNAL, {"langfuse.observation.type": "generation"}, True),
        (INTERNAL, {"ai.operationId": "ai.generateText.doGenerate"}, True),
        (SERVER, USAGE, True),  # vLLM's llm_request: a zero is evidence too
        (SERVER, {"gen_ai.request.model": "m"}, True),
        (INTERNAL, USAGE, False),  # a phase of a request whose own span is elsewhere
        (SERVER, {"http.request.method": "POST", "gen_ai.latency.e2e": 1}, False),
        (SERVER, {}, False),
    ],
)
def test_which_span_is_a_request(kind: int, attributes: dict[str, Any], expected: bool) -> None:
    assert decode(span(1, kind=kind, attributes=attributes))[0]["is_request"] is expected


def test_the_topmost_genai_span_is_the_request_whatever_the_wire_order() -> None:
    http, chat = span(1, kind=SERVER), span(2, 1, attributes=CHAT)
    between, inner = span(3, 2), span(4, 3, kind=SERVER, attributes=USAGE)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        spans = [[http, chat, between, inner][place] for place in order]
        assert requests_of(*spans) == [order.index(1)]
        assert decode(*spans)[order.index(1)]["child_span_count"] == 2


def test_siblings_below_what_is_no_request_are_requests_each() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent"}
    spans = [span(1, attributes=agent), span(2, 1, attributes=CHAT), span(3, 1, attributes=CHAT)]
    assert requests_of(*spans) == [1, 2]
    assert [row["attempts"] for row in decode(*spans)] == [1, 1, 1]


def test_parents_count_within_one_trace_and_one_message_only() -> None:
    assert requests_of(span(1, attributes=CHAT), span(2, 1, trace=2, attributes=CHAT)) == [0, 1]
    first, second = message([span(1, attributes=CHAT)]), message([span(2, 1, attributes=CHAT)])
    assert decode_spans([first, second], "otlp_proto")[0].column("is_request").to_pylist() == [True, True]
    assert decode_spans([first, second], "otlp_proto")[0].column("child_span_count").to_pylist() == [0, 0]


def test_spans_whose_parents_form_a_circle_have_no_parent() -> None:
    circle = [span(1, 2, attributes=CHAT), span(2, 1, attributes=CHAT), span(3, 2, attributes=CHAT)]
    assert requests_of(*circle) == [0, 1, 2]
    assert requests_of(span(1, 1, attributes=CHAT), span(2, 1)) == [0]


def test_a_long_chain_of_parents_is_followed_to_its_top() -> None:
    chain = [span(number, number - 1, attributes=CHAT if number == 1 else None) for number in range(1, 3001)]
    rows = decode(*chain)
    assert [rows[0]["child_span_count"], sum(row["is_request"] for row in rows)] == [2999, 1]


def test_retries_fold_into_attempts_and_what_lies_deeper_does_not_count() -> None:
    outer = span(1, kind=CLIENT, attributes=CHAT)
    tries = [span(number, 1, kind=CLIENT, attributes=CHAT, error=number < 4) for number in (2, 3, 4)]
    served = span(5, 4, kind=SERVER, attributes=USAGE)
    (row,) = (row for row in decode(outer, *tries, served) if row["is_request"])
    assert (row["attempts"], row["child_span_count"], row["is_error"]) == (3, 4, False)
    once = decode(outer, span(2, 1, kind=SERVER, attributes=USAGE))[0]
    assert (once["attempts"], once["child_span_count"]) == (1, 1)


def test_an_attribute_for_attempts_wins_over_counting() -> None:
    outer = span(1, attributes=CHAT | {"slacktide.attempts": 5})
    assert decode(outer, span(2, 1, attributes=CHAT))[0]["attempts"] == 5


def test_children_fill_only_what_is_null_the_first_without_error_first() -> None:
    request = span(1, attributes=CHAT | {"gen_ai.usage.output_tokens": 0})
    failed = span(2, 1, error=True, attributes={"gen_ai.usage.input_tokens": 1, "tenant": "a", "error.type": "timeout"})
    first = span(
        3, 1, attributes={"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 9, "gpu.model": "H100"}
    )
    second = span(4, 1, attributes={"gen_ai.usage.input_tokens": 3})
    row = decode(request, failed, first, second)[0]
    assert (row["input_tokens"], row["output_tokens"]) == (2, 0)
    assert (row["tenant"], row["accelerator_type"]) == ("a", "H100")
    assert (row["is_error"], row["error_type"]) == (False, None)  # the request itself did not fail


def test_a_failed_request_takes_the_error_type_of_its_failed_child() -> None:
    row = decode(span(1, error=True, attributes=CHAT), span(2, 1, error=True, attributes={"error.type": "timeout"}))[0]
    assert (row["is_error"], row["error_type"]) == (True, "timeout")


def test_phase_spans_give_their_seconds_summed_where_no_attribute_does() -> None:
    request = span(1, attributes=CHAT)
    phases = [span(2, 1, name="queue", seconds=0.5), span(3, 1, name="prefill", seconds=0.25)]
    decodes = [span(number, 1, name="decode", seconds=0.125) for number in (4, 5)]
    row = decode(request, *phases, *decodes, span(6, 1, name="decoder"))[0]
    assert (row["queue_seconds"], row["prefill_seconds"], row["decode_seconds"]) == (0.5, 0.25, 0.25)
    given = span(3, 1, name="prefill", attributes={"gen_ai.latency.time_in_model_prefill": 0})
    assert decode(request, given)[0]["prefill_seconds"] == 0.0


def test_end_to_end_is_the_span_itself_unless_it_says_otherwise() -> None:
    inner = span(2, 1, seconds=1.0, attributes={"gen_ai.latency.e2e": 1})
    assert decode(span(1, seconds=2.5, attributes=CHAT), inner)[0]["end_to_end_seconds"] == 2.5
    said = span(1, seconds=2.5, attributes=CHAT | {"gen_ai.latency.e2e": 0})
    assert decode(said, inner)[0]["end_to_end_seconds"] == 0.0


def test_a_span_delivered_twice_in_one_message_stays_two_rows_and_its_children_belong_to_the_first() -> None:
    rows = decode(span(1, attributes=CHAT), span(1, attributes=CHAT), span(2, 1))
    assert [(row["is_request"], row["child_span_count"]) for row in rows] == [(True, 1), (True, 0), (False, 0)]
