"""`slacktide alerts` against a real broker: committed records only, from an instant on, and live."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.alerts import command
from infra.errors import StackError
from schemas.topics import ALERTS

pytestmark = pytest.mark.engine
GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
FIRING, RESOLVED = ((GOLDEN / f"{state}.json").read_bytes() for state in ("firing", "resolved"))
PREFIX = "alerts-command-"


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """A topic with a firing alert, garbage, an aborted transaction, and (published an hour later) a resolved alert."""
    broker.create_topics([ALERTS], prefix=PREFIX)
    name = PREFIX + ALERTS.name
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "alerts-command-test"})
    producer.init_transactions(10)
    hour_ago = int(time.time() * 1000) - 3_600_000
    for value, timestamp_ms, commit in (
        (FIRING, hour_ago, True),
        (b"garbage", hour_ago, True),
        (RESOLVED, hour_ago, False),
        (RESOLVED, hour_ago + 3_600_000, True),
    ):
        producer.begin_transaction()
        producer.produce(name, value, timestamp=timestamp_ms)
        (producer.commit_transaction if commit else producer.abort_transaction)(10)
    return name


def run(broker: Broker, *arguments: str) -> Result:
    line = ["--bootstrap-servers", broker.bootstrap_servers, "--topic-prefix", PREFIX, *arguments]
    return CliRunner().invoke(command, line)


def test_shows_what_is_committed_and_says_what_it_skips(broker: Broker, topic: str) -> None:
    result = run(broker, "--no-follow")
    assert result.exit_code == 0
    assert [line.split()[2] for line in result.stdout.splitlines()] == ["FIRING", "RESOLVED"]
    assert result.stderr == f"skipped what is not an alert ({topic}, partition 0, offset 2)\n"


def test_since_is_when_it_was_published(broker: Broker, topic: str) -> None:
    assert run(broker, "--no-follow", "--since", "10m", "--json").stdout.encode().splitlines() == [RESOLVED]
    assert run(broker, "--no-follow", "--since", "0s").stdout == ""


def test_follows_until_interrupted(broker: Broker, topic: str) -> None:
    line = [sys.executable, "-m", "infra.cli", "alerts", "--bootstrap-servers", broker.bootstrap_servers]
    line += ["--topic-prefix", PREFIX, "--json", "--since", "10m"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == RESOLVED
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, FIRING)
        assert producer.flush(10) == 0
        assert process.stdout.readline().strip() == FIRING
        process.send_signal(2)
        assert process.wait(30) == 0


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    result = run(broker, "--topic-prefix", "nowhere-")
    assert isinstance(result.exception, StackError)
    assert "there is no topic nowhere-alerts" in str(result.exception)
