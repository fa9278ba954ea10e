"""Shapes of OTLP/JSON that every signal shares: lists that may be absent or null, ids in hex, times in texts.

Source: opentelemetry-proto, docs/specification.md, JSON Protobuf Encoding and Empty Telemetry Envelopes.
"""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, NoReturn

import orjson

from schemas.dead_letters import Reason
from udfs.telemetry import span_checks

UTF8_BOM = b"\xef\xbb\xbf"


class UnusableError(Exception):
    """A record, or what should hold records (`part`), is unusable for the reason given."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail
        self.part: object = None


def reject(detail: str) -> NoReturn:
    """Raise the UnusableError of a wrong shape; `detail` names field and fault, and quotes no value."""
    raise UnusableError(Reason.MALFORMED_JSON, detail)


def list_of(holder: object, member: str, what: str) -> list[Any]:
    """Return a list member; absent and null are empty. Raises UnusableError on any other shape."""
    if type(holder) is not dict:
        reject(f"{what} is no object")
    values = holder.get(member)
    if values is None:
        return []
    if type(values) is not list:
        reject(f"{member} is no list")
    return values


def items_of(
    body: object, resources: str, scopes: str, items: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any], Any] | UnusableError]:
    """Yield (entry of `resources`, entry of `scopes`, item) in wire order; nulls are passed over.

    What can't hold items is yielded as its fault, with `part`; raises UnusableError where that is the message itself.
    """
    for entry in list_of(body, resources, "the message"):
        if entry is None:
            continue
        try:
            of_entry = list_of(entry, scopes, f"an entry of {resources}")
        except UnusableError as unusable:
            unusable.part = entry
            yield unusable
            continue
        for scope in of_entry:
            if scope is None:
                continue
            try:
                found = list_of(scope, items, f"an entry of {scopes}")
            except UnusableError as unusable:
                unusable.part = scope
                yield unusable
                continue
            yield from ((entry, scope, item) for item in found if item is not None)


def nanoseconds(value: object) -> int:
    """Return a time; absent is 0, beyond 64 bits something that is too. Raises UnusableError on any other shape."""
    if value is None:
        return 0
    if type(value) is int:
        return value
    if type(value) is str and value.isascii() and value.isdigit():
        # Beyond 20 digits it overflows whatever it is; int() itself refuses thousands of digits.
        return int(value) if len(value.lstrip("0")) <= 20 else span_checks.INT64_MAX + 1
    raise UnusableError(*span_checks.TIME_TYPE)


def id_from_hex(text: str, width: int) -> bytes | None:
    """Return an id of `width` bytes from hex of either case; None where it is none."""
    if len(text) != 2 * width:
        return None
    try:
        number = bytes.fromhex(text)
    except ValueError:
        return None
    return number if len(number) == width else None  # fromhex skips blanks


def id_from_base64(text: str, width: int) -> bytes | None:
    """Return an id of `width` bytes from base64; None where it is none."""
    try:
        number = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return number if len(number) == width else None


def json_bytes(part: object, message: bytes) -> bytes:
    """Return the JSON of a part of a message; the whole message where it nests too deep to be written."""
    try:
        return orjson.dumps(part)
    except TypeError:
        return message


def scope_name(scope: dict[str, Any]) -> str:
    """Return the name of an entry's scope, "" where it has none. Raises UnusableError on any other shape."""
    found = scope.get("scope")
    if found is not None and type(found) is not dict:
        reject("scope is no object")
    return text_member(found or {}, "name")


def text_member(holder: dict[str, Any], member: str) -> str:
    """Return the text under `member`, "" where it is absent or null. Raises UnusableError on any other shape."""
    found = holder.get(member)
    if found is not None and type(found) is not str:
        reject(f"{member} is no text")
    return found or ""
