"""Decode: microseconds a span, beside walking protobuf messages in Python (peer) and ptars alone (limit).

    python -m tests.bench.bench_decode

Messages are what vLLM and a gateway send: 64 spans of 17 attributes. All figures are CPU time of the process, with
Arrow held to one thread, the best of several passes: other work on the machine disturbs them little.
"""

import random
import sys
import time
from collections.abc import Callable

import orjson
import pyarrow as pa
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.bench.report import Row, at_most, print_table
from tests.bench.walk_spans import walk
from tests.otlp_encodings import encode
from udfs.telemetry.batch import ingest_lines
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.otlp_descriptor import span_reader
from udfs.telemetry.request_lines import request_json

MESSAGES, SPANS, PASSES = 100, 64, 15
TARGET_US = 8.0
END_MS = 1_700_000_000_000


def exports(messages: int = MESSAGES, seed: int = 7) -> list[ExportTraceServiceRequest]:
    """Return the benchmark's messages; every span has 17 attributes."""
    draw = random.Random(seed)
    return [_export(draw) for _ in range(messages)]


def _export(draw: random.Random) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.extend(_pairs({"service.name": "chat", "gpu.model": "H100"}))
    resource_spans.scope_spans.add().spans.extend(_span(draw) for _ in range(SPANS))
    return request


def _span(draw: random.Random) -> Span:
    seconds = draw.lognormvariate(1, 0.5)
    end_ns = (END_MS + draw.randrange(60_000)) * 1_000_000
    span = Span(
        trace_id=draw.randbytes(16),
        span_id=draw.randbytes(8),
        parent_span_id=draw.randbytes(8),
        name="llm_request",
        kind=Span.SPAN_KIND_SERVER,
        start_time_unix_nano=end_ns - int(seconds * 1e9),
        end_time_unix_nano=end_ns,
    )
    span.attributes.extend(
        _pairs(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "vllm",
                "gen_ai.response.model": "meta-llama/Llama-3.1-8B-Instruct",
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.usage.prompt_tokens": draw.randrange(1, 8000),
                "gen_ai.usage.completion_tokens": draw.randrange(0, 2000),
                "gen_ai.latency.time_to_first_token": seconds / 10,
                "gen_ai.latency.time_in_queue": seconds / 50,
                "gen_ai.latency.e2e": seconds,
                "gen_ai.request.max_tokens": 2048,
                "gen_ai.request.temperature": 0.7,
                "tenant.id": f"tenant-{draw.randrange(20)}",
                "experiment.variant": draw.choice(["a", "b"]),
                "adapter_id": f"lora-{draw.randrange(8)}",
                "slacktide.kv_cache_hit_ratio": draw.random(),
                "slacktide.prompt_entropy": draw.gauss(4, 0.3),
                "slacktide.is_streaming": True,
            }
        )
    )
    return span


def _pairs(values: dict[str, str | bool | int | float | list[str]]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any_value(value)) for key, value in values.items()]


def _any_value(value: str | bool | int | float | list[str]) -> AnyValue:
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[AnyValue(string_value=text) for text in value]))
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(int_value=value) if isinstance(value, int) else AnyValue(double_value=value)


def us_per_span(work: Callable[[], object], spans: int, passes: int = PASSES) -> float:
    """Return the least CPU time of this process, in microseconds a span, of `passes` passes."""
    best = float("inf")
    for _ in range(passes):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / spans * 1e6


def main() -> bool:
    """Print the table; return whether the target is met. Raises AssertionError where values differ from the peer's."""
    pa.set_cpu_count(1)
    requests = exports()
    assert {len(span.attributes) for span in requests[0].resource_spans[0].scope_spans[0].spans} == {17}
    proto = [encode(request, "otlp_proto") for request in requests]
    json = [encode(request, "otlp_json") for request in requests]
    spans = MESSAGES * SPANS
    table = decode_spans(proto, "otlp_proto")[0]
    assert table.equals(decode_spans(json, "otlp_json")[0]), "the two encodings differ"
    rows = [row | {"attributes": dict(row["attributes"])} for row in table.to_pylist()]
    assert rows == walk(proto), "the decoder and the walk differ"
    stamps = [END_MS + 60_000] * MESSAGES

    limit = us_per_span(lambda: span_reader().list_to_record_batch(proto), spans)
    peer = us_per_span(lambda: walk(proto), spans, passes=3)
    ours = us_per_span(lambda: decode_spans(proto, "otlp_proto"), spans)
    target, reached = at_most(ours, TARGET_US)
    one_by_one = us_per_span(lambda: [decode_spans([message], "otlp_proto") for message in proto], spans, passes=3)
    poisoned = [message[:-1] if number % 100 == 50 else message for number, message in enumerate(proto)]
    as_json = us_per_span(lambda: decode_spans(json, "otlp_json"), spans, passes=3)
    parse = us_per_span(lambda: [orjson.loads(message) for message in json], spans, passes=3)
    texts = us_per_span(lambda: request_json(table), spans)
    dicts = us_per_span(lambda: _by_dictionaries(table), spans, passes=3)
    print_table(
        f"Decode: {MESSAGES} messages of {SPANS} spans of 17 attributes, CPU time",
        [
            Row("decode_spans otlp_proto", "us/span", ours, peer, limit, ours, f"{target} us", reached),
            Row("  of which beyond ptars", "us/span", ours - limit, peer, limit, ours / limit),
            Row("  one message a call", "us/span", one_by_one, peer, limit, one_by_one / limit),
            Row("  1 message of 100 poisoned", "us/span", _poisoned(poisoned, spans), peer, limit),
            Row("decode_spans otlp_json", "us/span", as_json, None, parse, as_json / parse),
            Row("request_json, a row of 27 fields", "us/row", texts, dicts, None, dicts / texts),
            Row("ingest_lines otlp_proto", "us/span", us_per_span(lambda: ingest_lines(proto, stamps), spans)),
            Row("ingest_lines otlp_json", "us/span", us_per_span(lambda: ingest_lines(json, stamps), spans, 3)),
        ],
        notes=[
            "peer: walking opentelemetry-proto messages in Python to the same values (checked equal before timing);",
            "limit: ptars alone on the same messages; of otlp_json, orjson alone; request_json beside orjson over",
            "dictionaries made of the rows.",
            f"decode_spans is {peer / ours:.1f} times faster than the walk and {ours / limit:.2f} times ptars alone.",
        ],
    )
    return reached


def _poisoned(messages: list[bytes], spans: int) -> float:
    return us_per_span(lambda: decode_spans(messages, "otlp_proto"), spans)


def _by_dictionaries(table: pa.Table) -> list[bytes]:
    return [
        orjson.dumps({name: value for name, value in row.items() if value is not None}) for row in table.to_pylist()
    ]


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
