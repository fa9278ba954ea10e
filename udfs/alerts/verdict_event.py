"""A verdict as the alert lifecycle reads it: checked once, at the door."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from schemas.alerts import EvidenceWindow
from schemas.dead_letters import Reason
from schemas.status import Status
from schemas.times import epoch_ms
from schemas.verdicts import VerdictKind, series_key
from udfs.alerts.rule_overrides import RuleOverrideError, rule_overrides

_KNOWN_SCHEMA_VERSION = 1
# An alert stands for some slides beyond its window: beyond these its end could not be written as a time.
MAX_SLIDE_SECONDS = 366 * 86_400.0
_LAST_MS = epoch_ms("9000-01-01T00:00:00Z")


class UnreadableVerdictError(ValueError):
    """A message of topic `verdicts` that is not a verdict: carries the dead letter's reason and detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class VerdictEvent:
    """What one verdict says about its series at `window.window_end_ms`.

    `drifted` is None where the window was not judged: neither evidence for an alert nor against it. `window_number` is
    that of a window by count, None for windows by time. `kind` is the verdict's. `overrides` are fields of `AlertRule`
    that the verdict itself brings, laid over its monitor's rule: an SLO names its own severity, owner and windows.
    """

    monitor: str
    feature: str
    series: dict[str, str]
    slide_ms: int
    drifted: bool | None
    window: EvidenceWindow
    config_digest: str
    reference_digest: str
    model_card_digest: str
    window_number: int | None = None
    kind: str = VerdictKind.DRIFT
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def series_key(self) -> str:
        """The key of topic `verdicts` and of the lifecycle's state."""
        return series_key(self.monitor, self.feature, self.series)


def decode_verdict(payload: bytes | None) -> VerdictEvent:
    """Read one Kafka value of topic `verdicts`.

    Raises UnreadableVerdictError, whose detail names the field at fault and never quotes a value. A status other than
    `ok` makes `drifted` None, whatever the record says. O(length).
    """
    body = _json_object(payload)
    if body.get("schema_version") != _KNOWN_SCHEMA_VERSION:
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"schema_version is not {_KNOWN_SCHEMA_VERSION}")
    judged = _text(body, "status") == Status.OK
    event = VerdictEvent(
        monitor=_text(body, "monitor"),
        feature=_text(body, "feature"),
        series=_labels(body),
        slide_ms=_slide_ms(body),
        drifted=_optional_bool(body, "drifted") if judged else None,
        window=EvidenceWindow(
            verdict_id=_text(body, "verdict_id"),
            window_end_ms=_instant(body, "window_end"),
            statistic=_optional_number(body, "statistic"),
            p_value=_optional_number(body, "p_value"),
            n_window=_count(body, "n_window"),
            alpha=_optional_number(body, "alpha"),
            min_effect=_optional_number(body, "min_effect"),
            threshold=_optional_number(body, "threshold"),
        ),
        config_digest=_text(body, "config_digest"),
        reference_digest="" if body.get("reference_digest") is None else _text(body, "reference_digest"),
        model_card_digest=_text(body, "model_card_digest"),
        window_number=_window_number(body),
        kind=_text(body, "kind") if "kind" in body else VerdictKind.DRIFT,
        overrides=_overrides(body),
    )
    if body.get("series_key") != event.series_key:
        raise UnreadableVerdictError(Reason.BAD_ID, "series_key does not name monitor, feature and series")
    return event


def key_of(payload: bytes | None) -> str:
    """Return the series key of a verdict, or "" for a message that can't be read."""
    try:
        return decode_verdict(payload).series_key
    except UnreadableVerdictError:
        return ""


def refuse_future(event: VerdictEvent, kafka_timestamp_ms: int | None, max_clock_skew_seconds: float) -> None:
    """Raise UnreadableVerdictError when the window ends later than the record's Kafka timestamp by more than the skew.

    The lifecycle ignores windows older than the newest it saw, so one verdict far in the future would silence its
    series for good.
    """
    if kafka_timestamp_ms is None:
        return
    if event.window.window_end_ms > kafka_timestamp_ms + max_clock_skew_seconds * 1000:
        detail = f"window_end is more than {max_clock_skew_seconds:g} s after the Kafka timestamp"
        raise UnreadableVerdictError(Reason.CLOCK_SKEW, detail)


def _json_object(payload: bytes | None) -> dict[str, Any]:
    if not payload:
        raise UnreadableVerdictError(Reason.NO_VALUE, "the message is empty")
    try:
        body = orjson.loads(payload)
    except orjson.JSONDecodeError:
        raise UnreadableVerdictError(Reason.MALFORMED_JSON, "the message is not JSON") from None
    if not isinstance(body, dict):
        raise UnreadableVerdictError(Reason.MALFORMED_JSON, "the message is not a JSON object")
    return body


def _text(body: dict[str, Any], name: str) -> str:
    found = body.get(name)
    if not isinstance(found, str):
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"{name} is not a text")
    return found


def _labels(body: dict[str, Any]) -> dict[str, str]:
    found = body.get("series")
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UnreadableVerdictError(Reason.BAD_VALUE, "series is not a mapping of texts")
    return dict(sorted(found.items()))


def _number(body: dict[str, Any], name: str) -> float:
    found = body.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"{name} is not a finite number")
    return float(found)


def _optional_number(body: dict[str, Any], name: str) -> float | None:
    return None if body.get(name) is None else _number(body, name)


def _optional_bool(body: dict[str, Any], name: str) -> bool | None:
    found = body.get(name)
    if found is not None and not isinstance(found, bool):
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"{name} is not true, false or null")
    return found


def _count(body: dict[str, Any], name: str) -> int:
    found = body.get(name)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"{name} is not a whole number of at least 0")
    return found


def _window_number(body: dict[str, Any]) -> int | None:
    evidence = body.get("evidence")
    found = evidence.get("window_number") if isinstance(evidence, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _overrides(body: dict[str, Any]) -> Mapping[str, Any]:
    evidence = body.get("evidence")
    if not isinstance(evidence, dict):
        return {}
    try:
        return rule_overrides(evidence.get("alert"))
    except RuleOverrideError as error:
        raise UnreadableVerdictError(Reason.BAD_VALUE, f"evidence.alert.{error}") from None


def _slide_ms(body: dict[str, Any]) -> int:
    slide_ms = round(_number(body, "slide_seconds") * 1000)
    if not 0 < slide_ms <= MAX_SLIDE_SECONDS * 1000:
        raise UnreadableVerdictError(Reason.BAD_VALUE, "slide_seconds is not above 0, up to a year")
    return slide_ms


def _instant(body: dict[str, Any], name: str) -> int:
    text = _text(body, name)
    try:
        found = epoch_ms(text)
    except ValueError:
        raise UnreadableVerdictError(Reason.BAD_TIME, f"{name} is not an RFC 3339 time with a zone") from None
    if not 0 <= found <= _LAST_MS:
        raise UnreadableVerdictError(Reason.BAD_TIME, f"{name} is not from 1970 to the year 9000")
    return found
