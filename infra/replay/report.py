"""What a replay did: every message counted, every fault counted, and what ingest's books must say because of it."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from infra.replay.faults import MALFORMED, Sent, reason_of
from infra.replay.message import Message
from schemas.books import IngestKind, MetricKind


@dataclass(slots=True)
class SentCounts:
    """Messages of one kind, the requests in them (an unreadable message counts as one) and the spans below those."""

    messages: int = 0
    requests: int = 0
    children: int = 0


@dataclass(slots=True)
class DriftReport:
    """One injected drift: from which event time on, when its first request was sent, and how many it touched.

    Times are milliseconds since 1970; `sent_ms` is None when the replay ended before.
    """

    feature: str
    kind: str
    amount: float
    event_time_ms: int
    sent_ms: int | None = None
    requests: int = 0


@dataclass
class ReplayReport:
    """The account of one replay. Times are milliseconds since 1970; `start_ms` is the first arrival.

    `requests` were generated, one span each and some twice; `acknowledged` and `delivery_errors` (error -> count) are
    messages. Event times are those of usable requests; `most_behind_seconds` is how far sending fell behind its clock.
    """

    topic: str
    partitions: int
    encoding: str
    seed: int
    start_ms: int
    requests: int = 0
    sent: dict[Sent, SentCounts] = field(default_factory=lambda: {kind: SentCounts() for kind in Sent})
    metric_messages: int = 0
    metric_points: int = 0
    acknowledged: int = 0
    delivery_errors: dict[str, int] = field(default_factory=dict)
    drifts: list[DriftReport] = field(default_factory=list)
    first_event_ms: int | None = None
    last_event_ms: int | None = None
    seconds: float = 0.0
    most_behind_seconds: float = 0.0
    interrupted: bool = False

    def count(self, message: Message) -> None:
        """Add a message that was handed to Kafka's client."""
        if message.points:
            self.metric_messages += 1
            self.metric_points += message.points
            return
        counts = self.sent[message.sent]
        counts.messages += 1
        counts.requests += message.requests
        counts.children += message.children
        if not message.sent.is_fault:
            first, last = (self.start_ms + ns // 1_000_000 for ns in (message.first_event_ns, message.last_event_ns))
            self.first_event_ms = first if self.first_event_ms is None else min(self.first_event_ms, first)
            self.last_event_ms = last if self.last_event_ms is None else max(self.last_event_ms, last)

    @property
    def messages(self) -> int:
        """Messages handed to Kafka's client."""
        return sum(counts.messages for counts in self.sent.values()) + self.metric_messages

    @property
    def complete(self) -> bool:
        """Whether everything was sent and acknowledged."""
        return not self.interrupted and not self.delivery_errors and self.acknowledged == self.messages

    def expected_books(self) -> dict[str, int]:
        """Return what ingest counts when it reads all of this, by `schemas.books.IngestKind`.

        It holds for ingest's default lateness and for an otherwise empty topic. Spans below a request are counted as
        child spans also where the request is a duplicate or late.
        """
        requests = {kind: counts.requests for kind, counts in self.sent.items()}
        children = sum(counts.children for counts in self.sent.values())
        return {
            IngestKind.SPANS: sum(requests.values()) + children,
            IngestKind.REQUESTS: requests[Sent.CLEAN] + requests[Sent.FLUSH],
            IngestKind.CHILD: children,
            IngestKind.DUPLICATE: requests[Sent.DUPLICATE],
            IngestKind.LATE: requests[Sent.LATE],
            IngestKind.DEAD: requests[Sent.SKEWED] + sum(requests[kind] for kind in MALFORMED),
        }

    def expected_metric_books(self) -> dict[str, int]:
        """Return what the metrics job counts when it reads all of this, by `schemas.books.MetricKind`.

        Every point is a measurement: counters begin at zero with the replay, less than 10 minutes before their first.
        """
        return {MetricKind.POINTS: self.metric_points, MetricKind.MEASUREMENTS: self.metric_points}

    def expected_dead_letters(self) -> dict[str, int]:
        """Return how many dead letters ingest writes for this, by reason; late ones are among them."""
        letters: Counter[str] = Counter()
        for kind, counts in self.sent.items():
            if counts.requests and (reason := reason_of(kind, self.encoding)):
                letters[reason] += counts.requests
        return dict(letters)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, derived figures included."""
        return asdict(self) | {
            "messages": self.messages,
            "complete": self.complete,
            "expected_books": self.expected_books(),
            "expected_dead_letters": self.expected_dead_letters(),
            "expected_metric_books": self.expected_metric_books(),
        }

    def to_json(self) -> bytes:
        """Return `to_dict` as indented JSON."""
        return orjson.dumps(self.to_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS)
