"""The monitor's own health for Prometheus, as the last look saw it. What is not known has no sample."""

from infra.deadman.dead_man import DeadMan
from infra.deadman.look import Look
from infra.delivery.transition import FIRING
from infra.prometheus_text import Family, Sample, exposition


def dead_man_page(dead_man: DeadMan) -> bytes:
    """Return the page; empty before the first look."""
    seen = dead_man.last_look
    if seen is None:
        return b""
    failed: list[Sample] = [
        ({"target": t.name}, float(dead_man.failed_posts.get(t.name, 0))) for t in dead_man.delivery.targets
    ]
    alarms: list[Sample] = [
        ({"alertname": alarm.name, **alarm.about}, 1.0) for alarm in dead_man.alarms.values() if alarm.state == FIRING
    ]
    own = [
        _gauge("deadman_last_look_timestamp_seconds", "When the dead man last looked", [({}, seen.at_ms / 1000)]),
        _gauge("deadman_firing", "What the dead man has found", alarms),
        Family("slacktide_deadman_failed_posts_total", "counter", "Posts that a target did not take", tuple(failed)),
    ]
    return exposition([*_parts(seen), *_jobs(seen), *_topics(seen), *own])


def _gauge(name: str, text: str, samples: list[Sample]) -> Family:
    return Family(f"slacktide_{name}", "gauge", text, tuple(samples))


def _parts(seen: Look) -> list[Family]:
    problems = {"flink": seen.flink_problem, "kafka": seen.kafka_problem}
    up: list[Sample] = [({"component": part}, float(problem is None)) for part, problem in problems.items()]
    return [_gauge("up", "Whether it answers", up)]


def _jobs(seen: Look) -> list[Family]:
    def age_seconds(instant_ms: int | None) -> float | None:
        return None if instant_ms is None else (seen.at_ms - instant_ms) / 1000

    def samples(values: list[float | None]) -> list[Sample]:
        return [({"flink_job": job.name}, value) for job, value in zip(seen.jobs, values, strict=True)]

    jobs = seen.jobs
    return [
        _gauge("job_running", "Whether the job runs", samples([float(job.state == "RUNNING") for job in jobs])),
        _gauge("job_restarts", "Restarts since it was submitted", samples([float(job.restarts) for job in jobs])),
        _gauge(
            "job_checkpoint_age_seconds",
            "Since the last completed checkpoint",
            samples([age_seconds(job.last_checkpoint_ms) for job in jobs]),
        ),
        _gauge(
            "job_watermark_age_seconds",
            "How far event time is behind the clock",
            samples([age_seconds(job.watermark_ms) for job in jobs]),
        ),
    ]


def _topics(seen: Look) -> list[Family]:
    lags: list[Sample] = [({"group": lag.group, "topic": lag.topic}, float(lag.records)) for lag in seen.lags]
    silent: list[Sample] = [
        ({"topic": topic}, None if newest_ms is None else (seen.at_ms - newest_ms) / 1000)
        for topic, newest_ms in sorted(seen.newest_ms.items())
    ]
    return [
        _gauge("lag_records", "Records between what the group committed and the topic's end", lags),
        _gauge("source_silence_seconds", "Since the newest record of a source topic", silent),
    ]
