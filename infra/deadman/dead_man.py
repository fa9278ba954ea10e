"""Looks at the monitor from outside, again and again, and tells the targets what is wrong with it.

It goes by neither Kafka nor Flink, which may be dead, and keeps no connection. A small file lets a start anew, or each
run of a cron job, know since when something lasts and who was told.

Alertmanager is told everything at every look: what fires (with `endsAt` ahead), what is over, and the watchdog. A
webhook is told each change once, and the watchdog every resend delay. A target that is away is told at the next look.
"""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from infra.deadman.alarms import Alarm, Alarms, advance, transition_of_alarm, watchdog
from infra.deadman.findings import Memory, findings, memory_of, unknown_parts
from infra.deadman.look import Look
from infra.deadman.thresholds import Thresholds
from infra.delivery.forwarder import now_ms
from infra.delivery.http_post import Outcome
from infra.delivery.post import post_alerts
from infra.delivery.targets import ALERTMANAGER, DeliverySettings, Target
from infra.delivery.transition import FIRING, Transition

VERSION = 1
ONCE_TRIES = 5

log = logging.getLogger("slacktide.deadman")


@dataclass
class DeadMan:
    """Tells `delivery`'s targets what `look` shows. `memory_file` need not exist; its folder is made."""

    look: Callable[[], Look]
    thresholds: Thresholds
    delivery: DeliverySettings
    memory_file: Path
    clock: Callable[[], int] = now_ms
    alarms: Alarms = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    last_look: Look | None = None
    failed_posts: dict[str, int] = field(default_factory=dict)
    _watchdog_due_ms: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started_ms = self.clock()
        self._remember()

    def run(self, stopping: threading.Event, after_step: Callable[[], None] = lambda: None) -> None:
        """Look until asked to stop. A look that takes longer than the interval is followed at once by the next."""
        while not stopping.is_set():
            began = time.monotonic()
            self.step()
            after_step()
            stopping.wait(max(0.1, self.thresholds.interval_seconds - (time.monotonic() - began)))

    def step(self) -> bool:
        """Look once and tell once; return whether every target took what it was told."""
        self._take(self.look())
        told = self._tell()
        with contextlib.suppress(OSError):
            self._save()
        return told

    def once(self, draw: random.Random | None = None) -> bool:
        """Look once, and tell until every target took it or was tried `ONCE_TRIES` times."""
        is_told, failures = self.step(), 1
        while not is_told and failures < ONCE_TRIES:
            time.sleep(self.delivery.policy.back_off.delay_seconds(failures, draw or random.Random()))
            is_told, failures = self._tell(), failures + 1
        with contextlib.suppress(OSError):
            self._save()
        return is_told

    @property
    def firing(self) -> list[Alarm]:
        """What fires."""
        return [alarm for alarm in self.alarms.values() if alarm.state == FIRING]

    def _take(self, seen: Look) -> None:
        before = {key: alarm.state for key, alarm in self.alarms.items()}
        self.memory.note(seen, self.thresholds)
        found = findings(seen, self.memory, self.thresholds)
        names = [target.name for target in self.delivery.targets]
        self.alarms = advance(self.alarms, found, unknown_parts(seen), names, seen.at_ms)
        self.last_look = seen
        for key, alarm in self.alarms.items():
            if alarm.state and alarm.state != before.get(key):
                log.warning("%s %s: %s", alarm.state, alarm.name, alarm.detail)

    # Telling.

    def _tell(self) -> bool:
        """Tell all targets at the same time, so that one that is away holds up no other."""
        with ThreadPoolExecutor(len(self.delivery.targets)) as pool:
            taken = list(pool.map(self._tell_one, self.delivery.targets))
        for target, keys in zip(self.delivery.targets, taken, strict=True):
            for key in keys or ():
                alarm = self.alarms[key]
                self.alarms[key] = replace(alarm, told={**alarm.told, target.name: alarm.state or ""})
        return all(keys is not None for keys in taken)

    def _tell_one(self, target: Target) -> list[str] | None:
        """Return the alarms that the target was told of; None where it took nothing."""
        at_ms = self.clock()
        news = [key for key, alarm in self.alarms.items() if _is_news(alarm, target)]
        alerts = [self._transition(self.alarms[key]) for key in news]
        with_watchdog = target.kind == ALERTMANAGER or at_ms >= self._watchdog_due_ms.get(target.name, 0)
        if with_watchdog:
            alerts.append(watchdog(self._started_ms))
        if alerts and not self._post(target, alerts, at_ms):
            return None
        if with_watchdog:
            self._watchdog_due_ms[target.name] = at_ms + round(self.delivery.policy.resend_delay_seconds * 1000)
        return news

    def _post(self, target: Target, alerts: Sequence[Transition], at_ms: int) -> bool:
        size = self.delivery.policy.max_batch_alerts
        for first in range(0, len(alerts), size):
            answer = post_alerts(target, self.delivery.policy, alerts[first : first + size], at_ms)
            if answer.outcome is not Outcome.TAKEN:
                self.failed_posts[target.name] = self.failed_posts.get(target.name, 0) + 1
                log.error("%s (%s) takes no alerts: %s", target.name, target.shown_url, answer.detail)
                return False
        return True

    def _transition(self, alarm: Alarm) -> Transition:
        return transition_of_alarm(alarm, severity=self.thresholds.severity, owner=self.thresholds.owner)

    # Memory.

    def _remember(self) -> None:
        """Take up what an earlier run left; a file that can't be read is as none."""
        try:
            body = orjson.loads(self.memory_file.read_bytes())
            if body["version"] == VERSION:
                self.memory = memory_of(body["memory"])
                self.alarms = {key: Alarm(**alarm) for key, alarm in body["alarms"].items()}
                self._started_ms = int(body["started_ms"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            self.memory, self.alarms = Memory(), {}

    def _save(self) -> None:
        body = {
            "version": VERSION,
            "started_ms": self._started_ms,
            "memory": self.memory.to_body(),
            "alarms": {key: alarm.to_body() for key, alarm in self.alarms.items()},
        }
        self.memory_file.parent.mkdir(parents=True, exist_ok=True)
        part = self.memory_file.with_suffix(".part")
        part.write_bytes(orjson.dumps(body))
        part.replace(self.memory_file)


def _is_news(alarm: Alarm, target: Target) -> bool:
    """Whether `target` is to be told of `alarm` now: each change, and to Alertmanager what fires, each time."""
    if alarm.state is None:
        return False
    return alarm.told.get(target.name) != alarm.state or (alarm.state == FIRING and target.kind == ALERTMANAGER)
