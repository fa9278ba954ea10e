"""When the second stage wakes to work through what it holds: the function itself, its states and timers made up."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from pyflink.common import Row

from tests.incident_alerts import POLICY, firing
from udfs.alerts import flink_incidents
from udfs.alerts.flink_incidents import Incidents
from udfs.alerts.flink_lifecycle import TRANSITION

NOW_MS = 1_700_000_100_000
HOUR_MS = 3_600_000


@dataclass
class FakeState:
    """A value state and a map state."""

    held: dict[str, bytes] = field(default_factory=dict)

    def value(self) -> bytes | None:
        return self.held.get("")

    def update(self, data: bytes) -> None:
        self.held[""] = data

    def put(self, name: str, data: bytes) -> None:
        self.held[name] = data


def woken_at(function: Incidents, monkeypatch: pytest.MonkeyPatch, *, worker_age_ms: int) -> int:
    """When the timer is set for that one transition registers, by a function that opens now in a worker of that age."""
    monkeypatch.setattr(flink_incidents, "process_started_ms", lambda: NOW_MS - worker_age_ms)
    states = SimpleNamespace(get_state=lambda _: FakeState(), get_map_state=lambda _: FakeState())
    function.open(states)
    timers: list[int] = []
    service = SimpleNamespace(current_processing_time=lambda: NOW_MS, register_processing_time_timer=timers.append)
    alert = firing(60)
    row = Row("scope", TRANSITION, alert.updated_at_ms, alert.alert_id, alert.to_json())
    ctx: Any = SimpleNamespace(timer_service=lambda: service)
    function.process_element(row, ctx)
    (at_ms,) = timers
    return at_ms - NOW_MS


@pytest.mark.parametrize(("worker_age_ms", "wait_ms"), [(HOUR_MS, 500), (0, 8_000), (7_000, 1_000), (7_900, 500)])
def test_silences_are_waited_for_after_the_workers_start_and_not_after_the_first_record(
    monkeypatch: pytest.MonkeyPatch, worker_age_ms: int, wait_ms: int
) -> None:
    """A worker opens a function at its first record: the first page of a quiet job came 5 s late."""
    assert woken_at(Incidents(POLICY, 30.0), monkeypatch, worker_age_ms=worker_age_ms) == wait_ms


def test_after_a_long_tick_the_next_one_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a storm a tick reads all open alerts: one after the other they would leave no time for the records."""
    function = Incidents(POLICY, 30.0)
    function._last_tick_ms = 1_000.0
    assert woken_at(function, monkeypatch, worker_age_ms=HOUR_MS) == 2_000
    function._last_tick_ms = 100.0
    assert woken_at(function, monkeypatch, worker_age_ms=HOUR_MS) == 500
