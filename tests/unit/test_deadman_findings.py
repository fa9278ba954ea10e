"""The dead man: what a look shows to be wrong, when that becomes an alert, and who is told what."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from infra.deadman.alarms import Alarm, Alarms, advance, transition_of_alarm, watchdog
from infra.deadman.dead_man import DeadMan
from infra.deadman.findings import SUMMARIES, Finding, Memory, findings, memory_of, unknown_parts
from infra.deadman.look import Look, Watched, look
from infra.deadman.metrics import dead_man_page
from infra.deadman.thresholds import load_thresholds
from infra.delivery.alertmanager import alertmanager_body
from infra.delivery.targets import load_delivery
from infra.delivery.transition import FIRING, RESOLVED
from infra.flink_status import JobStatus
from infra.lag import Lag
from infra.ports import LOOPBACK, free_ports
from jobs.kafka_client import ConfigurationError, KafkaClient

GOLDEN = Path(__file__).parent.parent / "golden" / "delivery"
NOW_MS = 1_700_000_000_000
LIMITS = load_thresholds()
DRIFT = JobStatus("slacktide-drift", "j1", "RUNNING", 0, NOW_MS - 4_000, NOW_MS - 20_000, NOW_MS - 3_600_000)
WELL = Look(NOW_MS, jobs=(DRIFT,), lags=(Lag("slacktide-drift", "requests", 12),), newest_ms={"otlp_spans": NOW_MS})


def later(seen: Look, seconds: float, **changes: Any) -> Look:
    """The same look `seconds` later: what moves on its own has moved on."""
    at_ms = seen.at_ms + round(seconds * 1000)
    moved = {"at_ms": at_ms, "newest_ms": dict.fromkeys(seen.newest_ms, at_ms)}
    jobs = tuple(replace(j, last_checkpoint_ms=at_ms, watermark_ms=at_ms) for j in seen.jobs)
    return replace(seen, **({**moved, "jobs": jobs} | changes))


def found(*looks: Look, limits: Any = LIMITS) -> list[str]:
    """What is found at the last of these looks."""
    memory = Memory()
    for seen in looks:
        memory.note(seen, limits)
    return [finding.name for finding in findings(looks[-1], memory, limits)]


def job(**changes: Any) -> Look:
    return replace(WELL, jobs=(replace(DRIFT, **changes),))


def test_a_monitor_that_is_well_raises_nothing() -> None:
    assert found(WELL) == []
    assert found(WELL, later(WELL, 3600)) == []


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        (replace(WELL, flink_problem="no"), ["SlacktideFlinkUnreachable"]),
        (replace(WELL, kafka_problem="no", newest_ms={}, lags=()), ["SlacktideKafkaUnreachable"]),
        (job(state="RESTARTING"), ["SlacktideJobNotRunning"]),
        (job(state="FAILED"), ["SlacktideJobNotRunning"]),
        (job(last_checkpoint_ms=NOW_MS - 300_001), ["SlacktideCheckpointOld"]),
        (job(last_checkpoint_ms=NOW_MS - 300_000), []),
        (job(last_checkpoint_ms=None), ["SlacktideCheckpointOld"]),
        (job(last_checkpoint_ms=None, started_ms=NOW_MS - 10_000), []),
        (job(watermark_ms=NOW_MS - 900_001), ["SlacktideWatermarkOld"]),
        (job(watermark_ms=NOW_MS + 60_000), []),
        (job(watermark_ms=None), []),
        (replace(WELL, lags=(Lag("g", "t", 100_001),)), ["SlacktideLagHigh"]),
        (replace(WELL, newest_ms={"otlp_spans": NOW_MS - 600_001}), ["SlacktideSourceSilent"]),
        (replace(WELL, newest_ms={"otlp_spans": None}), ["SlacktideSourceSilent"]),
        (replace(WELL, audit_problem="it says that it is failed"), ["SlacktideAuditDown"]),
    ],
)
def test_each_limit_finds_what_is_beyond_it(seen: Look, names: list[str]) -> None:
    assert found(seen) == names
    assert set(names) <= set(SUMMARIES)


def test_a_job_that_was_seen_running_and_is_gone_is_missed_for_a_day() -> None:
    gone = {"jobs": ()}
    assert found(WELL, later(WELL, 30, **gone)) == ["SlacktideJobNotRunning"]
    assert found(WELL, later(WELL, 86_401, **gone)) == []
    expecting = replace(LIMITS, expected_jobs=("slacktide-alert",))
    assert found(WELL, limits=expecting) == ["SlacktideJobNotRunning"]


def test_restarts_are_counted_within_their_window_and_from_the_first_look() -> None:
    def restarted(seconds: float, restarts: int) -> Look:
        seen = later(WELL, seconds)
        return replace(seen, jobs=(replace(seen.jobs[0], restarts=restarts),))

    assert found(restarted(0, 40), restarted(15, 42)) == [], "what was before the first look is not known"
    assert found(restarted(0, 40), restarted(15, 43)) == ["SlacktideJobRestarts"]
    slow = [restarted(hour * 3601.0, hour) for hour in range(8)]
    assert found(*slow) == [], "one an hour"


def test_event_time_that_stands_still_is_trouble_only_while_records_come() -> None:
    def stands(seconds: float, newest_seconds: float) -> Look:
        newest = {"otlp_spans": NOW_MS + round(newest_seconds * 1000)}
        return later(WELL, seconds, jobs=(replace(DRIFT, last_checkpoint_ms=NOW_MS + 400_000),), newest_ms=newest)

    assert found(WELL, stands(301, 300)) == ["SlacktideWatermarkStuck"]
    assert found(WELL, stands(299, 299)) == []
    assert found(WELL, stands(301, 0)) == [], "nothing came, so nothing could move it"


def test_what_is_switched_off_is_not_found(tmp_path: Path) -> None:
    file = tmp_path / "deadman.yaml"
    file.write_text("max_watermark_age_seconds: null\nmax_lag_records: null\nsource_topics: []\n")
    limits = load_thresholds(file)
    assert limits.max_checkpoint_age_seconds == 300
    seen = replace(job(watermark_ms=0), lags=(Lag("g", "t", 10**9),))
    assert found(seen, limits=limits) == []


@pytest.mark.parametrize(
    ("body", "field", "remedy"),
    [
        ("max_lag_record: 5", "max_lag_record", "Did you mean max_lag_records"),
        ("interval_seconds: 0", "interval_seconds", "above 0"),
        ("interval_seconds: null", "interval_seconds", "Add it"),
        ("unreachable_seconds: -1", "unreachable_seconds", "0 or more"),
        ("expected_jobs: slacktide-drift", "expected_jobs", "- ..."),
        ("owner: 5", "owner", "text"),
        ("[]", "(file)", "name: value"),
    ],
)
def test_what_is_wrong_with_a_file_of_limits(tmp_path: Path, body: str, field: str, remedy: str) -> None:
    file = tmp_path / "deadman.yaml"
    file.write_text(body)
    with pytest.raises(ConfigurationError) as caught:
        load_thresholds(file)
    assert (caught.value.file, caught.value.field) == (str(file), field)
    assert remedy in caught.value.remedy


# Alarms.

FINDING = Finding("SlacktideJobNotRunning", "flink", {"flink_job": "slacktide-drift"}, "drift is FAILED", 60.0)


def states(alarms: Alarms) -> list[str | None]:
    return [alarm.state for alarm in alarms.values()]


def test_it_fires_when_it_has_lasted_and_not_knowing_is_no_recovery() -> None:
    alarms = advance({}, [FINDING], (), ("am",), NOW_MS)
    assert states(alarms) == [None]
    assert advance(alarms, [], (), ("am",), NOW_MS + 30_000) == {}, "what passes quickly was nothing"
    alarms = advance(alarms, [], {"flink"}, ("am",), NOW_MS + 30_000)
    assert states(alarms) == [None], "nobody could say"
    alarms = advance(alarms, [FINDING], (), ("am",), NOW_MS + 60_000)
    assert states(alarms) == [FIRING]
    alarms = advance(alarms, [], {"flink"}, ("am",), NOW_MS + 70_000)
    assert states(alarms) == [FIRING]
    alarms = advance(alarms, [], (), ("am",), NOW_MS + 80_000)
    assert states(alarms) == [RESOLVED]
    assert states(advance(alarms, [], (), ("am",), NOW_MS + 90_000)) == [RESOLVED], "nobody was told yet"
    assert advance(alarms, [], (), ("am",), NOW_MS + 980_001) == {}
    told = {key: replace(alarm, told={"am": RESOLVED}) for key, alarm in alarms.items()}
    assert advance(told, [], (), ("am",), NOW_MS + 90_000) == {}


def test_trouble_that_comes_back_is_a_new_alert() -> None:
    once = advance({}, [replace(FINDING, lasts_seconds=0.0)], (), ("am",), NOW_MS)
    over = advance(once, [], (), ("am",), NOW_MS + 1000)
    again = advance(over, [replace(FINDING, lasts_seconds=0.0)], (), ("am",), NOW_MS + 2000)
    (alarm,) = again.values()
    assert (alarm.fired_ms, alarm.resolved_ms, alarm.told) == (NOW_MS + 2000, None, {})


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30))
@hypothesis_settings(max_examples=60)
def test_firing_and_resolved_alternate_whatever_is_seen(rows: list[tuple[bool, bool]]) -> None:
    alarms: Alarms = {}
    said: list[str] = []
    for number, (is_there, is_unknown) in enumerate(rows):
        seen = [FINDING] if is_there and not is_unknown else []
        alarms = advance(alarms, seen, {"flink"} if is_unknown else (), ("am",), NOW_MS + 20_000 * number)
        for key, alarm in alarms.items():
            if alarm.state and alarm.told.get("am") != alarm.state:
                said.append(alarm.state)
                alarms[key] = replace(alarm, told={"am": alarm.state})
        assert len(alarms) <= 1
        assert all(Alarm(**orjson.loads(orjson.dumps(alarm.to_body()))) == alarm for alarm in alarms.values())
    assert said == ([FIRING, RESOLVED] * len(rows))[: len(said)]


def test_memory_comes_back_from_its_bytes() -> None:
    memory = Memory()
    memory.note(WELL, LIMITS)
    memory.note(later(WELL, 15), LIMITS)
    assert memory_of(orjson.loads(orjson.dumps(memory.to_body()))) == memory
    memory.note(replace(later(WELL, 30), flink_problem="no", jobs=()), LIMITS)
    assert memory.seen_ms == {"slacktide-drift": NOW_MS + 15_000}


# The whole of it.


def dead_man(folder: Path, seen: Callable[[], Look], url: str = f"http://{LOOPBACK}:9") -> DeadMan:
    delivery = load_delivery().with_addresses([url], [], None)
    return DeadMan(seen, replace(LIMITS, owner="ml-oncall"), delivery, folder / "memory.json", clock=lambda: NOW_MS)


def test_payload_and_metrics_are_as_committed(tmp_path: Path) -> None:
    seen = replace(WELL, kafka_problem="no Kafka broker answers", lags=(), newest_ms={"otlp_spans": None})
    watching = dead_man(tmp_path, lambda: seen)
    watching.step()
    watching.step()
    alarms = advance(watching.alarms, findings(seen, Memory(), LIMITS), unknown_parts(seen), (), NOW_MS + 60_000)
    alerts = [transition_of_alarm(a, severity="critical", owner="ml-oncall") for a in alarms.values()]
    body = alertmanager_body([*alerts, watchdog(NOW_MS)], now_ms=NOW_MS + 60_000, resend_delay_seconds=60)
    shown = orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    assert shown == (GOLDEN / "deadman_alertmanager.json").read_bytes()
    watching.alarms = alarms
    assert dead_man_page(watching) == (GOLDEN / "deadman_metrics.txt").read_bytes()


def test_nothing_that_answers_is_still_a_look_and_nobody_that_takes_is_said_so(tmp_path: Path) -> None:
    kafka_port, flink_port, alertmanager_port = free_ports(3)
    watched = Watched(
        KafkaClient(f"{LOOPBACK}:{kafka_port}"), f"{LOOPBACK}:{flink_port}", ["otlp_spans"], timeout_seconds=0.5
    )
    seen = look(watched)
    assert found(seen) == ["SlacktideFlinkUnreachable", "SlacktideKafkaUnreachable"]
    watching = dead_man(tmp_path, lambda: seen, f"http://{LOOPBACK}:{alertmanager_port}")
    assert watching.step() is False
    assert watching.failed_posts == {"alertmanager": 1}
    again = dead_man(tmp_path, lambda: seen)
    assert again.alarms.keys() == watching.alarms.keys(), "the next run knows since when it lasts"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version":1,"memory":{},"alarms":{}}'])
def test_a_broken_memory_is_as_none(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "memory.json").write_bytes(body)
    assert dead_man(tmp_path, lambda: WELL).alarms == {}


def test_what_the_audit_job_says_of_itself(tmp_path: Path) -> None:
    file = tmp_path / "audit.json"
    nowhere = f"{LOOPBACK}:{free_ports(1)[0]}"
    watched = Watched(KafkaClient(nowhere), nowhere, [], file, max_audit_silence_seconds=60, timeout_seconds=0.1)

    def problem(status: object) -> str | None:
        file.write_bytes(orjson.dumps(status))
        return look(watched).audit_problem

    now = "2999-01-01T00:00:00.000Z"
    assert look(watched).audit_problem == "its status file can't be read"
    assert problem({"state": "running", "updated_at": now}) is None
    assert problem({"state": "failed", "updated_at": now}) == "it says that it is failed"
    assert "it has said nothing for" in str(problem({"state": "running", "updated_at": "2020-01-01T00:00:00.000Z"}))
    assert problem({"state": "running"}) == "its status file can't be read"
