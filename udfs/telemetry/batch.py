"""What the ingest job calls: a batch of Kafka messages in, one text of lines a message out.

The lines have a fixed-width head, so that the JVM cuts them with SUBSTRING and parses nothing:

    B{"spans":n,"child":c,"dead":d}                            one a message, first
    R + trace id (32) + span id (16) + event time in ms (15 digits) + span index (8 digits)
      + the headers (header_lines.py): numbers in hex, length of the labels (6 digits), labels; + the request's JSON
    W..., C...                                                 a span that waits for others: waiting_line.py
    T{"texts":n,"cut":c,...}                                   at most one a call: udfs.privacy.ledger
    D{"reason":...,"detail":...,"index":...,"event_time_ms":...,"payload_base64":...}

No line holds a line break. For every message, spans = child + dead + its R, W and C lines; a message that can't be read
counts as one span and one dead letter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from schemas.dead_letters import WHOLE_MESSAGE, DeadLetter, Reason
from udfs.telemetry import otlp_json, otlp_proto
from udfs.telemetry.dead_lines import dead_line
from udfs.telemetry.header_lines import NUMBERS_LENGTH, label_texts, number_texts
from udfs.telemetry.masking import TextMasking
from udfs.telemetry.otlp import ENCODINGS, decode_for_join, decode_spans
from udfs.telemetry.otlp_json_shapes import UTF8_BOM
from udfs.telemetry.request_lines import request_json
from udfs.telemetry.span_batch import Bools, Ints
from udfs.telemetry.waiting_line import padded, waiting_lines

# Where the parts of an R line begin, counted from 0.
REQUEST_TRACE_AT = 1
REQUEST_SPAN_AT = 33
REQUEST_TIME_AT = 49
REQUEST_INDEX_AT = 64
REQUEST_NUMBERS_AT = 72
REQUEST_LENGTH_AT = REQUEST_NUMBERS_AT + NUMBERS_LENGTH
REQUEST_LABELS_AT = REQUEST_LENGTH_AT + 6

AUTO = "auto"
MAX_SKEW_MS = 300_000  # as OpenTelemetry backends commonly allow; design.md, "The books balance"
MAX_CHUNK_BYTES = 64 * 1024 * 1024  # decoded at once: bounds memory, and Arrow's texts end at 2 GiB

_PAYLOADS = {"otlp_proto": otlp_proto.span_payloads, "otlp_json": otlp_json.span_payloads}


@dataclass(slots=True)
class _Lines:
    """The lines of one message while they gather."""

    spans: int = 0
    child: int = 0
    requests: str = ""
    waiting: str = ""
    dead: list[str] = field(default_factory=list)
    ledger: str = ""

    def bury(self, letter: DeadLetter, event_time_ms: int | None = None) -> None:
        self.dead.append(dead_line(letter, event_time_ms))

    def text(self) -> str:
        books = f'B{{"spans":{self.spans},"child":{self.child},"dead":{len(self.dead)}}}'
        return "\n".join([books, *(text for text in (self.requests, self.waiting, self.ledger) if text), *self.dead])


def ingest_lines(
    values: Sequence[bytes | None],
    kafka_timestamps_ms: Sequence[int],
    *,
    encoding: str = AUTO,
    lenient: bool = False,
    max_skew_ms: int = MAX_SKEW_MS,
    joins: bool = True,
    masking: TextMasking | None = None,
) -> list[str]:
    """Return one text of lines for each message (format above), in the order of `values`.

    `encoding` is otlp_proto, otlp_json, or auto (judged message by message). A None value gives a dead letter
    `no_value`; an empty message holds no spans. A span that ends more than `max_skew_ms` after its message's Kafka
    timestamp is dead-lettered as `clock_skew`; a negative timestamp means that Kafka has none, and checks nothing.
    Without `joins` nothing waits: every message is taken for whole. `masking` says what is masked and whether texts are
    carried (udfs.telemetry.masking); where any were, the first message's lines have the account of it.

    Never raises on content; ValueError on an unknown encoding. Time O(total bytes), memory O(that of MAX_CHUNK_BYTES
    decoded, or of the largest message).

    >>> print(*ingest_lines([b"", None], [0, 0]), sep="; ")  # doctest: +ELLIPSIS
    B{"spans":0,"child":0,"dead":0}; B{"spans":1,"child":0,"dead":1}
    D{"reason":"no_value",...
    """
    if encoding not in (AUTO, *ENCODINGS):
        raise ValueError(f"unknown encoding {encoding!r}; the encodings are {', '.join((AUTO, *ENCODINGS))}")
    lines = [_Lines() for _ in values]
    for number, value in enumerate(values):
        if value is None:
            lines[number].spans = 1
            lines[number].bury(DeadLetter(Reason.NO_VALUE, "the message has no value", number, WHOLE_MESSAGE, b""))
    for chosen, numbers in _chunks(values, encoding):
        messages = [value for number in numbers if (value := values[number]) is not None]
        chosen_lines = [lines[number] for number in numbers]
        limits = _limits(kafka_timestamps_ms, numbers, max_skew_ms)
        _decode(messages, chosen, chosen_lines, limits, lenient=lenient, joins=joins, masking=masking)
    if masking is not None and masking.ledger.texts and lines:
        lines[0].ledger = "T" + masking.take_ledger().to_json()
    return [line.text() for line in lines]


def request_of_line(line: str) -> str:
    """Return the request's JSON in an `R` line.

    >>> request_of_line("R" + "0" * (REQUEST_LENGTH_AT - 1) + "000002" + "[]" + '{"trace_id":"..."}')
    '{"trace_id":"..."}'
    """
    return line[REQUEST_LABELS_AT + int(line[REQUEST_LENGTH_AT:REQUEST_LABELS_AT]) :]


def encoding_of(message: bytes) -> str:
    """Return the encoding a message looks like: JSON if it begins with a brace or bracket, blanks aside.

    A protobuf message begins with byte 10, which JSON calls a blank; where the next byte could then begin a JSON text,
    only parsing it tells.

    >>> encoding_of(b' {"resourceSpans":[]}'), encoding_of(b"\\x0a\\x00"), encoding_of(b"\\n{}")
    ('otlp_json', 'otlp_proto', 'otlp_json')
    """
    begin = message[:64].removeprefix(UTF8_BOM).lstrip(b" \t\r\n")
    if begin[:1] not in (b"{", b"["):
        return "otlp_proto"
    if message[:1] == b"\n":
        try:
            orjson.loads(message)
        except orjson.JSONDecodeError:
            return "otlp_proto"
    return "otlp_json"


def _chunks(values: Sequence[bytes | None], encoding: str) -> Iterator[tuple[str, list[int]]]:
    """Yield (encoding, numbers of messages) so that no chunk has more than MAX_CHUNK_BYTES and two messages."""
    open_chunks: dict[str, list[int]] = {}
    sizes = dict.fromkeys(ENCODINGS, 0)
    for number, value in enumerate(values):
        if value is None:
            continue
        chosen = encoding_of(value) if encoding == AUTO else encoding
        if sizes[chosen] + len(value) > MAX_CHUNK_BYTES and chosen in open_chunks:
            yield chosen, open_chunks.pop(chosen)
            sizes[chosen] = 0
        open_chunks.setdefault(chosen, []).append(number)
        sizes[chosen] += len(value)
    yield from open_chunks.items()


def _limits(kafka_timestamps_ms: Sequence[int], numbers: list[int], max_skew_ms: int) -> Ints:
    """Return the latest event time allowed in each message, int64 ms."""
    stamps = np.array([kafka_timestamps_ms[number] for number in numbers], dtype=np.int64)
    return np.where(stamps < 0, np.iinfo(np.int64).max, stamps + max_skew_ms)


def _decode(
    messages: list[bytes],
    encoding: str,
    lines: list[_Lines],
    limits: Ints,
    *,
    lenient: bool,
    joins: bool,
    masking: TextMasking | None,
) -> None:
    """Decode messages of one encoding into their lines."""
    if joins:
        settled, waiting, dead = decode_for_join(messages, encoding, lenient=lenient, masking=masking)
    else:
        settled, dead = decode_spans(messages, encoding, lenient=lenient, masking=masking)
        waiting = settled.slice(0, 0)
    for letter in dead:
        lines[letter.message_index].spans += 1
        lines[letter.message_index].bury(letter)
    requests = _settle(settled, messages, encoding, lines, limits)
    _put(requests, "requests", lines)
    if waiting.num_rows:
        skewed = _bury_skewed(waiting, messages, encoding, lines, limits)
        _count(lines, "spans", waiting)
        _put(waiting.filter(pa.array(~skewed)) if skewed.any() else waiting, "waiting", lines)


def _settle(settled: pa.Table, messages: list[bytes], encoding: str, lines: list[_Lines], limits: Ints) -> pa.Table:
    """Count spans that wait for nothing, and return those that are requests."""
    skewed = _bury_skewed(settled, messages, encoding, lines, limits)
    is_request = settled.column("is_request").to_numpy()
    _count(lines, "spans", settled)
    taken = is_request & ~skewed
    if taken.all():
        return settled
    _count(lines, "child", settled, ~is_request & ~skewed)
    return settled.filter(pa.array(taken))


def _count(lines: list[_Lines], kind: str, spans: pa.Table, which: Bools | None = None) -> None:
    """Add to the count of each message how many of `spans` (of `which` rows) it has."""
    message_index = spans.column("message_index").to_numpy()
    counts = np.bincount(message_index if which is None else message_index[which], minlength=len(lines))
    for line, count in zip(lines, counts.tolist(), strict=True):
        setattr(line, kind, getattr(line, kind) + count)


def _put(spans: pa.Table, kind: str, lines: list[_Lines]) -> None:
    """Give each message the lines of its spans as one text; `kind` is requests or waiting."""
    if spans.num_rows == 0:
        return
    head = (
        spans.column("trace_id").combine_chunks(),
        spans.column("span_id").combine_chunks(),
        padded(spans.column("event_time_ms"), REQUEST_INDEX_AT - REQUEST_TIME_AT),
        padded(spans.column("span_index"), REQUEST_NUMBERS_AT - REQUEST_INDEX_AT),
    )
    if kind == "requests":
        labels = label_texts(spans)
        length = padded(pc.utf8_length(labels), REQUEST_LABELS_AT - REQUEST_LENGTH_AT)
        texts = pc.binary_join_element_wise("R", *head, number_texts(spans), length, labels, request_json(spans), "")
    else:
        texts = waiting_lines(spans, head)
    ends = np.cumsum(np.bincount(spans.column("message_index").to_numpy(), minlength=len(lines)))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    for line, text in zip(
        lines, pc.binary_join(pa.ListArray.from_arrays(offsets, texts), "\n").to_pylist(), strict=True
    ):
        setattr(line, kind, text)


def _bury_skewed(spans: pa.Table, messages: list[bytes], encoding: str, lines: list[_Lines], limits: Ints) -> Bools:
    """Bury the spans that end beyond their message's limit, and return which they are."""
    message_index = spans.column("message_index").to_numpy()
    is_skewed: Bools = spans.column("event_time_ms").to_numpy() > limits[message_index]
    if not is_skewed.any():
        return is_skewed
    skewed = spans.filter(pa.array(is_skewed))
    detail = "the span ends later after its Kafka timestamp than the allowed skew"
    payloads: dict[int, list[bytes]] = {}
    columns = (skewed.column(name).to_pylist() for name in ("message_index", "span_index", "event_time_ms"))
    for message, span, event_time_ms in zip(*columns, strict=True):
        if message not in payloads:
            payloads[message] = _PAYLOADS[encoding](messages[message])
        letter = DeadLetter(Reason.CLOCK_SKEW, detail, message, span, payloads[message][span])
        lines[message].bury(letter, event_time_ms)
    return is_skewed
