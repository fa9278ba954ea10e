"""Forwards topic `alerts` (or `incidents`) to one target, so that nothing is lost, and posts again what fires.

What holds, whatever dies:

- A transition's offset is committed only when the target has taken it, or when the record is in `dead_letters`: because
  it is no alert, or because the target refused it for good (most 4xx). So each is delivered at least once.
- The transitions of a fingerprint are delivered in their order: one POST holds at most one of each.
- A target that is away is tried again for as long as it takes. Nothing is read meanwhile, so memory does not grow.
- A refused POST of several alerts is halved until the one at fault is found; the others are delivered.
- After a restart, what fires is posted again at once. Which that is, is kept in a small file now and then, and made up
  to date from the topic; without the file it is made from the topic alone.
"""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import KafkaException, Message

from infra.delivery.alert_topic import AlertTopic, DeadLetters
from infra.delivery.firing import VERSION, FiringAlerts, encoded_state
from infra.delivery.http_post import Answer, Outcome
from infra.delivery.post import post_alerts, post_incident
from infra.delivery.targets import ALERTMANAGER, OF_INCIDENTS, DeliveryPolicy, Target
from infra.delivery.transition import Transition, decode_notification_id, decode_transition
from schemas.dead_letters import Reason
from schemas.record_fields import UnreadableRecordError

POLL_SECONDS = 0.5
SAVE_SECONDS = 30.0
DAY_MS = 86_400_000

log = logging.getLogger("slacktide.forward")


class StoppedError(Exception):
    """Asked to stop while a target was away; what it was to be told is not committed."""


@dataclass
class Figures:
    """What became of everything since the start. `waiting_since_ms` is when a target that is away was first."""

    taken: int = 0
    resent: int = 0
    refused: int = 0
    unreadable: int = 0
    failed_posts: int = 0
    waiting_since_ms: int | None = None


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


@dataclass
class Forwarder:
    """Delivers to one target until `stopping` is set. `state_file` need not exist; its folder is made."""

    target: Target
    policy: DeliveryPolicy
    topic: AlertTopic
    dead_letters: DeadLetters
    state_file: Path
    stopping: threading.Event
    clock: Callable[[], int] = now_ms
    figures: Figures = field(default_factory=Figures)
    _draw: random.Random = field(default_factory=random.Random)
    _saved_at: float = 0.0

    def __post_init__(self) -> None:
        self.firing = FiringAlerts(
            resend_delay_ms=round(self.policy.resend_delay_seconds * 1000),
            forget_after_ms=round(self.policy.forget_after_days * DAY_MS),
            max_alerts=self.policy.max_firing_alerts,
        )
        self._offsets: dict[int, int] = {}

    def run(self) -> None:
        """Deliver until asked to stop. Raises StackError where the topic can't be read at all."""
        try:
            self._begin()
            while not self.stopping.is_set():
                self.step()
        except StoppedError:
            log.info("%s: stopped while it was away; what waits stays on Kafka", self.target.name)
        finally:
            self.topic.commit({p: offset for p, offset in self._offsets.items() if offset >= 0})
            with contextlib.suppress(OSError):
                self._save()
            self.topic.close()

    def step(self) -> None:
        """Deliver what has come, and post again what is due; waits at most `POLL_SECONDS` for something to do."""
        messages = self.topic.read(self.policy.max_batch_alerts, self._poll_seconds())
        if self.target.of == OF_INCIDENTS:
            self._forward_incidents(messages)
        else:
            self._forward(messages)
            self._resend()
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._save()

    def _poll_seconds(self) -> float:
        due_ms = self.firing.next_due_ms() if self.target.kind == ALERTMANAGER else None
        if due_ms is None:
            return POLL_SECONDS
        return min(POLL_SECONDS, max(0.0, (due_ms - self.clock()) / 1000))

    # Start.

    def _begin(self) -> None:
        kept = self._kept()
        failures = 0
        while True:
            try:
                begin = self.topic.begin({int(p): int(offset) for p, offset in kept.get("offsets", {}).items()})
                break
            except KafkaException as error:
                failures += 1
                log.warning("%s: Kafka does not answer (%s); trying again", self.target.name, error.args[0].str())
                self._wait(self.policy.back_off.delay_seconds(failures, self._draw))
        is_same = (kept.get("topic"), kept.get("cluster_id")) == (self.topic.topic, self.topic.cluster_id)
        if is_same and all(offset >= 0 for offset in begin.known.values()):
            with contextlib.suppress(UnreadableRecordError, AttributeError, TypeError):
                self.firing.restore(kept["firing"])
        elif kept:
            begin = self.topic.begin({})
        for message in self.topic.history(begin) if self.target.of != OF_INCIDENTS else ():
            with contextlib.suppress(UnreadableRecordError):
                self.firing.take(decode_transition(message.value()), 0)
        self._offsets = {p: max(begin.known[p], offset) for p, offset in begin.deliver.items()}
        self.firing.all_due()
        self.topic.assign(begin)
        names = (self.target.name, len(self.firing), self.topic.topic, self.topic.group)
        log.info("%s: %d alerts fire; reading %s as %s", *names)

    def _kept(self) -> dict[str, Any]:
        """What the state file holds; nothing where there is none, or it is of another version."""
        try:
            found = orjson.loads(self.state_file.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return found if isinstance(found, dict) and found.get("version") == VERSION else {}

    def _save(self) -> None:
        """Replace the state file, so that a reader never sees half of it."""
        self._saved_at = time.monotonic()
        if not self.topic.cluster_id:
            return  # never begun
        offsets = {str(p): offset for p, offset in self._offsets.items() if offset >= 0}
        place: dict[str, object] = {
            "topic": self.topic.topic,
            "cluster_id": self.topic.cluster_id,
            "target": self.target.name,
            "offsets": offsets,
        }
        self.state_file.parent.mkdir(parents=True, exist_ok=True)
        part = self.state_file.with_suffix(".part")
        part.write_bytes(encoded_state(self.firing, place))
        part.replace(self.state_file)

    # Delivery.

    def _forward(self, messages: Sequence[Message]) -> None:
        """Deliver `messages` in POSTs that hold no fingerprint twice, and commit after each."""
        waiting: dict[str, tuple[Transition, Message]] = {}
        offsets: dict[int, int] = {}
        for message in messages:
            try:
                transition = decode_transition(message.value())
            except UnreadableRecordError as error:
                self._bury(message, error.reason, error.detail)
                self.figures.unreadable += 1
            else:
                if transition.fingerprint in waiting:
                    self._flush(waiting, offsets)
                    waiting, offsets = {}, {}
                waiting[transition.fingerprint] = (transition, message)
            offsets[message.partition()] = message.offset() + 1
        self._flush(waiting, offsets)

    def _flush(self, waiting: dict[str, tuple[Transition, Message]], offsets: dict[int, int]) -> None:
        if not offsets:
            return
        sent = [(self.firing.to_send(transition), message) for transition, message in waiting.values()]
        refused = self._deliver([(transition, message) for transition, message in sent if transition is not None])
        for name, (transition, _) in waiting.items():
            if name not in refused:
                self.firing.take(transition, self.clock())
        self._offsets |= offsets
        self.topic.commit(offsets)

    def _deliver(self, alerts: Sequence[tuple[Transition, Message | None]]) -> set[str]:
        """Post until each was taken or refused, and return the fingerprints of those refused."""
        if not alerts:
            return set()
        transitions = [transition for transition, _ in alerts]
        answer = self._post(lambda at_ms: post_alerts(self.target, self.policy, transitions, at_ms))
        if answer.outcome is Outcome.TAKEN:
            self.figures.taken += sum(message is not None for _, message in alerts)
            return set()
        if len(alerts) > 1:
            half = len(alerts) // 2
            return self._deliver(alerts[:half]) | self._deliver(alerts[half:])
        ((transition, message),) = alerts
        self.figures.refused += 1
        log.error("%s refused alert %s: %s", self.target.name, transition.fingerprint, answer.detail)
        if message is not None:
            self._bury(message, Reason.DELIVERY_REFUSED, f"{self.target.kind} {self.target.name}: HTTP {answer.status}")
        return {transition.fingerprint}

    def _resend(self) -> None:
        """Post again one batch of what is due: news comes in between, however many fire.

        A webhook is told each transition once.
        """
        if self.target.kind != ALERTMANAGER:
            return
        due = self.firing.due(self.clock(), self.policy.max_batch_alerts)
        refused = self._deliver([(alert, None) for alert in due])
        for alert in due:
            if alert.fingerprint in refused:
                self.firing.drop(alert)
        taken = [alert for alert in due if alert.fingerprint not in refused]
        self.firing.resent(taken, self.clock())
        self.figures.resent += len(taken)

    def _forward_incidents(self, messages: Sequence[Message]) -> None:
        """Deliver notifications one by one, in their order, and commit after each."""
        for message in messages:
            body = message.value()
            try:
                name = decode_notification_id(body)
            except UnreadableRecordError as error:
                self._bury(message, error.reason, error.detail)
                self.figures.unreadable += 1
            else:
                self._deliver_incident(message, body, name)
            self._offsets[message.partition()] = message.offset() + 1
            self.topic.commit({message.partition(): message.offset() + 1})

    def _deliver_incident(self, message: Message, body: bytes, name: str) -> None:
        answer = self._post(lambda at_ms: post_incident(self.target, self.policy, body, name, at_ms))
        if answer.outcome is Outcome.TAKEN:
            self.figures.taken += 1
            return
        self.figures.refused += 1
        log.error("%s refused notification %s: %s", self.target.name, name, answer.detail)
        self._bury(message, Reason.DELIVERY_REFUSED, f"{self.target.kind} {self.target.name}: HTTP {answer.status}")

    def _post(self, send: Callable[[int], Answer]) -> Answer:
        """Post until the target takes or refuses it. Raises StoppedError when asked to stop before."""
        failures = 0
        while True:
            at_ms = self.clock()
            answer = send(at_ms)
            if answer.outcome is not Outcome.RETRY:
                self._note_answered(failures)
                return answer
            failures += 1
            self.figures.failed_posts += 1
            if failures == 1:
                self.figures.waiting_since_ms = at_ms
                shown = f"{self.target.name} ({self.target.shown_url})"
                log.warning("%s takes no alerts: %s; trying again until it does", shown, answer.detail)
            wait_seconds = self.policy.back_off.delay_seconds(failures, self._draw)
            asked_seconds = min(answer.retry_after_seconds or 0.0, self.policy.longest_wait_seconds)
            self._wait(max(wait_seconds, asked_seconds))

    def _note_answered(self, failures: int) -> None:
        since_ms = self.figures.waiting_since_ms
        if failures and since_ms is not None:
            away_seconds = (self.clock() - since_ms) / 1000
            log.info("%s answers again after %.0f s and %d tries", self.target.name, away_seconds, failures)
        self.figures.waiting_since_ms = None

    def _bury(self, message: Message, reason: str, detail: str) -> None:
        """Write `message` to `dead_letters`, however long the broker takes. Raises StoppedError."""
        failures = 0
        while not self.dead_letters.write(message, target=self.target.name, reason=reason, detail=detail):
            failures += 1
            log.warning("%s: dead_letters takes nothing; trying again", self.target.name)
            self._wait(self.policy.back_off.delay_seconds(failures, self._draw))

    def _wait(self, seconds: float) -> None:
        if self.stopping.wait(seconds):
            raise StoppedError
