"""Replay to a real broker: everything arrives, counted, and what can't arrive is counted too."""

import time
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Message, TopicPartition

from infra.broker import Broker
from infra.commands.replay import command
from infra.replay import FaultShares, ReplayPlan, Sent, Snapshot, replay
from jobs.kafka_client import ConfigurationError, KafkaClient, load_kafka_client
from schemas.topics import OTLP_SPANS
from udfs.telemetry.otlp import decode_spans

pytestmark = pytest.mark.engine
ALLOWED_LATENESS_MS, MAX_SKEW_MS = 600_000, 300_000


def all_records(broker: Broker, topic: str) -> list[Message]:
    """Every record of `topic` up to its end, partition by partition in order of offset."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "test-replay"})
    partitions = [TopicPartition(topic, p) for p in consumer.list_topics(topic).topics[topic].partitions]
    total = sum(high - low for low, high in (consumer.get_watermark_offsets(p) for p in partitions))
    for partition in partitions:
        partition.offset = 0
    consumer.assign(partitions)
    records: list[Message] = []
    deadline = time.monotonic() + 60
    while len(records) < total:
        assert time.monotonic() < deadline, f"only {len(records)} of {total} records came"
        records += consumer.consume(1000, 0.1)
    consumer.close()
    return sorted(records, key=lambda record: (record.partition(), record.offset()))


def books(records: list[Message], encoding: str) -> tuple[Counter[str], Counter[str]]:
    """Books and dead letters of what lies on the topic: decoded by ingest's decoder, judged here by its rules."""
    counts: Counter[str] = Counter()
    table, dead = decode_spans([record.value() for record in records], encoding)
    letters: Counter[str] = Counter(letter.reason for letter in dead)
    newest: defaultdict[int, int] = defaultdict(int)
    seen: set[tuple[str, str]] = set()
    for span in table.select(["trace_id", "span_id", "event_time_ms", "is_request", "message_index"]).to_pylist():
        record = records[span["message_index"]]
        event_ms, partition = span["event_time_ms"], record.partition()
        if not span["is_request"]:
            counts["child"] += 1
        elif event_ms > record.timestamp()[1] + MAX_SKEW_MS:
            letters["clock_skew"] += 1
        elif event_ms < newest[partition] - ALLOWED_LATENESS_MS:
            letters["late"] += 1
        else:
            newest[partition] = max(newest[partition], event_ms)
            identity = (span["trace_id"], span["span_id"])
            counts["duplicate" if identity in seen else "requests"] += 1
            seen.add(identity)
    counts["late"] = letters["late"]
    counts["dead"] = letters.total() - letters["late"]
    counts["spans"] = counts.total()
    return counts, letters


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_what_arrives_is_what_the_report_says(broker: Broker, tmp_path: Path, encoding: str) -> None:
    prefix = f"replay-{encoding}-"
    broker.create_topics([OTLP_SPANS], prefix)
    report_file = tmp_path / "report.json"
    arguments = f"--limit 6000 --speed-up max --encoding {encoding} --topic-prefix {prefix} --children --seed 5 "
    arguments += "--duplicates 1% --malformed 2% --late 1% --late-by 11m --skew 0.5% --flush 60 "
    arguments += f"--drift prompt_entropy@50% --bootstrap-servers {broker.bootstrap_servers} --report {report_file}"
    result = CliRunner().invoke(command, arguments.split())
    assert result.exit_code == 0, result.output
    report = orjson.loads(report_file.read_bytes())

    records = all_records(broker, prefix + "otlp_spans")
    assert len(records) == report["messages"] == report["acknowledged"]
    counts, letters = books(records, encoding)
    assert report["expected_books"] == {kind: counts[kind] for kind in report["expected_books"]}
    assert report["expected_dead_letters"] == dict(letters)
    assert min(report["expected_books"].values()) > 20
    [drift] = report["drifts"]
    assert drift["sent_ms"] is not None
    assert 2_500 < drift["requests"] < 3_500


def test_it_keeps_its_pace_and_shows_it(broker: Broker) -> None:
    broker.create_topics([OTLP_SPANS], "pace-")
    shown: list[Snapshot] = []
    plan = ReplayPlan(rate_per_second=200.0, duration_seconds=2.0, topic="pace-otlp_spans", keyed=True)
    report = replay(plan, KafkaClient(broker.bootstrap_servers), shown.append)
    assert report.complete
    assert report.seconds >= 1.99
    assert (shown[-1].requests, shown[-1].total) == (400, 400)
    assert len(shown) > 5
    records = all_records(broker, "pace-otlp_spans")
    assert len({record.key() for record in records}) == len(records) == 400
    table, dead = decode_spans([record.value() for record in records], "otlp_proto")
    assert dead == []
    assert table["trace_id"].to_pylist() == [record.key().decode() for record in records]
    ages_ms = [r.timestamp()[1] - event for r, event in zip(records, table["event_time_ms"].to_pylist(), strict=True)]
    assert min(ages_ms) >= 0, "no event time lies after its Kafka timestamp"


def test_an_interrupted_replay_reports_what_it_sent(broker: Broker) -> None:
    broker.create_topics([OTLP_SPANS], "interrupted-")

    def interrupt(snapshot: Snapshot) -> None:
        if snapshot.requests > 100:
            raise KeyboardInterrupt

    plan = ReplayPlan(rate_per_second=500.0, limit=10_000, topic="interrupted-otlp_spans")
    report = replay(plan, KafkaClient(broker.bootstrap_servers), interrupt)
    assert report.interrupted
    assert not report.complete
    assert 100 < report.sent[Sent.CLEAN].requests < 1_000
    assert report.acknowledged == report.messages == len(all_records(broker, "interrupted-otlp_spans"))


def test_what_kafka_refuses_is_counted_and_said(broker: Broker) -> None:
    broker.create_topics([replace(OTLP_SPANS, max_message_bytes=2_000)], "tiny-")
    arguments = f"--limit 300 --speed-up max --topic-prefix tiny- --bootstrap-servers {broker.bootstrap_servers}"
    result = CliRunner().invoke(command, arguments.split())
    assert result.exit_code == 1
    assert "MSG_SIZE_TOO_LARGE" in result.output
    assert ", 0 failed" not in result.output


def test_sasl_settings_pass_through(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.create_topics([OTLP_SPANS], "sasl-")
    config = tmp_path / "kafka.yaml"
    config.write_text(
        "security.protocol: SASL_PLAINTEXT\nsasl.mechanisms: PLAIN\n"
        "sasl.username: ${SLACKTIDE_SASL_USERNAME}\nsasl.password: ${SLACKTIDE_SASL_PASSWORD}\n"
    )
    kafka = load_kafka_client(broker.sasl_bootstrap_servers, str(config))
    report = replay(ReplayPlan(limit=50, speed_up=float("inf"), topic="sasl-otlp_spans"), kafka)
    assert report.complete
    assert report.sent[Sent.CLEAN].requests == 50


def test_a_missing_topic_is_refused_before_anything_is_sent(broker: Broker) -> None:
    plan = ReplayPlan(topic="no-such-topic", shares=FaultShares(duplicates=0.5))
    with pytest.raises(ConfigurationError, match="no topic no-such-topic") as refused:
        replay(plan, KafkaClient(broker.bootstrap_servers))
    assert refused.value.field == "--topic"
