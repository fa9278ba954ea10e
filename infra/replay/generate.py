"""From a resolved plan to messages: serve, inject faults, encode, order. Same plan and start, same bytes."""

import random
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from infra.replay.faults import SKEW_NS, UNREADABLE, Drift, Sent, unreadable_message
from infra.replay.labels import assign, set_version
from infra.replay.message import Batcher, Message, Unit, in_sending_order
from infra.replay.otlp_messages import encode_requests, span_encoder
from infra.replay.plan import SECOND_NS
from infra.replay.request_block import RequestBlock
from infra.replay.resolved import ResolvedReplay
from infra.replay.served import ARMS, FAULTS, IDS, TEXTS, USERS, random_stream, served_blocks
from infra.replay.served_metrics import ServedMetrics
from infra.replay.service_model import resource_attributes
from infra.replay.spans import SpanColumns, child_spans, request_spans
from infra.replay.texts import add_texts

DUPLICATE_DELAY_SECONDS = (1.0, 5.0)  # a retry of the exporter: well within what ingest remembers
FLUSH_REQUESTS_PER_PARTITION = 16  # so many that they reach every partition of `requests`, which is keyed by trace


@dataclass
class Tally:
    """What was generated so far: `requests` in all, how many each drift touched, personal values planted in texts."""

    requests: int = 0
    drifted: Counter[Drift] = field(default_factory=Counter)
    planted: list[str] = field(default_factory=list)


class Generator:
    """Yields the messages of one replay in sending order, and tallies what it made.

    Memory is O(block + what is held back for late sending), however long the replay. Time is about 30 microseconds a
    request of one span, most of it for the service model and for encoding.
    """

    def __init__(self, resolved: ResolvedReplay, partitions: int) -> None:
        self.resolved, self.partitions, self.tally = resolved, partitions, Tally()
        self._faults, self._ids = random_stream(resolved, FAULTS), random_stream(resolved, IDS, resolved.start_ns)
        self._users, users = random_stream(resolved, USERS), resolved.plan.users
        self._arms = [
            arms.of_users(users, random_stream(resolved, ARMS, epoch)) for epoch, (arms, _) in enumerate(resolved.arms)
        ]
        self._texts = random.Random(int(random_stream(resolved, TEXTS).integers(2**63)))
        resource, plan = resource_attributes(resolved.constants), resolved.plan
        self._encoder = span_encoder(plan.encoding, resource)
        self._scrapes: deque[Message] = deque()
        self._metrics = None
        if plan.metrics:
            scrape_ns = round(plan.scrape_seconds * SECOND_NS)
            self._metrics = ServedMetrics(resource, plan.encoding, plan.metrics_topic, resolved.start_ns, scrape_ns)

    def messages(self) -> Iterator[Message]:
        """Yield every message once. Call it once."""
        plan = self.resolved.plan
        span_ns = round(plan.batch_seconds * SECOND_NS)
        batcher = Batcher(self._encoder, self.partitions, plan.batch_spans, span_ns, keyed=plan.keyed)
        return self._with_metrics(batcher.messages(in_sending_order(self._blocks())))

    def _with_metrics(self, messages: Iterator[Message]) -> Iterator[Message]:
        """Yield the scrapes that are due between the messages of spans, each before what was sent after it."""
        for message in messages:
            while self._scrapes and self._scrapes[0].due_ns <= message.due_ns:
                yield self._scrapes.popleft()
            yield message
        yield from self._scrapes

    def _blocks(self) -> Iterator[tuple[int, list[Unit]]]:
        """Yield each block's units, with the time before which no later block has one."""
        newest_ns = 0
        for arrivals, block in served_blocks(self.resolved):
            self._label(block)
            self._drift(block)
            self.tally.requests += len(block)
            newest_ns = max(newest_ns, int(block.end_ns.max()))
            if self._metrics is not None:
                self._scrapes.extend(self._metrics.scrapes(block, int(arrivals.arrival_ns[-1])))
            yield int(arrivals.arrival_ns[-1]), self._units(block, self._draw(block))
        if self._metrics is not None:
            # One more, that sees the last request ended.
            self._scrapes.extend(self._metrics.scrapes_until(newest_ns + self._metrics.scrape_ns))
        if self.resolved.plan.flush_seconds is not None:
            yield newest_ns, self._flush(block, newest_ns)

    def _label(self, block: RequestBlock) -> None:
        resolved = self.resolved
        if self._arms:
            users = self._users.integers(resolved.plan.users, size=len(block))
            assign(block, users, self._arms, [at_ns for _, at_ns in resolved.arms])
        if resolved.versions:
            versions, begins_ns = zip(*resolved.versions, strict=True)
            set_version(block, versions, begins_ns)
        if resolved.plan.text:
            self.tally.planted += add_texts(block, self._texts, resolved.plan.personal_share)

    def _drift(self, block: RequestBlock) -> None:
        for drift, at_ns in self.resolved.drifts:
            self.tally.drifted[drift] += drift.apply(block, at_ns)

    def _draw(self, block: RequestBlock) -> list[Sent]:
        plan = self.resolved.plan
        latest_ns = self.resolved.source.last_ns - plan.late_by_seconds * SECOND_NS
        return plan.shares.draw(self._faults, block.end_ns <= latest_ns, self.resolved.late_share)

    def _units(self, block: RequestBlock, fates: Sequence[Sent]) -> list[Unit]:
        """Encode a block and return one unit a request, two where it is sent twice."""
        columns = request_spans(block, self.resolved.start_ns, self._ids)
        children = child_spans(columns, block, self._ids) if self.resolved.plan.children else []
        below = [self._encoder.spans(phase, []) for phase in children]
        _spoil(columns, fates)
        spans = encode_requests(self._encoder, columns, block)
        units: list[Unit] = []
        for row, (fate, end_ns) in enumerate(zip(fates, block.end_ns.tolist(), strict=True)):
            unit = Unit(end_ns, end_ns, fate, columns.trace_id[row], (spans[row], *(phase[row] for phase in below)))
            if fate.is_fault:
                self._fault(unit, units)
            units.append(unit)
        return units

    def _fault(self, unit: Unit, units: list[Unit]) -> None:
        """Make of a clean unit what its fate says; a duplicate's first copy goes to `units`."""
        if unit.sent is Sent.DUPLICATE:
            units.append(Unit(unit.due_ns, unit.event_ns, Sent.CLEAN, unit.trace_id, unit.spans))
            unit.due_ns += round(self._faults.uniform(*DUPLICATE_DELAY_SECONDS) * SECOND_NS)
        elif unit.sent is Sent.LATE:
            unit.due_ns += round(self.resolved.plan.late_by_seconds * SECOND_NS)
        else:
            unit.spans = unit.spans[:1]  # the spans below it would be good ones, and count elsewhere
            if unit.sent in UNREADABLE:
                unit.spans = (unreadable_message(unit.sent, self._encoder.message(unit.spans), self._faults),)

    def _flush(self, block: RequestBlock, newest_ns: int) -> list[Unit]:
        """Return requests like the last ones, sent after all others, that end `flush_seconds` after `newest_ns`."""
        n, like = FLUSH_REQUESTS_PER_PARTITION * self.partitions, min(len(block), FLUSH_REQUESTS_PER_PARTITION)
        rows = np.arange(n) % like - like
        end_ns = newest_ns + round((self.resolved.plan.flush_seconds or 0.0) * SECOND_NS)
        served_ns = (block.end_ns - block.start_ns)[rows]
        fields = {name: values[rows] for name, values in block.fields.items()}
        self.tally.requests += n
        units = self._units(RequestBlock(end_ns - served_ns, np.full(n, end_ns), fields), [Sent.FLUSH] * n)
        for unit in units:
            unit.due_ns = newest_ns + round(DUPLICATE_DELAY_SECONDS[1] * SECOND_NS)
        return units


def _spoil(columns: SpanColumns, fates: Sequence[Sent]) -> None:
    """Move the times of skewed spans, and break the id or the times of those that are malformed so."""
    for row, fate in enumerate(fates):
        if fate is Sent.SKEWED:
            columns.start_ns[row] += SKEW_NS
            columns.end_ns[row] += SKEW_NS
        elif fate is Sent.BAD_ID:
            columns.trace_id[row] = columns.trace_id[row][:-1]
        elif fate is Sent.END_BEFORE_START:
            columns.end_ns[row] = columns.start_ns[row] - SECOND_NS
