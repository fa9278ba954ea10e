"""What a person silenced, until when and why, as topic `silences` carries it: Alertmanager's v2 silence.

The value is JSON, the key its id; `silences.schema.json` describes it. Of one id the record with the newest `updatedAt`
counts; to expire a silence is to write it again with an earlier `endsAt`.

Source: prometheus/alertmanager api/v2/openapi.yaml, definitions `silence` and `gettableSilence`; silence/silence.go
(`validateSilence`: at least one matcher must not match the empty value, else every alert would be silenced).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from schemas.dead_letters import Reason
from schemas.matchers import Matcher, MatcherError, all_match
from schemas.record_fields import instant_field, json_object, optional_text_field, refuse, text_field
from schemas.times import rfc3339


@dataclass(frozen=True, slots=True)
class Silence:
    """One silence: alerts that every matcher matches are silent from `starts_ms` (inclusive) to `ends_ms` (exclusive).

    Times are epoch milliseconds of event time here and RFC 3339 on the wire.
    """

    silence_id: str
    matchers: tuple[Matcher, ...]
    starts_ms: int
    ends_ms: int
    updated_ms: int
    created_by: str
    comment: str = ""

    def silences(self, labels: Mapping[str, str], at_ms: int) -> bool:
        """Whether an alert with these labels is silent at `at_ms`."""
        return self.starts_ms <= at_ms < self.ends_ms and all_match(self.matchers, labels)

    def to_json(self) -> bytes:
        """The Kafka value."""
        return orjson.dumps(
            {
                "id": self.silence_id,
                "matchers": [matcher.to_dict() for matcher in self.matchers],
                "startsAt": rfc3339(self.starts_ms),
                "endsAt": rfc3339(self.ends_ms),
                "updatedAt": rfc3339(self.updated_ms),
                "createdBy": self.created_by,
                "comment": self.comment,
            }
        )


def decode_silence(payload: bytes | None) -> Silence:
    """Read one Kafka value of topic `silences`.

    Raises UnreadableRecordError, whose detail names the field at fault and never quotes a value. O(length).

    >>> silence = decode_silence(
    ...     b'{"id": "s1", "matchers": [{"name": "service_name", "value": "chat", "isRegex": false}], '
    ...     b'"startsAt": "2026-01-31T12:00:00Z", "endsAt": "2026-01-31T14:00:00Z", '
    ...     b'"updatedAt": "2026-01-31T12:00:00Z", "createdBy": "ann", "comment": "load test"}')
    >>> silence.silences({"service_name": "chat"}, silence.starts_ms), str(silence.matchers[0])
    (True, 'service_name="chat"')
    """
    body = json_object(payload)
    starts_ms, ends_ms = instant_field(body, "startsAt"), instant_field(body, "endsAt")
    if ends_ms < starts_ms:
        refuse(Reason.BAD_TIME, "endsAt is before startsAt")
    return Silence(
        silence_id=text_field(body, "id", reason=Reason.BAD_ID),
        matchers=_matchers(body),
        starts_ms=starts_ms,
        ends_ms=ends_ms,
        updated_ms=instant_field(body, "updatedAt"),
        created_by=text_field(body, "createdBy"),
        comment=optional_text_field(body, "comment"),
    )


def require_narrow(matchers: tuple[Matcher, ...]) -> None:
    """Raise MatcherError where nothing but alerts without labels would escape."""
    if not matchers:
        raise MatcherError("there is no matcher: every alert would be silenced")
    if all(matcher.matches({}) for matcher in matchers):
        raise MatcherError("every matcher matches the empty value too: every alert would be silenced")


def _matchers(body: Mapping[str, Any]) -> tuple[Matcher, ...]:
    found = body.get("matchers")
    if not isinstance(found, list):
        refuse(Reason.BAD_VALUE, "matchers is not a list")
    matchers = tuple(_matcher(number, each) for number, each in enumerate(found))
    try:
        require_narrow(matchers)
    except MatcherError as error:
        refuse(Reason.BAD_VALUE, f"matchers: {error}")
    return matchers


def _matcher(number: int, body: object) -> Matcher:
    place = f"matchers[{number}]"
    if not isinstance(body, dict):
        refuse(Reason.BAD_VALUE, f"{place} is not an object")
    value, is_regex, is_equal = body.get("value"), body.get("isRegex", False), body.get("isEqual", True)
    if not isinstance(value, str) or not isinstance(is_regex, bool) or not isinstance(is_equal, bool):
        refuse(Reason.BAD_VALUE, f"{place} has not a text value, and true or false in isRegex and isEqual")
    try:
        return Matcher(text_field(body, "name", place=f"{place}."), value, is_regex, is_equal)
    except MatcherError as error:
        refuse(Reason.BAD_VALUE, f"{place}: {error}")
