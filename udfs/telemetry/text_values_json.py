"""The attributes of one span and its events that hold prompts and responses, out of `otlp_json`."""

from typing import Any

from schemas.text_attributes import DETAIL_EVENTS, MESSAGE_EVENT_KEYS, MESSAGE_EVENTS, is_text_key
from udfs.telemetry.any_value import any_value
from udfs.telemetry.span_texts import TextValue


def text_values(owner: int, pairs: list[Any], events: object) -> list[TextValue]:
    """Return what holds text among a span's attributes and events. What has a wrong shape holds none.

    >>> text_values(0, [{"key": "gen_ai.prompt", "value": {"stringValue": "Hi"}}, None], None)
    [TextValue(owner=0, event='', key='gen_ai.prompt', value='Hi')]
    """
    found = _of_pairs(owner, "", pairs)
    for event in events if isinstance(events, list) else ():
        name = event.get("name") if isinstance(event, dict) else None
        if isinstance(name, str) and (name in DETAIL_EVENTS or name in MESSAGE_EVENTS):
            attributes = event.get("attributes")
            found += _of_pairs(owner, name, attributes if isinstance(attributes, list) else [])
    return found


def _of_pairs(owner: int, event: str, pairs: list[Any]) -> list[TextValue]:
    found = []
    for pair in pairs:
        key = pair.get("key") if isinstance(pair, dict) else None
        if isinstance(key, str) and (is_text_key(key) or (event and key in MESSAGE_EVENT_KEYS)):
            found.append(TextValue(owner, event, key, any_value(pair.get("value"))))
    return found
