"""What the audit job says of itself: a small JSON file, replaced whole, that `slacktide status` reads.

    {"state": "running", "pid": 4711, "started_at": "...", "updated_at": "...", "warehouse": "/data/audit",
     "batch": {"id": 12, "records": 40, "seconds": 1.9, "at": "..."},
     "topics": {"verdicts": {"read": 900, "inserted": 890, "already_there": 8, "quarantined": 2, "lag": 0}, ...},
     "error": null}

`state` is starting, running, stopped or failed. The figures are totals of the warehouse, over all checkpoints. `lag` is
in offsets, which count aborted records and transaction markers too; null until it is known.
"""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from schemas.times import rfc3339

COUNTS = ("read", "inserted", "already_there", "quarantined")


def _now() -> str:
    return rfc3339(time.time_ns() // 1_000_000)


@dataclass
class AuditStatus:
    """The job's state of now; every change is written to `file` at once (None: kept to itself)."""

    file: Path | None
    warehouse: str
    topics: dict[str, dict[str, int | None]]
    batch: dict[str, Any] | None = None
    started_at: str = field(default_factory=_now)

    @classmethod
    def start(cls, file: Path | None, warehouse: str, topics: Iterable[str]) -> "AuditStatus":
        """Say that the job is starting."""
        status = cls(file, warehouse, {topic: dict.fromkeys(COUNTS, 0) | {"lag": None} for topic in topics})
        status.write("starting")
        return status

    def add(self, topic: str, counts: Mapping[str, int]) -> None:
        """Add one batch's figures of one topic to its totals."""
        totals = self.topics.setdefault(topic, dict.fromkeys(COUNTS, 0) | {"lag": None})
        for name in COUNTS:
            totals[name] = (totals[name] or 0) + counts[name]

    def note_progress(self, progress: Mapping[str, Any]) -> None:
        """Take batch and lag from Spark's progress of the streaming query."""
        records = progress.get("numInputRows", 0)
        if records or self.batch is None:
            seconds = progress.get("durationMs", {}).get("triggerExecution", 0) / 1000
            self.batch = {
                "id": progress["batchId"],
                "records": records,
                "seconds": seconds,
                "at": progress["timestamp"],
            }
        for topic, lag in lags(progress).items():
            if topic in self.topics:
                self.topics[topic]["lag"] = lag

    def write(self, state: str, error: str | None = None) -> None:
        """Replace the file, so that a reader never sees half of it."""
        if self.file is None:
            return
        body = {
            "state": state,
            "pid": os.getpid(),
            "started_at": self.started_at,
            "updated_at": _now(),
            "warehouse": self.warehouse,
            "batch": self.batch,
            "topics": self.topics,
            "error": error,
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        fresh.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2))
        fresh.replace(self.file)


def lags(progress: Mapping[str, Any]) -> dict[str, int]:
    """Return by topic how many offsets lie between what was read and the newest committed record.

    >>> lags({"sources": [{"endOffset": {"a": {"0": 5}}, "latestOffset": {"a": {"0": 9, "1": 2}}}]})
    {'a': 6}
    """
    found: dict[str, int] = {}
    for source in progress.get("sources", []):
        read, newest = source.get("endOffset") or {}, source.get("latestOffset") or {}
        for topic, partitions in newest.items():
            behind = (offset - read.get(topic, {}).get(number, 0) for number, offset in partitions.items())
            found[topic] = found.get(topic, 0) + sum(behind)
    return found
