"""The second stage of the alert job on real engines: a storm, a silence, a change, an SLO, and a restart between."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands import change, silence
from infra.flink_cluster import FlinkCluster
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from schemas.verdicts import Verdict
from tests.alert_verdicts import DRIFTED, QUIET

pytestmark = pytest.mark.engine
PREFIX = "incident-test-"
N_STORM = 1_000
RULES = """
default: {firing_after_windows: 1, resolved_after_windows: 1}
incidents: {hold_seconds: 1, quiet_seconds: 2, update_interval_seconds: 2}
changes: {deploy: {action: suppress, window_seconds: 600, max_window_seconds: 600}}
"""
SLO = {"alertname": "Availability", "severity": "page", "owner": "serving", "never_suppress": True}


@dataclass
class Job:
    """The alert job, and what it reads and writes."""

    broker: Broker
    flink: FlinkCluster
    arguments: list[str]
    start_ms: int
    job_id: str = ""

    @property
    def kafka(self) -> KafkaClient:
        return KafkaClient(self.broker.bootstrap_servers)

    def start(self, savepoint: str | None = None) -> None:
        self.job_id = self.flink.run("jobs.alert", self.arguments, savepoint)

    def command(self, of: Any, *arguments: str) -> str:
        """Run a command of `slacktide` and return what it prints."""
        where = ["--bootstrap-servers", self.broker.bootstrap_servers, "--topic-prefix", PREFIX]
        result = CliRunner().invoke(of, [*arguments, *where], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    def send(self, judged: list[Verdict]) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        for v in judged:
            producer.produce(PREFIX + "verdicts", v.to_json(), key=v.series_key)
            producer.poll(0)
        assert producer.flush(30) == 0

    def verdict(self, like: Verdict, service: str, seconds: float, **changes: Any) -> Verdict:
        """A verdict on `service` whose window ends `seconds` after the start."""
        end_ms = self.start_ms + round(seconds * 1000)
        series = {"service.name": service, **changes.pop("series", {})}
        return replace(like, series=series, window_start_ms=end_ms - 300_000, window_end_ms=end_ms, **changes)

    def read(self, topic: str) -> list[dict[str, Any]]:
        return [orjson.loads(m.value()) for m in follow(self.kafka, PREFIX + topic, to_end=True)]

    def wait(self, topic: str, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        deadline = time.monotonic() + 90
        while not enough(found := self.read(topic)):
            assert time.monotonic() < deadline, (topic, Counter(each.get("state") for each in found))
            time.sleep(0.5)
        return found


def of_service(found: list[dict[str, Any]], service: str) -> list[tuple[str, str | None]]:
    """(state, reason) of each alert of a service, in order."""
    mine = (each for each in found if each["labels"].get("service_name") == service)
    return [(each["state"], each.get("suppression", {}).get("reason")) for each in mine]


@pytest.fixture(scope="module")
def job(broker: Broker, flink: FlinkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    rules = tmp_path_factory.mktemp("incidents") / "rules.yaml"
    rules.write_text(RULES)
    broker.create_topics(prefix=PREFIX)
    arguments = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, "--rules", str(rules)]
    arguments += ["--checkpoint-interval-seconds", "1", "--name-suffix=-incidents"]
    # Verdicts lie ahead of the clock (5 minutes are allowed), so that what the commands write "now" lies before them.
    made = Job(broker, flink, arguments, int(time.time() * 1000) + 90_000)
    yield made
    flink.cancel(made.job_id)


def test_a_storm_a_silence_a_change_and_a_restart(job: Job) -> None:
    silence_id = job.command(silence.command, "add", "service_name=quiet", "--for", "1h", "--comment", "load test")
    change_id = job.command(change.command, "add", "deploy", "calm", "--summary", "calm 1.8")
    producer = Producer({"bootstrap.servers": job.broker.bootstrap_servers})
    for topic in ("changes", "silences"):
        producer.produce(PREFIX + topic, b'{"specversion": "1.0", "id": "x"}')
    assert producer.flush(10) == 0
    storm = [job.verdict(DRIFTED, "storm", 1, series={"pod": f"pod-{i}"}) for i in range(N_STORM)]
    page = job.verdict(DRIFTED, "calm", 1, feature="ttft", kind="slo", evidence={"alert": SLO}, monitor="slo")
    calm, quiet = job.verdict(DRIFTED, "calm", 1), job.verdict(DRIFTED, "quiet", 1)
    cause = job.verdict(
        DRIFTED, "storm", 1, feature="mean(prompt_entropy)", test="mean", statistic=6.0, evidence=REFERENCE
    )
    job.start()
    job.send([cause])
    job.wait("alerts", lambda found: len(found) == 1)
    job.send([*storm, page, calm, quiet])
    alerts = job.wait("alerts", lambda found: len(found) >= N_STORM + 4)

    assert len(alerts) == len({alert["alert_id"] for alert in alerts}) == N_STORM + 4
    assert of_service(alerts, "quiet") == [("suppressed", "silence")]
    assert sorted(of_service(alerts, "calm")) == [("firing", None), ("suppressed", "change")]
    assert {alert["suppression"]["by"] for alert in alerts if "suppression" in alert} == {silence_id, change_id}
    stormy = [alert for alert in alerts[1:] if alert["labels"]["service_name"] == "storm"]
    assert {alert["state"] for alert in stormy} == {"firing"}
    assert len({alert["incident_id"] for alert in stormy}) == 1
    assert stormy[0]["root_cause"]["causes"][0]["name"] == "prompt_entropy"
    assert stormy[0]["annotations"]["root_cause"].startswith("Likeliest causes: prompt_entropy 1.00")

    told = job.wait("incidents", lambda found: _firing(found, "storm") == N_STORM + 1)
    mine = [each for each in told if each["groupLabels"] == {"service_name": "storm"}]
    assert [each["event"] for each in mine].count("opened") == 1
    assert len(mine[-1]["alerts"]) == max(len(each["alerts"]) for each in mine) == 10
    assert mine[-1]["truncatedAlerts"] == N_STORM - 9
    assert {each["groupLabels"]["service_name"] for each in told} == {"storm", "calm"}
    letters = job.read("dead_letters")
    assert sorted((letter["topic"], letter["reason"]) for letter in letters) == [
        (PREFIX + "changes", "bad_id"),
        (PREFIX + "silences", "bad_time"),
    ]

    savepoint = job.flink.savepoint_and_stop(job.job_id)
    job.command(silence.command, "expire", silence_id[:8])
    job.start(savepoint)
    job.send(storm[:100])  # a replay
    job.send(
        [
            replace(QUIET, series=v.series, window_start_ms=v.window_start_ms, window_end_ms=v.window_end_ms + 30_000)
            for v in storm[:1]
        ]
    )
    alerts = job.wait("alerts", lambda found: len(found) >= N_STORM + 6)
    assert of_service(alerts, "quiet") == [("suppressed", "silence"), ("firing", None)]
    assert Counter(of_service(alerts, "storm")) == {("firing", None): N_STORM + 1, ("resolved", None): 1}
    told = job.wait("incidents", lambda found: _firing(found, "storm") == N_STORM)
    last = [each for each in told if each["groupLabels"] == {"service_name": "storm"}][-1]
    assert (last["status"], last["event"], last["counts"]["resolved"]) == ("firing", "updated", 1)
    assert [each["event"] for each in told].count("opened") == 3


REFERENCE = {"reference": {"mean": 5.0, "standard_deviation": 0.5, "p1": 4.0, "p99": 6.0}}


def _firing(found: list[dict[str, Any]], service: str) -> int | None:
    """How many alerts of the service fire, as the newest notification has it."""
    mine = [each["counts"]["firing"] for each in found if each["groupLabels"].get("service_name") == service]
    return mine[-1] if mine else None
