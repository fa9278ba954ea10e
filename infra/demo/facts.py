"""What the topics hold after a run, read committed: plain data for `checks.py` and `summary.py`."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

from infra.books import Books, read_books
from infra.follow import follow
from infra.service_levels.standings import BUDGET_TEST
from jobs.kafka_client import KafkaClient
from jobs.monitors import Monitors
from schemas.times import epoch_ms
from schemas.verdicts import VerdictKind
from udfs.slo.periods import MINUTE_MS


@dataclass(frozen=True)
class Facts:
    """One look at the topics. `request_ids` counts (trace id, span id); ids of records are counted, not only listed."""

    books: Books
    request_ids: Counter[tuple[str, str]]
    newest_event_ms: dict[int, int]
    first_event_ms: int
    verdicts: list[dict[str, Any]]
    alerts: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    ids: dict[str, Counter[str]] = field(default_factory=dict)

    def dead_by_reason(self, job: str) -> dict[str, int]:
        """How many dead letters `job` wrote, by reason."""
        return dict(Counter(letter["reason"] for letter in self.dead_letters if letter["job"] == job))


def read_facts(kafka: KafkaClient) -> Facts:
    """Read every topic from its beginning to its committed end of now. Memory: O(records), without payloads."""
    request_ids: Counter[tuple[str, str]] = Counter()
    newest: dict[int, int] = {}
    first = 2**63 - 1
    for message in follow(kafka, "requests", to_end=True):
        request = orjson.loads(message.value())
        request_ids[request["trace_id"], request["span_id"]] += 1
        event_ms, partition = request["event_time_ms"], message.partition()
        newest[partition] = max(event_ms, newest.get(partition, 0))
        first = min(first, event_ms)
    verdicts, alerts, letters = (_records(kafka, topic) for topic in ("verdicts", "alerts", "dead_letters"))
    for letter in letters:
        letter.pop("payload_base64", None)
    return Facts(
        books=read_books(kafka),
        request_ids=request_ids,
        newest_event_ms=newest,
        first_event_ms=first,
        verdicts=verdicts,
        alerts=alerts,
        dead_letters=letters,
        ids={
            "verdicts": Counter(verdict["verdict_id"] for verdict in verdicts),
            "alerts": Counter(alert["alert_id"] for alert in alerts),
            "dead_letters": Counter(letter["dead_letter_id"] for letter in letters),
        },
    )


def _records(kafka: KafkaClient, topic: str) -> list[dict[str, Any]]:
    return [orjson.loads(message.value()) for message in follow(kafka, topic, to_end=True)]


def expected_window_ends(facts: Facts, monitors: Monitors) -> dict[str, set[int]]:
    """Return by monitor the ends (epoch ms) of every window that must have been judged.

    The final watermark is the least of the partitions' newest event times, less the bound and 1 ms. Valid for a series
    that has a request in every slice.
    """
    watermark = min(facts.newest_event_ms.values()) - monitors.watermark_bound_ms - 1
    ends = {}
    for monitor in monitors.monitors:
        first = (facts.first_event_ms // monitor.slide_ms + 1) * monitor.slide_ms
        last = (watermark + 1) // monitor.slide_ms * monitor.slide_ms
        ends[monitor.name] = set(range(first, last + 1, monitor.slide_ms))
    return ends


def expected_budget_ends(facts: Facts, watermark_bound_ms: int, slice_ms: int) -> set[int]:
    """Return the instants (epoch ms) at which every SLO must have told of its budget: each whole minute.

    The final watermark is that of `expected_window_ends`. Valid for SLOs by labels that all requests have alike, told
    of every minute, from the first slice on.
    """
    watermark = min(facts.newest_event_ms.values()) - watermark_bound_ms - 1
    first_slice_end = (facts.first_event_ms // slice_ms + 1) * slice_ms
    first = -(-first_slice_end // MINUTE_MS) * MINUTE_MS
    return set(range(first, watermark + 2, MINUTE_MS))


def told_budget_ends(facts: Facts) -> dict[tuple[str, str], Counter[int]]:
    """Return by SLO and series how often each instant's budget (epoch ms) was told."""
    told: dict[tuple[str, str], Counter[int]] = {}
    for verdict in facts.verdicts:
        if verdict["kind"] == VerdictKind.SLO and verdict["test"] == BUDGET_TEST:
            ends = told.setdefault((verdict["monitor"], verdict["series_key"]), Counter())
            ends[epoch_ms(verdict["window_end"])] += 1
    return told


def judged_window_ends(facts: Facts, monitor: str) -> dict[str, Counter[int]]:
    """Return by series key how often each window end (epoch ms) was judged."""
    judged: dict[str, Counter[int]] = {}
    for verdict in facts.verdicts:
        if verdict["monitor"] == monitor:
            judged.setdefault(verdict["series_key"], Counter())[epoch_ms(verdict["window_end"])] += 1
    return judged
