"""`slacktide alerts` against a real broker: committed records only, from an instant on, and live."""

import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from infra.broker import Broker
from infra.commands.alerts import command
from infra.errors import StackError
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from schemas.feedback import decode_feedback
from schemas.times import rfc3339
from schemas.topics import ALERTS, FEEDBACK

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


def test_a_label_is_written_for_the_newest_firing_of_a_fingerprint(broker: Broker, topic: str) -> None:
    broker.create_topics([FEEDBACK], prefix=PREFIX)
    fired = orjson.loads(FIRING)
    name = fired["fingerprint"]
    assert run(broker, "ack", name).stdout.startswith("acknowledged: FeatureDrift chat/input_tokens, firing from 2023-")
    run(broker, "label", name.upper(), "true-alarm")
    assert run(broker, "label", name, "false-alarm", "--by", "ml-oncall", "--note", "load test").exit_code == 0
    values = [
        message.value() for message in follow(KafkaClient(broker.bootstrap_servers), PREFIX + "feedback", to_end=True)
    ]
    labels = [decode_feedback(value) for value in values]
    assert [(label.score, label.value, label.source) for label in labels] == [
        ("acknowledged", 1.0, "person"),
        ("alert", 1.0, "person"),
        ("alert", 0.0, "ml-oncall"),
    ]
    assert {label.key for label in labels} == {name}
    assert {rfc3339(label.event_time_ms) for label in labels} == {fired["startsAt"]}
    assert labels[0].series == fired["series"]
    assert [label.note for label in labels] == [None, None, "load test"]
    assert len({label.feedback_id for label in labels}) == 3


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("ack", "0" * 16), "no alert 0000000000000000 has fired"),
        (("ack", "nonsense"), "no fingerprint"),
        (("label", "0" * 16, "meh"), "false-alarm"),
        (("label", "0" * 16, "false-alarm", "--note", "x" * 281), "280 are allowed"),
        (("ack", "0" * 16, "--by", " "), "printable"),
        (("ack", "8838bd88645e3332", "--starts-at", "2020-01-01T00:00:00Z"), "no alert 8838bd88645e3332 has fired"),
    ],
)
def test_a_label_that_can_not_be_is_refused(broker: Broker, topic: str, arguments: list[str], problem: str) -> None:
    result = run(broker, *arguments)
    assert result.exit_code != 0
    assert problem in result.output + str(result.exception)


def test_since_is_when_it_was_published(broker: Broker, topic: str) -> None:
    assert run(broker, "--no-follow", "--since", "10m", "--json").stdout.encode().splitlines() == [RESOLVED]
    assert run(broker, "--no-follow", "--since", "0s").stdout == ""


def test_follows_until_interrupted(broker: Broker, topic: str) -> None:
    line = [sys.executable, "-m", "infra.cli", "alerts", "--bootstrap-servers", broker.bootstrap_servers]
    line += ["--topic-prefix", PREFIX, "--json", "--since", "10m"]
    # A shell's background job ignores the interrupt, and what it starts inherits that.
    line = ["env", "--default-signal=INT", *line]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process, ExitStack() as stack:
        stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == RESOLVED
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, FIRING)
        assert producer.flush(10) == 0
        assert process.stdout.readline().strip() == FIRING
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0


def test_a_topic_that_is_not_there(broker: Broker) -> None:
    result = run(broker, "--topic-prefix", "nowhere-")
    assert isinstance(result.exception, StackError)
    assert "there is no topic nowhere-alerts" in str(result.exception)
