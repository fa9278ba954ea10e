"""`slacktide plot drift` against a real broker: verdicts and alerts of the topics, committed ones only."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.plot import command
from schemas.topics import ALERTS, VERDICTS
from tests import audit_records as records

pytestmark = [pytest.mark.engine, pytest.mark.slow]
PREFIX = "plot-command-"


@pytest.fixture(scope="module")
def bootstrap_servers(broker: Broker) -> str:
    """Six verdicts of one series, garbage, an aborted verdict of another series, and an alert."""
    broker.create_topics([VERDICTS, ALERTS], prefix=PREFIX)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "plot-command-test"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(6):
        producer.produce(PREFIX + VERDICTS.name, records.verdict(number, feature="feature_0").to_json())
    producer.produce(PREFIX + VERDICTS.name, b"garbage")
    producer.produce(PREFIX + ALERTS.name, records.alert(0, records.AlertState.FIRING))
    producer.commit_transaction(30)
    producer.begin_transaction()
    producer.produce(PREFIX + VERDICTS.name, records.verdict(1, feature="aborted").to_json())
    producer.flush(30)
    producer.abort_transaction(30)
    return broker.bootstrap_servers


def run(bootstrap_servers: str, *arguments: str) -> Result:
    line = ["drift", "--bootstrap-servers", bootstrap_servers, "--topic-prefix", PREFIX, *arguments]
    return CliRunner().invoke(command, line)


def test_series_of_the_topic_are_listed(bootstrap_servers: str) -> None:
    result = run(bootstrap_servers)
    assert result.exit_code == 0, result.output
    rows = [line.split()[:5] for line in result.stdout.splitlines()]
    assert rows[1:] == [["chat/feature_0/tenant=acme", "6", "6", "1", "1"]]
    assert result.stderr.startswith("skipped 1 records")


def test_a_series_of_the_topic_is_drawn_with_its_alert(bootstrap_servers: str, tmp_path: Path) -> None:
    out = tmp_path / "d.svg"
    result = run(bootstrap_servers, "chat/feature_0", "--out", str(out))
    assert result.exit_code == 0, result.output
    drawn = out.read_text()
    assert "6 windows, 6 with a figure, 1 drifted" in drawn
    assert "alert starts" in drawn
