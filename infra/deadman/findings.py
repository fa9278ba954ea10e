"""What a look shows to be wrong, by the thresholds: pure, but for what must be remembered from look to look.

A finding speaks of one thing (a job, a topic, a part) and says how long it must last before it is an alert. Of a part
that does not answer nothing else is found: not knowing is neither trouble nor recovery.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from infra.deadman.look import Look
from infra.deadman.thresholds import Thresholds
from infra.flink_status import JobStatus

FLINK, KAFKA, AUDIT = "flink", "kafka", "audit"
FORGET_JOB_MS = 86_400_000

SUMMARIES = {
    "SlacktideFlinkUnreachable": "Flink's JobManager does not answer: nothing is judged",
    "SlacktideKafkaUnreachable": "Kafka does not answer: nothing comes in and no alert goes out",
    "SlacktideJobNotRunning": "A job of the monitor does not run",
    "SlacktideJobRestarts": "A job of the monitor keeps failing",
    "SlacktideCheckpointOld": "A job completes no checkpoint, so nothing that it says is committed",
    "SlacktideWatermarkOld": "Event time is far behind the clock: windows close late",
    "SlacktideWatermarkStuck": "Event time stands still although records come: no window closes",
    "SlacktideLagHigh": "A job is far behind its topic",
    "SlacktideSourceSilent": "Nothing comes in: the monitor has nothing to judge",
    "SlacktideAuditDown": "The audit job writes nothing",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `about` are labels that tell it from others of its name, `part` who said so."""

    name: str
    part: str
    about: Mapping[str, str]
    detail: str
    lasts_seconds: float

    @property
    def key(self) -> str:
        """Names the finding over all looks."""
        return "/".join([self.name, *(f"{name}={value}" for name, value in sorted(self.about.items()))])


@dataclass
class Memory:
    """What must be remembered of earlier looks; plain data, bounded by the number of jobs.

    `seen_ms` is when each job was last seen running; `restarts` its count over time, (at, count), within the window;
    `watermarks` its newest watermark and when it came.
    """

    seen_ms: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    watermarks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def to_body(self) -> dict[str, Any]:
        """Plain data that `memory_of` takes."""
        return {"seen_ms": self.seen_ms, "restarts": self.restarts, "watermarks": self.watermarks}

    def note(self, seen: Look, thresholds: Thresholds) -> None:
        """Take a look in. Changes nothing where Flink did not answer."""
        if seen.flink_problem is not None:
            return
        for job in seen.jobs:
            if job.state == "RUNNING":
                self.seen_ms[job.name] = seen.at_ms
            self._note_restarts(job, seen.at_ms, round(thresholds.restart_window_seconds * 1000))
            newest = self.watermarks.get(job.job_id)
            if job.watermark_ms is not None and (newest is None or job.watermark_ms != newest[0]):
                self.watermarks[job.job_id] = (job.watermark_ms, seen.at_ms)
        ids = {job.job_id for job in seen.jobs}
        self.restarts = {job_id: counts for job_id, counts in self.restarts.items() if job_id in ids}
        self.watermarks = {job_id: newest for job_id, newest in self.watermarks.items() if job_id in ids}
        self.seen_ms = {name: at for name, at in self.seen_ms.items() if seen.at_ms - at <= FORGET_JOB_MS}

    def _note_restarts(self, job: JobStatus, at_ms: int, window_ms: int) -> None:
        """Keep the points where the count changed, and the last one from before the window."""
        counts = self.restarts.get(job.job_id, [])
        if not counts or counts[-1][1] != job.restarts:
            counts = [*counts, (at_ms, job.restarts)]
        while len(counts) > 1 and counts[1][0] <= at_ms - window_ms:
            counts = counts[1:]
        self.restarts[job.job_id] = counts

    def restarts_within(self, job: JobStatus) -> int:
        """Return how often the job was restarted within the window, as far as it was looked at."""
        counts = self.restarts.get(job.job_id, [])
        return max(0, counts[-1][1] - counts[0][1]) if counts else 0


def memory_of(body: Mapping[str, Any]) -> Memory:
    """Read what `to_body` gave. Raises KeyError, TypeError or ValueError for anything else."""
    return Memory(
        seen_ms={str(name): int(at) for name, at in body["seen_ms"].items()},
        restarts={str(job): [(int(at), int(n)) for at, n in counts] for job, counts in body["restarts"].items()},
        watermarks={str(job): (int(newest), int(at)) for job, (newest, at) in body["watermarks"].items()},
    )


def findings(seen: Look, memory: Memory, thresholds: Thresholds) -> list[Finding]:
    """Return all that is wrong at this look; `memory` has taken it in (`note`). O(jobs + topics)."""
    return [*_flink(seen, memory, thresholds), *_kafka(seen, thresholds), *_audit(seen)]


def unknown_parts(seen: Look) -> set[str]:
    """Return the parts of which this look says nothing."""
    problems = {FLINK: seen.flink_problem, KAFKA: seen.kafka_problem}
    return {part for part, problem in problems.items() if problem is not None}


def _flink(seen: Look, memory: Memory, limits: Thresholds) -> Iterator[Finding]:
    if seen.flink_problem is not None:
        yield Finding(
            "SlacktideFlinkUnreachable", "", {"component": FLINK}, seen.flink_problem, limits.unreachable_seconds
        )
        return
    states = {job.name: job.state for job in seen.jobs}
    for name in sorted({*limits.expected_jobs, *memory.seen_ms, *states}):
        state = states.get(name)
        if state != "RUNNING":
            detail = f"{name} is {state}" if state else f"{name} is not there"
            yield Finding("SlacktideJobNotRunning", FLINK, {"flink_job": name}, detail, limits.job_down_seconds)
    for job in seen.jobs:
        yield from _restarts(job, memory, limits)
        if job.state == "RUNNING":
            yield from _checkpoint(job, seen, limits)
            yield from _watermark(job, seen, memory, limits)


def _restarts(job: JobStatus, memory: Memory, limits: Thresholds) -> Iterator[Finding]:
    count = memory.restarts_within(job)
    if limits.max_restarts is not None and count >= limits.max_restarts:
        detail = f"{job.name} was restarted {count} times within {limits.restart_window_seconds:g} s"
        yield Finding("SlacktideJobRestarts", FLINK, {"flink_job": job.name}, detail, 0.0)


def _checkpoint(job: JobStatus, seen: Look, limits: Thresholds) -> Iterator[Finding]:
    age_seconds = (seen.at_ms - (job.last_checkpoint_ms or job.started_ms)) / 1000
    if limits.max_checkpoint_age_seconds is not None and age_seconds > limits.max_checkpoint_age_seconds:
        since = "its last checkpoint" if job.last_checkpoint_ms else "its start, without a checkpoint"
        detail = f"{job.name}: {age_seconds:.0f} s since {since}"
        yield Finding("SlacktideCheckpointOld", FLINK, {"flink_job": job.name}, detail, 0.0)


def _watermark(job: JobStatus, seen: Look, memory: Memory, limits: Thresholds) -> Iterator[Finding]:
    if job.watermark_ms is None:
        return
    age_seconds = (seen.at_ms - job.watermark_ms) / 1000
    if limits.max_watermark_age_seconds is not None and age_seconds > limits.max_watermark_age_seconds:
        detail = f"{job.name}: event time is {age_seconds:.0f} s behind"
        yield Finding("SlacktideWatermarkOld", FLINK, {"flink_job": job.name}, detail, 0.0)
    _, moved_ms = memory.watermarks.get(job.job_id, (0, seen.at_ms))
    stands_seconds = (seen.at_ms - moved_ms) / 1000
    limit = limits.max_watermark_standstill_seconds
    newest_ms = max((ms for ms in seen.newest_ms.values() if ms is not None), default=None)
    if limit is not None and stands_seconds > limit and newest_ms is not None and newest_ms > moved_ms:
        detail = f"{job.name}: event time has not moved for {stands_seconds:.0f} s"
        yield Finding("SlacktideWatermarkStuck", FLINK, {"flink_job": job.name}, detail, 0.0)


def _kafka(seen: Look, limits: Thresholds) -> Iterator[Finding]:
    if seen.kafka_problem is not None:
        yield Finding(
            "SlacktideKafkaUnreachable", "", {"component": KAFKA}, seen.kafka_problem, limits.unreachable_seconds
        )
        return
    for lag in seen.lags:
        if limits.max_lag_records is not None and lag.records > limits.max_lag_records:
            detail = f"{lag.group} is {lag.records} records behind on {lag.topic}"
            about = {"group": lag.group, "topic": lag.topic}
            yield Finding("SlacktideLagHigh", KAFKA, about, detail, limits.lag_seconds)
    for topic, newest_ms in sorted(seen.newest_ms.items()):
        limit = limits.max_source_silence_seconds
        if limit is None:
            continue
        if newest_ms is None:
            yield Finding("SlacktideSourceSilent", KAFKA, {"topic": topic}, f"{topic} holds no record", limit)
        elif (silent_seconds := (seen.at_ms - newest_ms) / 1000) > limit:
            detail = f"{topic}: no record for {silent_seconds:.0f} s"
            yield Finding("SlacktideSourceSilent", KAFKA, {"topic": topic}, detail, 0.0)


def _audit(seen: Look) -> Iterator[Finding]:
    if seen.audit_problem is not None:
        yield Finding("SlacktideAuditDown", AUDIT, {"component": AUDIT}, f"audit: {seen.audit_problem}", 0.0)
