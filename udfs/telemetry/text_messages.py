"""Structures of chat messages as one readable text.

The rule (docs/privacy.md): a message is `role: content`, a lone user message or any message of a response its content
alone; messages stand on lines of their own. Parts of a content: text as it is; a tool's call as `name(arguments)`, its
answer as it is; anything else (an image, audio) as its type in brackets. What has none of these shapes is its JSON.
"""

from typing import Any

import orjson

MAX_DEPTH = 16
_TEXTS = ("text", "content", "parts", "value", "response", "result", "output", "thinking", "reasoning", "refusal")
_HOLDERS = ("messages", "prompt", "input", "choices", "completion", "output", "generations")
_JSON_BEGINS = ("{", "[")


def flattened(value: Any, *, roles: bool) -> str:
    """Return the text of `value`: a text (JSON in it is read), a message, or a list of messages. Never raises.

    >>> flattened([{"role": "system", "content": "Be brief."}, {"role": "user", "parts": [{"type": "text",
    ...     "content": "Hi"}, {"type": "image_url"}]}], roles=True)
    'system: Be brief.\\nuser: Hi [image_url]'
    >>> flattened('[{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]', roles=False)
    'Hello'
    """
    structure = _parsed(value) if isinstance(value, str) else value
    if isinstance(structure, str):
        return structure
    messages = _messages(structure)
    if messages is None:
        return _json(structure)
    lone_user = len(messages) == 1 and _role(messages[0]) in ("", "user")
    return "\n".join(filter(None, (_line(each, with_role=roles and not lone_user) for each in messages)))


def _parsed(text: str) -> Any:
    """Return what JSON in a text says where it is messages, else the text."""
    if not text.lstrip()[:1].startswith(_JSON_BEGINS):
        return text
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if _messages(value) is not None else text


def _messages(value: Any) -> list[Any] | None:
    """Return the messages in `value`, None where it holds none."""
    if isinstance(value, dict):
        for holder in _HOLDERS:
            if isinstance(value.get(holder), list) and (inner := _messages(value[holder])) is not None:
                return inner
        return [value] if _is_message(value) else None
    if isinstance(value, list) and value and all(isinstance(v, str) or _is_message(v) for v in value):
        return value
    return None


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and any(
        key in value for key in ("role", "content", "parts", "message", "type", "text")
    )


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, dict) else ""
    return role if isinstance(role, str) else ""


def _line(message: Any, *, with_role: bool) -> str:
    text = _content(message, MAX_DEPTH)
    role = _role(message)
    return f"{role}: {text}" if with_role and role else text


def _content(value: Any, depth: int) -> str:
    """Return the text of a message, a part, or a list of parts."""
    if isinstance(value, str):
        return value
    if value is None or depth == 0:
        return ""
    if isinstance(value, list):
        return " ".join(filter(None, (_content(each, depth - 1) for each in value)))
    if not isinstance(value, dict):
        return _json(value)
    if isinstance(value.get("message"), dict):  # a choice
        return _content(value["message"], depth - 1)
    parts = [_content(value[key], depth - 1) for key in _TEXTS if value.get(key) is not None]
    parts += [_call(call, depth - 1) for call in _calls(value)]
    text = " ".join(filter(None, parts))
    kind = value.get("type")
    return text if text or not isinstance(kind, str) or "role" in value else f"[{kind}]"


def _calls(value: dict[str, Any]) -> list[Any]:
    listed = value.get("tool_calls") or value.get("toolCalls")
    calls = list(listed) if isinstance(listed, list) else []
    if "arguments" in value or value.get("type") in ("tool_call", "tool_use", "function_call"):
        calls.append(value)
    return calls


def _call(call: Any, depth: int) -> str:
    if not isinstance(call, dict) or depth <= 0:
        return ""
    function = call["function"] if isinstance(call.get("function"), dict) else call
    arguments = function.get("arguments", function.get("input", ""))
    name = function.get("name")
    return f"{name if isinstance(name, str) else ''}({arguments if isinstance(arguments, str) else _json(arguments)})"


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value, default=_of_bytes, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        return ""


def _of_bytes(value: Any) -> str:
    return f"[{len(value)} bytes]" if isinstance(value, bytes) else ""
