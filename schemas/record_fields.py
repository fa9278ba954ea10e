"""Fields of a JSON record from a topic, checked at the door: what is wrong is named, and no value is ever quoted."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn

from schemas.dead_letters import Reason
from schemas.strict_json import loads_strictly
from schemas.times import FIRST_MS, LAST_MS, epoch_ms


class UnreadableRecordError(ValueError):
    """A message that is not what its topic holds: carries the dead letter's reason and detail."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def refuse(reason: Reason, detail: str) -> NoReturn:
    """Raise the UnreadableRecordError."""
    raise UnreadableRecordError(reason, detail)


def json_object(payload: bytes | None) -> Mapping[str, Any]:
    """Return the object that `payload` holds. O(length).

    >>> json_object(b'{"a": 1}')
    {'a': 1}
    """
    if not payload:
        refuse(Reason.NO_VALUE, "the message is empty")
    try:
        body = loads_strictly(payload)
    except (ValueError, RecursionError):
        refuse(Reason.MALFORMED_JSON, "the message is not JSON")
    if not isinstance(body, dict):
        refuse(Reason.MALFORMED_JSON, "the message is not a JSON object")
    return body


def text_field(body: Mapping[str, Any], name: str, *, place: str = "", reason: Reason = Reason.BAD_VALUE) -> str:
    """Return the text under `name`, which is not empty; `place` is what stands before the name in the message."""
    found = body.get(name)
    if not isinstance(found, str) or not found.strip():
        refuse(reason, f"{place}{name} is not a text")
    try:
        found.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can write and UTF-8 can't
        refuse(reason, f"{place}{name} is not valid Unicode")
    return found


def optional_text_field(body: Mapping[str, Any], name: str, *, place: str = "") -> str:
    """Return the text under `name`; "" where it is missing, null or empty."""
    return text_field(body, name, place=place) if body.get(name) not in (None, "") else ""


def instant_field(body: Mapping[str, Any], name: str, *, place: str = "") -> int:
    """Return the epoch milliseconds of the RFC 3339 time under `name`: in UTC it is of the years 1 to 9999."""
    try:
        found = epoch_ms(body.get(name))  # type: ignore[arg-type]  # what is no text raises TypeError
    except (TypeError, ValueError, OverflowError):
        refuse(Reason.BAD_TIME, f"{place}{name} is not an RFC 3339 time with a zone")
    if not FIRST_MS <= found <= LAST_MS:
        refuse(Reason.BAD_TIME, f"{place}{name} is not of the years 1 to 9999")
    return found


def labels_field(body: Mapping[str, Any], name: str, *, place: str = "") -> dict[str, str]:
    """Return the mapping of texts under `name`, sorted; empty where it is missing or null."""
    found = body.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        refuse(Reason.BAD_VALUE, f"{place}{name} is not a mapping of texts")
    return dict(sorted(found.items()))


def seconds_field(body: Mapping[str, Any], name: str, *, place: str = "") -> float | None:
    """Return the number of seconds above 0 under `name`; None where it is missing or null."""
    found = body.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found) or found <= 0:
        refuse(Reason.BAD_VALUE, f"{place}{name} is not a number of seconds above 0")
    return float(found)
