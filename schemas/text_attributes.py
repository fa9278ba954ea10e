"""Every spelling of a prompt's and a response's text that we know. Nothing is read by it unless ingest carries text.

The spellings of a field stand in order of precedence: our own first, then the current OpenTelemetry convention, then
older ones, then other vendors'. The first that gives any text wins.

Sources: OpenTelemetry semantic-conventions-genai (gen-ai-spans.md, gen-ai-events.md; v1.26 to v1.37 for the older
`gen_ai.prompt` and the span events), OpenLLMetry (Traceloop) semconv_ai, OpenInference semconv.trace, Langfuse
OtelSpanAttributes, Vercel AI SDK telemetry.
"""

import re
from types import MappingProxyType

TEXT_FIELDS = ("prompt", "response")
TEXT_CUT = "is_text_cut"  # the field that says that one of them was too long

# Whole attributes: a text, JSON in a text, or OTLP lists and maps.
TEXT_KEYS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "prompt": (
            "slacktide.prompt",
            "gen_ai.input.messages",
            "gen_ai.prompt",
            "input.value",
            "langfuse.observation.input",
            "langfuse.trace.input",
            "ai.prompt.messages",
            "ai.prompt",
            "traceloop.entity.input",
            "llm.prompts",
            "llm.prompt",
        ),
        "response": (
            "slacktide.response",
            "gen_ai.output.messages",
            "gen_ai.completion",
            "output.value",
            "langfuse.observation.output",
            "langfuse.trace.output",
            "ai.response.text",
            "ai.response.object",
            "ai.result.text",
            "traceloop.entity.output",
            "llm.completions",
            "llm.completion",
        ),
    }
)
SYSTEM_KEYS = ("gen_ai.system_instructions",)  # stands before the messages of a prompt

# One attribute a message and part: gen_ai.prompt.0.content, llm.input_messages.0.message.content ...
INDEXED_KEY = re.compile(
    r"(?P<list>gen_ai\.prompt|gen_ai\.completion|llm\.input_messages|llm\.output_messages)"
    r"\.(?P<index>[0-9]{1,4})\.(?:message\.)?(?P<part>role|content|tool_calls\.[0-9]{1,3}\.(?:tool_call\.)?"
    r"(?:function\.)?(?:name|arguments)|contents\.[0-9]{1,3}\.message_content\.text)"
)
INDEXED_LISTS: MappingProxyType[str, str] = MappingProxyType(
    {
        "gen_ai.prompt": "prompt",
        "llm.input_messages": "prompt",
        "gen_ai.completion": "response",
        "llm.output_messages": "response",
    }
)

# Events of a span that hold a message each: event -> (field, role).
MESSAGE_EVENTS: MappingProxyType[str, tuple[str, str]] = MappingProxyType(
    {
        "gen_ai.system.message": ("prompt", "system"),
        "gen_ai.user.message": ("prompt", "user"),
        "gen_ai.assistant.message": ("prompt", "assistant"),
        "gen_ai.tool.message": ("prompt", "tool"),
        "gen_ai.choice": ("response", "assistant"),
    }
)
MESSAGE_EVENT_KEYS = ("content", "gen_ai.event.content", "message", "event_body")
# Events whose attributes are spelled as a span's are.
DETAIL_EVENTS = frozenset(
    {"gen_ai.content.prompt", "gen_ai.content.completion", "gen_ai.client.inference.operation.details"}
)

_WHOLE = frozenset(key for keys in TEXT_KEYS.values() for key in keys) | set(SYSTEM_KEYS)


def is_text_key(key: str) -> bool:
    """Whether an attribute of this name holds text of a prompt or a response, or a part of it.

    >>> is_text_key("gen_ai.prompt.0.content"), is_text_key("gen_ai.prompt.name")
    (True, False)
    """
    return key in _WHOLE or (key.startswith(("gen_ai.", "llm.")) and INDEXED_KEY.fullmatch(key) is not None)
