"""One look at the monitor from outside: what Flink and Kafka say of it, and whether they say anything at all.

It depends on nothing that it watches. Every question has a timeout, and an answer that does not come is an answer.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from infra.errors import StackError
from infra.flink_rest import FlinkRest
from infra.flink_status import JobStatus, job_statuses
from infra.lag import Lag, read_lags
from jobs.kafka_client import KafkaClient
from schemas.times import epoch_ms


@dataclass(frozen=True)
class Look:
    """What was seen at `at_ms`. A problem that is None means that the part answered; else its facts are unknown.

    `newest_ms` is the time of the newest record of each source topic, None where it has none. `audit_problem` is what
    the audit job's status file says against it; None also where nobody asked.
    """

    at_ms: int
    flink_problem: str | None = None
    jobs: tuple[JobStatus, ...] = ()
    kafka_problem: str | None = None
    lags: tuple[Lag, ...] = ()
    newest_ms: dict[str, int | None] = field(default_factory=dict)
    audit_problem: str | None = None


@dataclass(frozen=True)
class Watched:
    """Where to look. `source_topics` are names on the broker."""

    kafka: KafkaClient
    jobmanager: str
    source_topics: Sequence[str]
    audit_status_file: Path | None = None
    max_audit_silence_seconds: float = 120.0
    timeout_seconds: float = 5.0


def look(watched: Watched) -> Look:
    """Ask everybody. Never raises; takes about two timeouts when nobody answers."""
    timeout_seconds = watched.timeout_seconds
    flink_problem, jobs = _flink(watched.jobmanager, timeout_seconds)
    settings = {"socket.timeout.ms": str(round(timeout_seconds * 1000)), "log_level": "0"}
    kafka = KafkaClient(watched.kafka.bootstrap_servers, {**watched.kafka.settings, **settings})
    kafka_problem, lags, newest_ms = _kafka(kafka, watched.source_topics, timeout_seconds)
    at_ms = time.time_ns() // 1_000_000
    return Look(at_ms, flink_problem, jobs, kafka_problem, lags, newest_ms, _audit_problem(watched, at_ms))


def _flink(jobmanager: str, timeout_seconds: float) -> tuple[str | None, tuple[JobStatus, ...]]:
    try:
        return None, tuple(job_statuses(FlinkRest(jobmanager, timeout_seconds)))
    except StackError as error:
        return error.problem, ()
    except (LookupError, TypeError, ValueError) as error:
        return f"what answers at {jobmanager} is no Flink cluster ({type(error).__name__})", ()


def _kafka(
    kafka: KafkaClient, topics: Sequence[str], timeout_seconds: float
) -> tuple[str | None, tuple[Lag, ...], dict[str, int | None]]:
    try:
        newest_ms = newest_times_ms(kafka, topics, timeout_seconds)
        return None, tuple(read_lags(kafka, timeout_seconds)), newest_ms
    except KafkaException as error:
        return f"no Kafka broker answers at {kafka.bootstrap_servers} ({error.args[0].str()})", (), {}


def newest_times_ms(kafka: KafkaClient, topics: Sequence[str], timeout_seconds: float = 10.0) -> dict[str, int | None]:
    """Return the largest Kafka timestamp on each of `topics`; None for one without records, or that is not there.

    The broker finds it in its index, without reading the records. Raises KafkaException.
    """
    admin = AdminClient(kafka.for_librdkafka())
    known = admin.list_topics(timeout=timeout_seconds).topics
    places = {
        TopicPartition(topic, partition): OffsetSpec.max_timestamp()
        for topic in topics
        if topic in known
        for partition in known[topic].partitions
    }
    newest: dict[str, int | None] = dict.fromkeys(topics)
    asked = admin.list_offsets(places, request_timeout=timeout_seconds) if places else {}
    for place, future in asked.items():
        timestamp_ms = future.result().timestamp
        if timestamp_ms >= 0:
            newest[place.topic] = max(timestamp_ms, newest[place.topic] or 0)
    return newest


def _audit_problem(watched: Watched, at_ms: int) -> str | None:
    if watched.audit_status_file is None:
        return None
    try:
        status = orjson.loads(watched.audit_status_file.read_bytes())
        state, updated_ms = str(status["state"]), epoch_ms(status["updated_at"])
    except (OSError, ValueError, LookupError, TypeError):
        return "its status file can't be read"
    if state in ("failed", "stopped"):
        return f"it says that it is {state}"
    silent_seconds = (at_ms - updated_ms) / 1000
    if silent_seconds > watched.max_audit_silence_seconds:
        return f"it has said nothing for {silent_seconds:.0f} s"
    return None
