"""Sending to Kafka: idempotent, every delivery counted, at the replay's own pace."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import TopicMetadata

from infra.replay.faults import Sent
from infra.replay.generate import Generator
from infra.replay.message import Message
from infra.replay.plan import ReplayPlan
from infra.replay.report import DriftReport, ReplayReport
from infra.replay.resolve import resolve
from jobs.kafka_client import ConfigurationError, KafkaClient

FLUSH_TIMEOUT_SECONDS = 330.0  # above librdkafka's message.timeout.ms, after which every message has its answer
BROKER_TIMEOUT_SECONDS = 5.0
TOPIC_TIMEOUT_SECONDS = 3.0
POLL_SECONDS = 0.05
PROGRESS_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far a replay is: requests sent of `total`, event time (ms since 1970), seconds since begin and behind."""

    requests: int
    total: int
    event_ms: int
    seconds: float
    behind_seconds: float


class Sender:
    """One producer and its counts. Kafka's client retries by itself; what it gives up on is counted by error."""

    def __init__(self, kafka: KafkaClient, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "enable.idempotence": "true",
                "compression.type": "lz4",
                "linger.ms": "5",
                "message.max.bytes": str(16 * 1024 * 1024),
                # The hash with which the Collector's exporter places keyed messages (its `sarama_compat`).
                "partitioner": "fnv1a_random",
                "log_level": "0",
                **kafka.for_librdkafka(),
            }
        )
        self._servers = kafka.bootstrap_servers
        self.acknowledged = 0
        self.errors: dict[str, int] = {}

    def partitions(self, topic: str | None = None, option: str = "--topic") -> int:
        """Return a topic's number of partitions. Raises ConfigurationError when broker or topic is not there.

        A topic made a moment ago may not be known to the broker yet, so it is asked for a while.
        """
        deadline = time.monotonic() + TOPIC_TIMEOUT_SECONDS
        name = topic or self._topic
        while (found := self._topics().get(name)) is None:
            if time.monotonic() > deadline:
                problem = f"there is no topic {name} at {self._servers}"
                raise ConfigurationError("command line", option, problem, "`slacktide up` makes it; or name another")
            time.sleep(POLL_SECONDS)
        return len(found.partitions)

    def _topics(self) -> dict[str, TopicMetadata]:
        try:
            topics: dict[str, TopicMetadata] = self._producer.list_topics(timeout=BROKER_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            problem = f"no broker answers at {self._servers} ({error.args[0].str()})"
            remedy = "Start one with `slacktide up`, or name another"
            raise ConfigurationError("command line", "--bootstrap-servers", problem, remedy) from None
        return topics

    def send(self, message: Message) -> None:
        """Hand `message` to the client; waits while its buffer is full."""
        while True:
            try:
                self._producer.produce(
                    message.topic or self._topic,
                    message.value,
                    message.key,
                    -1 if message.partition is None else message.partition,
                    self._delivered,
                )
            except BufferError:
                self._producer.poll(POLL_SECONDS)
            else:
                self._producer.poll(0)
                return

    def wait_until(self, monotonic: float) -> None:
        """Return at the time `monotonic` of time.monotonic(), taking answers meanwhile."""
        while (left := monotonic - time.monotonic()) > 0:
            self._producer.poll(min(left, POLL_SECONDS))

    def finish(self) -> None:
        """Wait for every answer; what has none then counts as an error."""
        if unanswered := self._producer.flush(FLUSH_TIMEOUT_SECONDS):
            self._failed("unanswered", unanswered)

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self._failed(error.name())

    def _failed(self, name: str, count: int = 1) -> None:
        self.errors[name] = self.errors.get(name, 0) + count


def replay(plan: ReplayPlan, kafka: KafkaClient, progress: Callable[[Snapshot], None] = lambda _: None) -> ReplayReport:
    """Send what `plan` says to `kafka` and return the account of it.

    `progress` is called some ten times a second. Ctrl-C ends it early: what was sent is flushed and reported as
    `interrupted`. Raises ConfigurationError, before anything is sent, for a plan that can't be followed, a broker that
    doesn't answer or a topic that isn't there. Delivery errors are no exception: they stand in the report.
    """
    sender = Sender(kafka, plan.topic)
    partitions = sender.partitions()
    if plan.metrics:
        sender.partitions(plan.metrics_topic, "--metrics")
    generator = Generator(resolve(plan), partitions)
    report = empty_report(generator)
    begin = time.monotonic()
    try:
        _send_all(generator, sender, report, progress, begin)
    except KeyboardInterrupt:
        report.interrupted = True
    sender.finish()
    report.seconds = time.monotonic() - begin
    report.acknowledged = sender.acknowledged
    report.delivery_errors = sender.errors
    report.requests = generator.tally.requests
    for drift, (asked, _) in zip(report.drifts, generator.resolved.drifts, strict=True):
        drift.requests = generator.tally.drifted[asked]
    return report


def empty_report(generator: Generator) -> ReplayReport:
    """Return the account of a replay of which nothing was sent yet."""
    resolved = generator.resolved
    plan, start_ms = resolved.plan, resolved.start_ns // 1_000_000
    drifts = [
        DriftReport(drift.feature, drift.kind, drift.amount, start_ms + at_ns // 1_000_000)
        for drift, at_ns in resolved.drifts
    ]
    return ReplayReport(plan.topic, generator.partitions, plan.encoding, plan.seed, start_ms, drifts=drifts)


def _send_all(
    generator: Generator, sender: Sender, report: ReplayReport, progress: Callable[[Snapshot], None], begin: float
) -> None:
    """Send every message when it is due, and count it."""
    pace, total = generator.resolved.plan.pace, generator.resolved.source.count
    requests, shown = 0, 0.0
    for message in generator.messages():
        due = begin + message.due_ns / 1e9 / pace
        behind = time.monotonic() - due
        if behind < 0:
            sender.wait_until(due)
        elif pace != float("inf"):
            report.most_behind_seconds = max(report.most_behind_seconds, behind)
        sender.send(message)
        report.count(message)
        _note_drifts(report, message)
        requests += message.requests
        now = time.monotonic()
        if now - shown >= PROGRESS_SECONDS:
            shown = now
            event_ms = report.start_ms + message.last_event_ns // 1_000_000
            progress(Snapshot(requests, total, event_ms, now - begin, max(behind, 0.0)))
    progress(Snapshot(requests, total, report.last_event_ms or report.start_ms, time.monotonic() - begin, 0.0))


def _note_drifts(report: ReplayReport, message: Message) -> None:
    """Note when the first request of each drift is sent."""
    if message.sent is not Sent.CLEAN or not message.requests:
        return
    event_ms = report.start_ms + message.last_event_ns // 1_000_000
    for drift in report.drifts:
        if drift.sent_ms is None and event_ms >= drift.event_time_ms:
            drift.sent_ms = time.time_ns() // 1_000_000
