"""The state's encoding: what was ever written stays readable."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.alert_verdicts import EPOCH_MS, RULE, SLIDE_MS, events, verdicts
from udfs.alerts import state as lifecycle_state
from udfs.alerts.lifecycle import step
from udfs.alerts.state import LifecycleState, UnknownStateVersionError, decode, encode

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"


def state_after(timeline: str) -> LifecycleState:
    state = LifecycleState()
    for event in events(verdicts(timeline)):
        state, _ = step(state, event, RULE)
    return state


@pytest.mark.parametrize("timeline", ["", "q", "DD", "DDD", "DDDqq", "DDDqqqD"])
def test_what_is_encoded_comes_back(timeline: str) -> None:
    state = state_after(timeline)
    assert decode(encode(state)) == state


def test_version_4_is_still_written_as_committed() -> None:
    assert encode(state_after("DDDqq")) == (GOLDEN / "state_v4.json").read_bytes()


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_version_is_read(version: int) -> None:
    assert decode((GOLDEN / f"state_v{version}.json").read_bytes()) == state_after("DDDqq")


def test_the_next_version_reads_version_4(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a state is changed: a step in MIGRATIONS turns a version's body into the next one's."""

    def alert_days_become_milliseconds(body: dict[str, Any]) -> dict[str, Any]:
        return body | {"last_window_end_ms": body["last_window_end_ms"] + 1}

    monkeypatch.setattr(lifecycle_state, "STATE_VERSION", 6)
    monkeypatch.setitem(lifecycle_state.MIGRATIONS, 4, alert_days_become_milliseconds)
    monkeypatch.setitem(lifecycle_state.MIGRATIONS, 5, alert_days_become_milliseconds)
    old = decode((GOLDEN / "state_v4.json").read_bytes())
    assert old.last_window_end_ms == EPOCH_MS + 5 * SLIDE_MS + 2
    assert old.open_alert == state_after("DDDqq").open_alert
    assert decode(encode(old)) == old
    assert orjson.loads(encode(old))["version"] == 6


def test_a_newer_version_stops_the_job() -> None:
    newer = orjson.dumps(orjson.loads(encode(LifecycleState())) | {"version": 5})
    with pytest.raises(UnknownStateVersionError, match="version 5"):
        decode(newer)
