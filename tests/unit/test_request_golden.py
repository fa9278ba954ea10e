"""What each instrumentation sends, and the request it becomes: tests/golden/requests, input and result side by side.

After a change on purpose: python -m tests.unit.test_request_golden writes the results anew; read the difference.
"""

from base64 import b64encode
from pathlib import Path

import orjson
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from udfs.telemetry.batch import ingest_lines, request_of_line
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.trace_join import Entry, release

FOLDER = Path(__file__).parents[1] / "golden" / "requests"
INPUTS = sorted(FOLDER.glob("*.otlp.json"))


def requests_of(message: bytes) -> list[dict[str, object]]:
    """The requests of one message, as topic `requests` carries them once what waits has waited."""
    lines = ingest_lines([message], [-1])[0].split("\n")
    assert {line[0] for line in lines} <= {"B", "R", "W", "C"}
    at_once = [orjson.loads(request_of_line(line)) for line in lines if line[0] == "R"]
    joined = release([Entry(0, line) for line in lines if line[0] in "WC"], None).requests
    return at_once + [orjson.loads(request.json) for request in joined]


def result_of(path: Path) -> Path:
    return path.with_name(path.name.replace(".otlp.json", ".requests.json"))


@pytest.mark.parametrize("path", INPUTS, ids=[path.name.split(".")[0] for path in INPUTS])
def test_the_requests_are_the_committed_ones(path: Path) -> None:
    assert requests_of(path.read_bytes()) == orjson.loads(result_of(path).read_bytes())
    assert b"Ada" not in result_of(path).read_bytes()


@pytest.mark.parametrize("path", INPUTS, ids=[path.name.split(".")[0] for path in INPUTS])
def test_protobuf_gives_the_same(path: Path) -> None:
    body = orjson.loads(path.read_bytes())
    for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:  # protobuf's own JSON has base64 where OTLP has hex
                span[name] = b64encode(bytes.fromhex(span[name])).decode()
    message = ParseDict(body, ExportTraceServiceRequest()).SerializeToString()
    assert decode_spans([message], "otlp_proto")[0].equals(decode_spans([path.read_bytes()], "otlp_json")[0])


def test_every_input_has_a_result() -> None:
    assert len(INPUTS) >= 8
    assert {result_of(path) for path in INPUTS} == set(FOLDER.glob("*.requests.json"))


if __name__ == "__main__":
    for input_path in INPUTS:
        text = orjson.dumps(requests_of(input_path.read_bytes()), option=orjson.OPT_INDENT_2).decode()
        result_of(input_path).write_text(text + "\n")
