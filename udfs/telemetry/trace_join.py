"""Joins the spans of one trace that came in several messages: what waited, to requests. Pure.

A span waits from the moment it came. When a request has waited long enough, it goes out with everything below it that
came by then, and those spans are counted as children. A span with no request above it that has waited long enough is
counted as a child as well: nothing can be made of it. The rules of what lies below and what it adds are those within
one message (span_tree.py, otlp.py); docs/requests.md has them in words.

State holds many traces together: waiting_bucket.py says which of them go out now.

The result depends on which spans came and when, not on their order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.requests import REQUEST_FIELDS
from schemas.semconv import FIELD_ALIASES, PHASE_SPANS
from schemas.text_attributes import TEXT_CUT, TEXT_FIELDS
from udfs.telemetry.otlp import NS_PER_SECOND, OWN_FIELDS
from udfs.telemetry.waiting_line import WaitingSpan, read_waiting_line

STATE_VERSION = "2"
# Where the parts of an entry's text begin: version, arrival, looks before it, line.
ARRIVAL_AT = 1
LOOK_AT = 16
LINE_AT = 26
_GIVEN_BY_CHILDREN = (*(name for name in FIELD_ALIASES if name not in OWN_FIELDS), *TEXT_FIELDS)


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One waiting span as state holds it: when it came (Kafka timestamp, ms since 1970) and its line.

    `look` is the number of the last look at the watermark before it came (wall_clock.py).
    """

    arrival_ms: int
    line: str
    look: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One request to send: its trace id, and its JSON for topic `requests`."""

    trace_id: str
    json: bytes


@dataclass(frozen=True, slots=True)
class Released:
    """What goes out now: the requests, how many spans were counted as children, and what waits on."""

    requests: tuple[Request, ...]
    children: int
    waiting: tuple[Entry, ...]


def encode_entry(entry: Entry) -> str:
    """Return the versioned text of an entry, for state.

    >>> decode_entry(encode_entry(Entry(7, "W...", look=3)))
    Entry(arrival_ms=7, line='W...', look=3)
    """
    return f"{STATE_VERSION}{entry.arrival_ms:0{LOOK_AT - ARRIVAL_AT}d}{entry.look:0{LINE_AT - LOOK_AT}d}{entry.line}"


def decode_entry(text: str) -> Entry:
    """Read an entry back. Raises ValueError on a version that this code doesn't know: going on would lose spans."""
    if text[:1] != STATE_VERSION:
        raise ValueError(f"a waiting span of version {text[:1]!r}; this code reads version {STATE_VERSION}")
    return Entry(int(text[ARRIVAL_AT:LOOK_AT]), text[LINE_AT:], int(text[LOOK_AT:LINE_AT]))


def release(entries: Iterable[Entry], arrived_by_ms: int | None) -> Released:
    """Return what of one trace's `entries` goes out: all that came at `arrived_by_ms` or before; None means all.

    A span below a request goes with its request, however long it has waited itself. A span that came twice is one, the
    copy a child. O(n log n) for n entries.
    """
    spans, copies = _distinct(entries)
    places = _places(spans)
    due = {
        span_id
        for span_id, place in places.items()
        if arrived_by_ms is None or spans[place.top].entry.arrival_ms <= arrived_by_ms
    }
    requests = sorted(s for s in due if spans[s].span.is_genai and places[s].nearest is None)
    below: dict[str, list[str]] = {request: [] for request in requests}
    for span_id in due:
        if places[span_id].nearest is not None:
            below[places[span_id].top].append(span_id)
    return Released(
        requests=tuple(_request(top, below[top], spans, places) for top in requests),
        children=len(due) - len(requests) + copies,
        waiting=tuple(sorted(spans[span_id].entry for span_id in spans.keys() - due)),
    )


@dataclass(frozen=True, slots=True)
class _Held:
    entry: Entry
    span: WaitingSpan


@dataclass(frozen=True, slots=True)
class _Place:
    """`top`: the request a span is or lies below, else the span itself; `nearest`: the closest GenAI span above it."""

    top: str
    nearest: str | None


def _distinct(entries: Iterable[Entry]) -> tuple[dict[str, _Held], int]:
    """Return the spans by id, and how many copies there were besides. Of copies the first to come stays."""
    spans: dict[str, _Held] = {}
    copies = 0
    for entry in sorted(entries):
        span = read_waiting_line(entry.line)
        if spans.setdefault(span.fields["span_id"], _Held(entry, span)).entry is not entry:
            copies += 1
    return spans, copies


def _places(spans: dict[str, _Held]) -> dict[str, _Place]:
    """Return each span's place. Spans whose parents run in a circle, or lead into one, have no parent. O(n)."""
    places: dict[str, _Place] = {}
    circular: set[str] = set()
    for span_id in spans:
        path: dict[str, None] = {}  # from here upwards, as a set in order
        above: str | None = span_id
        while above in spans and above not in places and above not in path:
            path[above] = None
            above = spans[above].span.fields.get("parent_span_id")
        if above in path or above in circular:
            circular |= path.keys()
            places |= {each: _Place(each, None) for each in path}
            continue
        for each in reversed(path):
            places[each] = _below(each, above, spans, places)
            above = each
    return places


def _below(span_id: str, parent: str | None, spans: dict[str, _Held], places: dict[str, _Place]) -> _Place:
    """Return the place of a span below `parent`, whose own place is known; None or an unknown one is none."""
    if parent is None or parent not in spans:
        return _Place(span_id, None)
    above = places[parent]
    nearest = parent if spans[parent].span.is_genai else above.nearest
    return _Place(span_id if nearest is None else above.top, nearest)


def _request(top: str, below: Sequence[str], spans: dict[str, _Held], places: dict[str, _Place]) -> Request:
    """Return the request of span `top` with what the spans below add."""
    fields = dict(spans[top].span.fields)
    children = [spans[span_id].span for span_id in below]
    _fill(fields, children)
    _fill_phases(fields, children)
    if "attempts" not in fields:
        tries = sum(spans[s].span.is_genai and places[s].nearest == top for s in below)
        fields["attempts"] = max(tries, 1)
    fields["child_span_count"] = len(children)
    ordered = {field.name: fields[field.name] for field in REQUEST_FIELDS if field.name in fields}
    return Request(fields["trace_id"], orjson.dumps(ordered))


def _fill(fields: dict[str, Any], children: list[WaitingSpan]) -> None:
    """Fill what the request lacks from the first child that has it: one without error, then the first to start."""
    in_order = sorted(children, key=lambda c: (c.fields["is_error"], c.start_ns, c.fields["span_id"]))
    for name in _GIVEN_BY_CHILDREN:
        if name in fields or (name == "error_type" and not fields["is_error"]):
            continue
        giver = next((child for child in in_order if name in child.fields), None)
        if giver is not None:
            fields[name] = giver.fields[name]
            if name in TEXT_FIELDS:
                fields[TEXT_CUT] = fields.get(TEXT_CUT, False) or giver.fields.get(TEXT_CUT, False)


def _fill_phases(fields: dict[str, Any], children: list[WaitingSpan]) -> None:
    for phase, name in PHASE_SPANS.items():
        durations = [child.end_ns - child.start_ns for child in children if child.phase == phase]
        if durations and name not in fields:
            fields[name] = sum(durations) / NS_PER_SECOND
