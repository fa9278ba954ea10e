"""How each Flink job does: state, restarts, last checkpoint, watermark."""

from dataclasses import dataclass
from typing import Any

from infra.flink_rest import FlinkRest

# Flink's "no watermark yet" (Long.MIN_VALUE) and "no more records" (Long.MAX_VALUE) are not instants.
_INSTANTS = range(-(2**62), 2**62)


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job; times are epoch milliseconds, None where there is none yet. `watermark_ms` is the job's slowest."""

    name: str
    job_id: str
    state: str
    restarts: int
    last_checkpoint_ms: int | None
    watermark_ms: int | None
    started_ms: int


def job_statuses(rest: FlinkRest) -> list[JobStatus]:
    """Return every job that has not come to an end, and those that failed, by name. Raises StackError."""
    jobs = {job["name"]: job for job in reversed(rest.jobs()) if job["state"] not in ("FINISHED", "CANCELED")}
    return [_job_status(rest, job) for _, job in sorted(jobs.items())]


def _job_status(rest: FlinkRest, job: dict[str, Any]) -> JobStatus:
    job_id = job["jid"]
    restarts = rest.get(f"/jobs/{job_id}/metrics?get=numRestarts")
    completed = (rest.get(f"/jobs/{job_id}/checkpoints").get("latest") or {}).get("completed")
    return JobStatus(
        name=job["name"],
        job_id=job_id,
        state=job["state"],
        restarts=int(restarts[0]["value"]) if restarts else 0,
        last_checkpoint_ms=completed["latest_ack_timestamp"] if completed else None,
        watermark_ms=_slowest_watermark_ms(rest, job_id),
        started_ms=job["start-time"],
    )


def _slowest_watermark_ms(rest: FlinkRest, job_id: str) -> int | None:
    """Return the lowest watermark that any task of the job has received; sources have none of their own."""
    vertices = [vertex["id"] for vertex in rest.get(f"/jobs/{job_id}")["vertices"]]
    received = [int(w["value"]) for v in vertices for w in rest.get(f"/jobs/{job_id}/vertices/{v}/watermarks")]
    return min((instant for instant in received if instant in _INSTANTS), default=None)
