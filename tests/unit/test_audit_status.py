"""The audit job's status file: totals, lag, and a reader that never sees half of it."""

from pathlib import Path

import orjson

from jobs.audit_status import AuditStatus, lags

PROGRESS = {
    "batchId": 3,
    "numInputRows": 40,
    "timestamp": "2026-01-31T12:00:00.000Z",
    "durationMs": {"triggerExecution": 1900},
    "sources": [
        {
            "endOffset": {"verdicts": {"0": 10, "1": 5}, "alerts": {"0": 1}},
            "latestOffset": {"verdicts": {"0": 12, "1": 6}, "alerts": {"0": 1}, "new": {"0": 4}},
        }
    ],
}


def test_lag_counts_every_partition_and_topics_not_yet_read() -> None:
    assert lags(PROGRESS) == {"verdicts": 3, "alerts": 0, "new": 4}


def test_lag_is_unknown_before_the_first_batch() -> None:
    assert lags({"sources": [{"endOffset": None, "latestOffset": None}]}) == {}


def test_totals_add_up_and_idle_triggers_do_not_hide_the_last_batch(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "audit.json"
    status = AuditStatus.start(file, "/data/audit", ["verdicts", "alerts"])
    assert orjson.loads(file.read_bytes())["state"] == "starting"
    counts = {"read": 40, "inserted": 30, "already_there": 8, "quarantined": 2}
    status.add("verdicts", counts)
    status.add("verdicts", counts)
    status.note_progress(PROGRESS)
    status.note_progress(PROGRESS | {"batchId": 4, "numInputRows": 0})
    status.write("running")
    body = orjson.loads(file.read_bytes())
    assert body["topics"]["verdicts"] == {"read": 80, "inserted": 60, "already_there": 16, "quarantined": 4, "lag": 3}
    assert body["topics"]["alerts"] == {"read": 0, "inserted": 0, "already_there": 0, "quarantined": 0, "lag": 0}
    assert body["batch"] == {"id": 3, "records": 40, "seconds": 1.9, "at": "2026-01-31T12:00:00.000Z"}
    assert [path.name for path in file.parent.iterdir()] == ["audit.json"]


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    AuditStatus.start(None, "/data/audit", []).write("running")
    assert not list(tmp_path.iterdir())
