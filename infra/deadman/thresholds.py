"""When the monitor counts as blind: the file of limits, read and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra.paths import CONF
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    finite_number,
    list_of_texts,
    optional,
    parsed_yaml,
    text,
)

DEFAULTS = CONF / "deadman.yaml"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits; None is off. infra/conf/deadman.yaml says what each is for and where from."""

    interval_seconds: float
    timeout_seconds: float
    expected_jobs: tuple[str, ...]
    source_topics: tuple[str, ...]
    severity: str
    owner: str
    unreachable_seconds: float
    job_down_seconds: float
    max_restarts: int | None
    restart_window_seconds: float
    max_checkpoint_age_seconds: float | None
    max_watermark_age_seconds: float | None
    max_watermark_standstill_seconds: float | None
    max_lag_records: int | None
    lag_seconds: float
    max_source_silence_seconds: float | None
    audit_status_file: str | None
    max_audit_silence_seconds: float


def load_thresholds(file: Path | None = None) -> Thresholds:
    """Read `file`, laid over the committed defaults. Raises ConfigurationError naming file, field and remedy."""
    default = parsed_yaml(Place(str(DEFAULTS)))
    place = Place(str(file or DEFAULTS))
    own = {} if file is None else parsed_yaml(place)
    if own is not None and not isinstance(own, dict):
        place.refuse("is not a mapping", "Write `name: value`, one a line")
    body = default | (own or {})
    found = fields_of(place, body, _FIELDS)
    return Thresholds(**found)


def _above_0(value: Any) -> float:
    number: float = finite_number(value)
    if number <= 0:
        raise WrongValueError(f"{value} is not above 0", "Give a number above 0")
    return number


def _from_0(value: Any) -> float:
    number: float = finite_number(value)
    if number < 0:
        raise WrongValueError(f"{value} is below 0", "Give 0 or more")
    return number


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(list_of_texts(value))


def _any_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WrongValueError(f"{value!r} is no text", 'Give a text; "" for none')
    return value


_OFF_OR_ABOVE_0 = (optional(_above_0), None)
_OFF_OR_COUNT = (optional(at_least_one), None)
_FIELDS = {
    "interval_seconds": (_above_0, REQUIRED),
    "timeout_seconds": (_above_0, REQUIRED),
    "expected_jobs": (_texts, REQUIRED),
    "source_topics": (_texts, REQUIRED),
    "severity": (text, REQUIRED),
    "owner": (_any_text, ""),
    "unreachable_seconds": (_from_0, REQUIRED),
    "job_down_seconds": (_from_0, REQUIRED),
    "max_restarts": _OFF_OR_COUNT,
    "restart_window_seconds": (_above_0, REQUIRED),
    "max_checkpoint_age_seconds": _OFF_OR_ABOVE_0,
    "max_watermark_age_seconds": _OFF_OR_ABOVE_0,
    "max_watermark_standstill_seconds": _OFF_OR_ABOVE_0,
    "max_lag_records": _OFF_OR_COUNT,
    "lag_seconds": (_from_0, REQUIRED),
    "max_source_silence_seconds": _OFF_OR_ABOVE_0,
    "audit_status_file": (optional(text), None),
    "max_audit_silence_seconds": (_above_0, REQUIRED),
}
