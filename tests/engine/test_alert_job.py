"""The alert job on a real broker and cluster: exactly once, unreadable verdicts, and an upgrade in mid-streak."""

import os
import subprocess
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from infra.broker import Broker
from infra.dist import jobs_zip
from infra.flink_cluster import FlinkCluster
from infra.flink_run import Submission
from schemas.topics import VERDICTS
from schemas.verdicts import Verdict
from tests.alert_verdicts import DRIFTED, verdicts

pytestmark = pytest.mark.engine
PREFIX, LAST = "alert-test-", "last-"
RULES = "default: {firing_after_windows: 3, resolved_after_windows: 2}\nmonitors: {chat: {severity: critical}}\n"
TOMORROW = replace(DRIFTED, series={"name": "from-tomorrow"}, window_end_ms=int(time.time() * 1000) + 86_400_000)
UNREADABLE = {b"\xff garbage": "malformed_json", b"": "no_value", None: "no_value", TOMORROW.to_json(): "clock_skew"}

# A release that renames a field of the state, moves old states over, and says more in its alerts.
NEW_STATE_CODE = """
def _version_5(body):
    body["newest_window_end_ms"] = body.pop("last_window_end_ms")
    return body

STATE_VERSION = 5
MIGRATIONS[4] = _version_5
"""
NEW_ANNOTATION_CODE = """
_of_version_1 = alert_annotations

def alert_annotations(*args):
    return _of_version_1(*args) | {"release": "new"}
"""


@dataclass
class Setting:
    """One run of the job, stopped in the middle of series `upgrade`'s streak."""

    broker: Broker
    flink: FlinkCluster
    arguments: list[str]
    savepoint: str
    alerts: list[dict[str, Any]]
    dead_letters: list[dict[str, Any]]
    state_while_running: str


@pytest.fixture(scope="module")
def first_run(broker: Broker, flink: FlinkCluster, tmp_path_factory: pytest.TempPathFactory) -> Setting:
    rules = tmp_path_factory.mktemp("alert") / "rules.yaml"
    rules.write_text(RULES)
    broker.create_topics(prefix=PREFIX)
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--rules", str(rules)]
    arguments += ["--checkpoint-interval-seconds", "1", "--name-suffix=-test"]
    job = flink.run("jobs.alert", arguments)
    history = verdicts("DDDDqqDD", series={"name": "whole"})
    send(broker, [*history, *history, *verdicts("DDqDDqDD?D", series={"name": "never"})])
    send(broker, verdicts("DDD", series={"name": "open"}))
    for payload in UNREADABLE:
        send_bytes(broker, payload)
    send(broker, verdicts("DD", series={"name": "upgrade"}))
    alerts = wait_for(broker, "alerts", 3 + finish(broker, "first"))
    state = flink.state(job)
    savepoint = flink.savepoint_and_stop(job)
    return Setting(broker, flink, arguments, savepoint, alerts, read_all(broker, "dead_letters"), state)


def test_each_transition_comes_once(first_run: Setting) -> None:
    found = [(alert["series"]["name"], alert["state"]) for alert in first_run.alerts]
    assert sorted(of_test(found)) == [("open", "firing"), ("whole", "firing"), ("whole", "resolved")]
    firing, resolved = (alert for alert in first_run.alerts if alert["series"]["name"] == "whole")
    assert (firing["fingerprint"], firing["startsAt"]) == (resolved["fingerprint"], resolved["startsAt"])
    assert firing["labels"]["severity"] == "critical"
    assert all(alert["key"] == alert["fingerprint"] for alert in first_run.alerts)
    judged = [v.verdict_id for v in verdicts("DDDDqqDD", series={"name": "whole"})]
    assert [window["verdict_id"] for window in firing["evidence"]] == judged[:3]
    assert [window["verdict_id"] for window in resolved["evidence"]] == judged[4:6]


def test_unreadable_verdicts_are_dead_letters_and_the_job_stays_up(first_run: Setting) -> None:
    assert first_run.state_while_running == "RUNNING"
    letters = first_run.dead_letters
    assert sorted(letter["reason"] for letter in letters) == sorted(UNREADABLE.values())
    assert {letter["job"] for letter in letters} == {"alert"}
    assert {letter["topic"] for letter in letters} == {letter["key"] for letter in letters} == {PREFIX + "verdicts"}
    assert len({(letter["partition"], letter["offset"]) for letter in letters}) == len(UNREADABLE)


def test_new_code_goes_on_from_a_savepoint_in_mid_streak(first_run: Setting, tmp_path: Path) -> None:
    broker, flink = first_run.broker, first_run.flink
    job = submit(flink, release_with_a_new_state(tmp_path), first_run)
    send(broker, verdicts("D", first=3, series={"name": "upgrade"}))
    send(broker, verdicts("qq", first=4, series={"name": "open"}))
    send(broker, verdicts("DDDDqqDD", series={"name": "whole"}))  # a replay of what the old code saw
    seen = len(first_run.alerts)
    alerts = wait_for(broker, "alerts", seen + 2 + finish(broker, "second"))
    flink.cancel(job)

    new = of_test([(alert["series"]["name"], alert["state"]) for alert in alerts[seen:]])
    assert sorted(new) == [("open", "resolved"), ("upgrade", "firing")]
    assert len({alert["alert_id"] for alert in alerts}) == len(alerts)
    (fired,) = (alert for alert in alerts if alert["series"]["name"] == "upgrade")
    judged = [v.verdict_id for v in verdicts("DDD", series={"name": "upgrade"})]
    assert [window["verdict_id"] for window in fired["evidence"]] == judged
    opened, resolved = (alert for alert in alerts if alert["series"]["name"] == "open")
    assert resolved["startsAt"] == opened["startsAt"]
    assert "release" not in opened["annotations"]
    assert resolved["annotations"]["release"] == fired["annotations"]["release"] == "new"
    assert len(read_all(broker, "dead_letters")) == len(UNREADABLE)


def release_with_a_new_state(folder: Path) -> Path:
    """The jobs' zip as a later release would ship it; our own sources are left as they are."""
    source = jobs_zip(folder / "old")
    target = folder / "slacktide-jobs.zip"
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name in ("udfs/alerts/state.py", "udfs/alerts/lifecycle.py"):
                assert b"last_window_end_ms" in text
                text = text.replace(b"last_window_end_ms", b"newest_window_end_ms")
            if name == "udfs/alerts/state.py":
                text += NEW_STATE_CODE.encode()
            if name == "udfs/alerts/annotations.py":
                text += NEW_ANNOTATION_CODE.encode()
            new.writestr(name, text)
    return target


def submit(flink: FlinkCluster, release: Path, setting: Setting) -> str:
    """`flink run` of a release other than this checkout, from the savepoint; a state it can't place is an error."""
    submission = Submission("jobs.alert", setting.arguments, setting.savepoint)
    line = submission.command(flink.home, flink.rest_address)
    line[line.index("-pyfs") + 1] = str(release)
    environment = {**os.environ, **flink.home.environment}
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=True, cwd=release.parent)
    job = done.stdout.rsplit("JobID ", 1)[1].split()[0]
    flink.wait_processing(job)
    return job


def send(broker: Broker, judged: list[Verdict]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for v in judged:
        producer.produce(PREFIX + "verdicts", v.to_json(), key=v.series_key)
    assert producer.flush(10) == 0


def send_bytes(broker: Broker, payload: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(PREFIX + "verdicts", payload, key=b"any")
    assert producer.flush(10) == 0


def finish(broker: Broker, name: str) -> int:
    """Send what fires last on each partition, so that its alerts say that all before was read; return how many."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition in range(VERDICTS.partitions):
        for v in verdicts("DDD", series={"name": f"{LAST}{name}-{partition}"}):
            producer.produce(PREFIX + "verdicts", v.to_json(), partition=partition)
    assert producer.flush(10) == 0
    return VERDICTS.partitions


def of_test(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without the alerts of `finish`."""
    return [(name, state) for name, state in found if not name.startswith(LAST)]


def wait_for(broker: Broker, topic: str, count: int, timeout_seconds: float = 120) -> list[dict[str, Any]]:
    """Return all committed records of `topic` once there are `count`."""
    deadline = time.monotonic() + timeout_seconds
    while len(found := read_all(broker, topic)) < count and time.monotonic() < deadline:
        time.sleep(0.3)
    assert len(found) == count
    return found


def read_all(broker: Broker, topic: str) -> list[dict[str, Any]]:
    """Every committed record of a topic, with its key as `key`."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(PREFIX + topic, 0, 0)])
    records: list[dict[str, Any]] = []
    while (message := consumer.poll(10)) is not None and not message.error():
        records.append({**orjson.loads(message.value()), "key": message.key().decode()})
    assert message is not None, f"no end of {topic}"
    consumer.close()
    return records
