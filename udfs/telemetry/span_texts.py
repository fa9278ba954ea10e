"""Prompt and response of each span, out of the attributes and events that hold text, before anything is masked."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.text_attributes import (
    DETAIL_EVENTS,
    INDEXED_KEY,
    INDEXED_LISTS,
    MESSAGE_EVENT_KEYS,
    MESSAGE_EVENTS,
    SYSTEM_KEYS,
    TEXT_FIELDS,
    TEXT_KEYS,
)
from udfs.telemetry.any_value import AnyPython
from udfs.telemetry.text_messages import flattened

_RANK = {key: (name, float(rank)) for name, keys in TEXT_KEYS.items() for rank, key in enumerate(keys)}
_INDEXED_RANK, _EVENT_RANK = 2.4, 2.6  # behind `gen_ai.prompt`, before what is not OpenTelemetry's


class TextValue(NamedTuple):
    """An attribute that holds text: which span, the event it stands in (empty: the span itself), key and value."""

    owner: int
    event: str
    key: str
    value: AnyPython


@dataclass(slots=True)
class _Gathered:
    """What one span has for one field: (precedence, value), and messages that come in pieces."""

    whole: list[tuple[float, AnyPython]] = field(default_factory=list)
    indexed: dict[int, dict[str, str]] = field(default_factory=dict)
    events: list[dict[str, AnyPython]] = field(default_factory=list)
    system: AnyPython = None

    def text(self, *, roles: bool) -> str:
        """Return the text of the first source that has any."""
        sources = [(rank, value) for rank, value in self.whole if value not in ("", [], {}, None)]
        if self.indexed:
            sources.append((_INDEXED_RANK, [_message(self.indexed[index]) for index in sorted(self.indexed)]))
        if self.events:
            sources.append((_EVENT_RANK, list(self.events)))
        texts = (flattened(value, roles=roles) for _, value in sorted(sources, key=lambda source: source[0]))
        found = next(filter(None, texts), "")
        system = flattened(self.system, roles=False) if self.system else ""
        return "\n".join(filter(None, (f"system: {system}" if system else "", found)))


def span_texts(values: Iterable[TextValue]) -> dict[int, dict[str, str]]:
    """Return, by span, the text of each of TEXT_FIELDS that it has. O(total length). Never raises.

    >>> span_texts([TextValue(3, "", "gen_ai.prompt.0.content", "Hi"), TextValue(3, "", "gen_ai.completion", "Hello")])
    {3: {'prompt': 'Hi', 'response': 'Hello'}}
    """
    gathered: dict[tuple[int, str], _Gathered] = {}
    for owner, event, key, value in values:
        if event and event not in DETAIL_EVENTS:
            if event in MESSAGE_EVENTS and key in MESSAGE_EVENT_KEYS:
                name, role = MESSAGE_EVENTS[event]
                of_field = gathered.setdefault((owner, name), _Gathered())
                of_field.events.append({"role": role, "content": flattened(value, roles=False)})
        elif key in _RANK:
            name, rank = _RANK[key]
            gathered.setdefault((owner, name), _Gathered()).whole.append((rank, value))
        elif key in SYSTEM_KEYS:
            gathered.setdefault((owner, "prompt"), _Gathered()).system = value
        elif (match := INDEXED_KEY.fullmatch(key)) and value is not None:
            of_field = gathered.setdefault((owner, INDEXED_LISTS[match["list"]]), _Gathered())
            of_field.indexed.setdefault(int(match["index"]), {})[match["part"]] = flattened(value, roles=False)
    texts: dict[int, dict[str, str]] = {}
    for (owner, name), of_field in gathered.items():
        if text := of_field.text(roles=name == "prompt"):
            texts.setdefault(owner, {})[name] = text
    return {owner: {name: found[name] for name in TEXT_FIELDS if name in found} for owner, found in texts.items()}


def _message(parts: dict[str, str]) -> dict[str, AnyPython]:
    """Return one message out of its indexed attributes."""
    contents = [text for part, text in sorted(parts.items()) if part != "role"]
    return {"role": parts.get("role", ""), "content": " ".join(contents)}
