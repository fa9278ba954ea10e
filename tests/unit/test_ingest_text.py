"""Prompts and responses on their way into `requests`: every spelling, both encodings, masked, cut, never unasked."""

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.otlp import child_spans, export, message, request_span
from tests.otlp_encodings import encode
from udfs.privacy.ledger import Ledger
from udfs.privacy.mask import MASK, Masker, derived_key
from udfs.telemetry.batch import ingest_lines, request_of_line
from udfs.telemetry.masking import TextMasking
from udfs.telemetry.trace_join import Entry, release

END_MS = 1_790_000_000_000
EMAIL = "jane.doe@example.com"
KEY = derived_key("a key for tests only")
ENCODINGS = ("otlp_proto", "otlp_json")
MESSAGES = [
    {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
    {"role": "user", "parts": [{"type": "text", "content": f"Write to {EMAIL}"}, {"type": "blob", "data": "x"}]},
]

CHAT = "system: Be brief.\nuser: Write to {} [blob]"
LANGFUSE = orjson.dumps({"messages": [{"role": "user", "content": EMAIL}]}).decode()


def value(content: object) -> AnyValue:
    """Anything as an AnyValue."""
    if isinstance(content, list):
        return AnyValue(array_value=ArrayValue(values=map(value, content)))
    if isinstance(content, dict):
        pairs = [KeyValue(key=key, value=value(each)) for key, each in content.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    return AnyValue(string_value=content) if isinstance(content, str) else AnyValue(int_value=content)


def span(number: int = 1, events: dict[str, dict[str, object]] | None = None, **attributes: object) -> Span:
    """A root span that is a request, with attributes (`__` for a dot) and events."""
    result = request_span(number, END_MS)
    result.attributes.extend(KeyValue(key=k.replace("__", "."), value=value(v)) for k, v in attributes.items())
    for name, held in (events or {}).items():
        result.events.add(name=name, attributes=[KeyValue(key=k, value=value(v)) for k, v in held.items()])
    return result


def masking(**options: object) -> TextMasking:
    return TextMasking(Masker(KEY), **{"carries_text": True, **options})  # type: ignore[arg-type]


def lines(request: ExportTraceServiceRequest, encoding: str, how: TextMasking | None) -> list[str]:
    return ingest_lines([encode(request, encoding)], [END_MS], masking=how)[0].split("\n")


def requests_of(request: ExportTraceServiceRequest, encoding: str, how: TextMasking | None) -> list[dict[str, object]]:
    return [orjson.loads(request_of_line(line)) for line in lines(request, encoding, how) if line[0] == "R"]


SENT = {
    "current": (span(gen_ai__input__messages=orjson.dumps(MESSAGES).decode()), CHAT),
    "structured": (span(gen_ai__input__messages=MESSAGES), CHAT),
    "old": (span(gen_ai__prompt=f"Write to {EMAIL}"), "Write to {}"),
    "instructions": (
        span(gen_ai__system_instructions=[{"type": "text", "content": "Be brief."}], gen_ai__prompt=f"Hi {EMAIL}"),
        "system: Be brief.\nHi {}",
    ),
    "indexed": (
        span(gen_ai__prompt__1__content=f"and {EMAIL}", gen_ai__prompt__1__role="user", gen_ai__prompt__0__content="Hi",
             gen_ai__prompt__0__role="system"),
        "system: Hi\nuser: and {}",
    ),
    "openinference": (span(llm__input_messages__0__message__content=EMAIL, input__value="other"), "{}"),
    "langfuse": (span(langfuse__observation__input=LANGFUSE), "{}"),
    "vercel": (span(ai__prompt=EMAIL), "{}"),
    "event": (span(events={"gen_ai.content.prompt": {"gen_ai.prompt": f"to {EMAIL}"}}), "to {}"),
    "details": (
        span(events={"gen_ai.client.inference.operation.details": {"gen_ai.input.messages": MESSAGES}}),
        "system: Be brief.\nuser: Write to {} [blob]",
    ),
    "message events": (
        span(events={"gen_ai.system.message": {"content": "Be brief."}, "gen_ai.user.message": {"content": EMAIL}}),
        "system: Be brief.\nuser: {}",
    ),
    "own first": (span(slacktide__prompt=EMAIL, gen_ai__prompt="other"), "{}"),
}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", SENT)
def test_every_spelling_gives_the_prompt_masked(name: str, encoding: str) -> None:
    sent, expected = SENT[name]
    (request,) = requests_of(export([sent]), encoding, masking())
    assert request["prompt"] == expected.format(Masker(KEY).mask(EMAIL).text)
    assert request["is_text_cut"] is False
    assert "response" not in request


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(
    "sent",
    [
        span(
            gen_ai__output__messages=[{"role": "assistant", "parts": [{"type": "text", "content": f"It is {EMAIL}"}]}]
        ),
        span(gen_ai__completion=f"It is {EMAIL}"),
        span(gen_ai__completion__0__content=f"It is {EMAIL}", gen_ai__completion__0__role="assistant"),
        span(output__value=f"It is {EMAIL}"),
        span(ai__response__text=f"It is {EMAIL}"),
        span(
            events={
                "gen_ai.choice": {"message": orjson.dumps({"role": "assistant", "content": f"It is {EMAIL}"}).decode()}
            }
        ),
    ],
)
def test_every_spelling_gives_the_response_masked(sent: Span, encoding: str) -> None:
    (request,) = requests_of(export([sent]), encoding, masking())
    assert request["response"] == f"It is {Masker(KEY).mask(EMAIL).text}"


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("how", [None, TextMasking(Masker(KEY))])
def test_no_text_comes_unless_asked_for(encoding: str, how: TextMasking | None) -> None:
    sent = [each for each, _ in SENT.values()]
    for number, each in enumerate(sent):
        found = lines(export([each]), encoding, how)
        assert [line[0] for line in found] == ["B", "R"], number
        assert EMAIL not in "".join(found)
        assert not {"prompt", "response", "is_text_cut"} & orjson.loads(request_of_line(found[1])).keys()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_long_text_is_cut_and_says_so(encoding: str) -> None:
    how = masking(max_characters=100)
    (request,) = requests_of(export([span(gen_ai__prompt="x" * 90 + f" {EMAIL} " + "y" * 5_000)]), encoding, how)
    assert request["prompt"] == "x" * 90 + " "
    assert request["is_text_cut"] is True


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_childs_text_fills_its_request_and_is_carried_once(encoding: str) -> None:
    (child,) = child_spans(1, END_MS, count=1)
    child.attributes.append(KeyValue(key="gen_ai.prompt", value=value(EMAIL)))
    how = masking()
    (request,) = requests_of(export([span(), child]), encoding, how)
    assert MASK.fullmatch(str(request["prompt"]))


def test_a_waiting_childs_text_is_masked_before_it_waits_and_joins_its_request() -> None:
    parent = span(gen_ai__completion="Hello")
    parent.parent_span_id = b"elsewhr1"
    (child,) = child_spans(1, END_MS, count=1)
    child.attributes.append(KeyValue(key="gen_ai.prompt", value=value(f"long {EMAIL} {'z' * 200}")))
    how = masking(max_characters=60)
    texts = ingest_lines([message([parent]), message([child])], [END_MS, END_MS], masking=how)
    waiting = [line for text in texts for line in text.split("\n") if line[0] in "WC"]
    assert len(waiting) == 2
    assert EMAIL not in "".join(texts)
    (joined,) = release([Entry(0, line) for line in waiting], None).requests
    body = orjson.loads(joined.json)
    assert body["response"] == "Hello"
    assert body["prompt"].startswith("long <EMAIL:")
    assert body["is_text_cut"] is True


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_free_labels_and_names_of_attributes_are_masked_even_without_text_and_key(encoding: str) -> None:
    sent = span(
        tenant__id=EMAIL, error__type="key sk-abcdefghijklmnopqrstuvwx refused", model__version="1.2.3.4",
        **{f"seen by {EMAIL}": 3, "user.phone": 13812345678, "gen_ai.prompt": 13812345678},
    )  # fmt: skip
    sent.status.code = 2
    (request,) = requests_of(export([sent]), encoding, TextMasking(Masker(None)))
    assert request["tenant"] == "<EMAIL:masked>"
    assert request["error_type"] == "key <TOKEN:masked> refused"
    assert request["model_version"] == "1.2.3.4"
    assert request["attributes"] == {"seen by <EMAIL:masked>": 3.0}


def test_the_ledger_counts_texts_and_their_time() -> None:
    how = masking(max_characters=20)
    sent = [span(number, gen_ai__prompt=f"mail {EMAIL}", gen_ai__completion="Hello") for number in range(3)]
    found = lines(export(sent), "otlp_proto", how)
    (line,) = (line for line in found if line[0] == "T")
    ledger = Ledger.merged([line[1:]])
    assert (ledger.texts, ledger.cut, ledger.withheld) == (6, 3, 0)
    assert ledger.found == {"EMAIL": 3}
    assert ledger.latency().n == 6
    assert "T" not in {line[0] for line in lines(export([span()]), "otlp_proto", how)}


def test_a_text_whose_name_model_fails_is_withheld_and_counted() -> None:
    def fails(text: str) -> list[tuple[int, int]]:
        raise RuntimeError(text)

    how = TextMasking(Masker(KEY, fails), carries_text=True)
    found = lines(export([span(gen_ai__prompt=EMAIL)]), "otlp_proto", how)
    assert EMAIL not in "".join(found)
    assert Ledger.merged(line[1:] for line in found if line[0] == "T").withheld == 1
    assert "prompt" not in orjson.loads(request_of_line(next(line for line in found if line[0] == "R")))


def test_hostile_structures_never_raise() -> None:
    deep: object = EMAIL
    for _ in range(200):
        deep = [deep]
    bodies = [
        {"key": "gen_ai.input.messages", "value": {"stringValue": "[" * 3000}},
        {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [None, 3, {"kvlistValue": None}]}}},
        {"key": "gen_ai.prompt", "value": {"bytesValue": "AAAA"}},
        {"key": "gen_ai.prompt", "value": {"boolValue": True}},
        {"key": "gen_ai.prompt.0.content", "value": None},
        {"key": "gen_ai.prompt", "value": {"stringValue": orjson.dumps(deep).decode()}},
    ]
    base = orjson.loads(encode(export([span()]), "otlp_json"))
    for body in bodies:
        base["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"].append(body)
        base["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["events"] = [
            None,
            3,
            {"name": "gen_ai.choice", "attributes": 7},
        ]
        (text,) = ingest_lines([orjson.dumps(base)], [END_MS], masking=masking())
        assert EMAIL not in text
        assert text.split("\n")[1][0] == "R"
