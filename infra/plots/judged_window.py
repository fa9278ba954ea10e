"""A judged window as a figure shows it, read from a verdict of the topic, of a Delta table or of a file."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from schemas.status import Status
from schemas.times import epoch_ms
from schemas.verdicts import series_key
from udfs.statistics.kolmogorov import critical_statistic, effective_size

KS = "ks_two_sample"


@dataclass(frozen=True, slots=True)
class JudgedWindow:
    """One verdict. Times are epoch milliseconds; `statistic` and `drifted` are None where `status` is not `ok`.

    `threshold` is what the statistic is held against: the verdict's own, or for the two-sample KS test the D at which p
    crosses alpha, or the least effect where that is more. None where neither is there.
    """

    start_ms: int
    end_ms: int
    slide_ms: int
    test: str
    status: str
    statistic: float | None
    threshold: float | None
    drifted: bool | None
    n: int
    config_digest: str
    evidence: dict[str, Any]


def series_of(record: dict[str, Any]) -> tuple[str, str]:
    """Return the key and the name of the series of a verdict or an alert.

    The name is monitor/feature/label=value,label=value, labels sorted. Raises KeyError, TypeError or ValueError where
    the record is neither.

    >>> series_of({"monitor": "chat", "feature": "input_tokens", "series": {"model": "m1", "arm": "a"}})[1]
    'chat/input_tokens/arm=a,model=m1'
    """
    labels = dict(record["series"])  # Parquet gives a map as pairs
    key = series_key(record["monitor"], record["feature"], labels)
    named = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    return key, "/".join(part for part in (record["monitor"], record["feature"], named) if part)


def judged_window(record: dict[str, Any]) -> JudgedWindow:
    """Return the window of one verdict, as a dictionary with the names of `schemas.verdicts.Verdict.to_json`.

    Times may be RFC 3339 or datetimes (UTC where they name no zone), evidence an object or its JSON text. Raises
    KeyError, TypeError or ValueError where it is no verdict.
    """
    status = Status(record["status"])
    is_known = status is Status.OK
    evidence = record.get("evidence") or {}
    if isinstance(evidence, str):
        evidence = orjson.loads(evidence)
    return JudgedWindow(
        start_ms=instant_ms(record["window_start"]),
        end_ms=instant_ms(record["window_end"]),
        slide_ms=_slide_ms(record["slide_seconds"]),
        test=str(record["test"]),
        status=status.value,
        statistic=_finite(record["statistic"]) if is_known else None,
        threshold=_threshold(record) if is_known else None,
        drifted=bool(record["drifted"]) if is_known else None,
        n=int(record["n_window"]),
        config_digest=str(record["config_digest"]),
        evidence=evidence if isinstance(evidence, dict) else {},
    )


def alert_start_ms(record: dict[str, Any]) -> int | None:
    """Return when the alert of a record began; None where the record is no alert."""
    started = record.get("startsAt", record.get("starts_at"))
    return None if started is None else instant_ms(started)


def instant_ms(instant: Any) -> int:
    """Return the epoch milliseconds of an RFC 3339 text or a datetime (UTC where it names no zone)."""
    if isinstance(instant, datetime):
        return round((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() * 1000)
    return epoch_ms(instant)


def _finite(number: Any) -> float:
    if not math.isfinite(number):
        raise ValueError(f"{number} is no figure")
    return float(number)


def _slide_ms(seconds: Any) -> int:
    if not _finite(seconds) > 0:
        raise ValueError(f"windows can't be {seconds} s apart")
    return max(1, round(float(seconds) * 1000))


def _threshold(record: dict[str, Any]) -> float | None:
    if record.get("threshold") is not None:
        return _finite(record["threshold"])
    alpha, sizes = record.get("alpha"), (int(record["n_reference"]), int(record["n_window"]))
    if record["test"] != KS or alpha is None or min(sizes) < 1 or effective_size(*sizes) < 1:
        return None
    return max(_critical(float(alpha), *sizes), float(record.get("min_effect") or 0.0))


@lru_cache(maxsize=65_536)
def _critical(alpha: float, n_reference: int, n_window: int) -> float:
    return critical_statistic(alpha, n_reference, n_window)
