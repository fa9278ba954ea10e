"""One LLM request, as topic `requests` carries it: the one list of its fields, and every schema made of that list.

The value is JSON, one flat object a request. A field that is null is left out; zero is a value and is written.
NaN and the infinities travel as the texts "NaN", "Infinity", "-Infinity", which Flink's and Spark's JSON readers take
for a DOUBLE. Prompt and response are masked before they are written, and null unless ingest was told to carry text.

`python -m schemas.requests` prints the JSON Schema that lies beside this file as requests.schema.json.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from schemas.field_types import MAX_ATTRIBUTES, MAX_EMBEDDING_LENGTH, FieldType

# Kafka header of a record: event_time_ms once more, in digits, for engines that need it before they parse.
EVENT_TIME_HEADER = "event_time_ms"
UNKNOWN_SERVICE = "unknown_service"  # OpenTelemetry resource semantic conventions, service.name


@dataclass(frozen=True, slots=True)
class RequestField:
    """One field: its name (unit last), type, meaning, and whether it may be null."""

    name: str
    type: FieldType
    meaning: str
    required: bool = False


_S, _I, _F, _B = FieldType.STRING, FieldType.INT64, FieldType.FLOAT64, FieldType.BOOL
_V = FieldType.DOUBLE_ARRAY

REQUEST_FIELDS: tuple[RequestField, ...] = (
    RequestField("trace_id", _S, "32 lower-case hex digits", required=True),
    RequestField("span_id", _S, "16 lower-case hex digits", required=True),
    RequestField("parent_span_id", _S, "16 lower-case hex digits; null for a root span"),
    RequestField(
        "event_time_ms", _I, "end of the span, milliseconds since 1970: the request's event time", required=True
    ),
    RequestField("start_time_ms", _I, "start of the span, milliseconds since 1970", required=True),
    RequestField("service_name", _S, f"resource attribute service.name, else {UNKNOWN_SERVICE}", required=True),
    RequestField("provider", _S, "who serves the model: openai, aws.bedrock, vllm..."),
    RequestField("model", _S, "the model that answered, else the model asked for"),
    RequestField("model_version", _S, "version of that model, not of the service that runs it"),
    RequestField("tenant", _S, "whose request it is: organisation, project or user group"),
    RequestField("user_hash", _S, "SHA-256 of the user's id, 64 lower-case hex digits: a pseudonym, not anonymous"),
    RequestField("accelerator_type", _S, "accelerator the request ran on: H100, MI300X..."),
    RequestField("prompt_template", _S, "name of the prompt template, never its text"),
    RequestField("prompt_template_version", _S, "version of the prompt template"),
    RequestField("experiment", _S, "name of the experiment the request takes part in"),
    RequestField("arm", _S, "arm (variant) of that experiment"),
    RequestField(
        "assignment_epoch", _S, "version of the plan by which the arm was assigned; another plan, another epoch"
    ),
    RequestField("adapter_id", _S, "LoRA adapter in use"),
    RequestField("input_tokens", _I, "tokens of the prompt, cached ones included"),
    RequestField("output_tokens", _I, "tokens generated"),
    RequestField("time_to_first_token_seconds", _F, "arrival to first token, seconds"),
    RequestField("time_per_output_token_seconds", _F, "mean time between output tokens after the first, seconds"),
    RequestField("end_to_end_seconds", _F, "arrival to last token, seconds; the span's duration where nothing says it"),
    RequestField("queue_seconds", _F, "time waiting to be scheduled, seconds"),
    RequestField("prefill_seconds", _F, "time in prefill, seconds"),
    RequestField("decode_seconds", _F, "time in decode, seconds"),
    RequestField("finish_reason", _S, "why generation stopped: stop, length, tool_calls..."),
    RequestField("is_error", _B, "the span's status is ERROR", required=True),
    RequestField("error_type", _S, "class of the error: timeout, an exception's name, a status code"),
    RequestField("is_streaming", _B, "the answer was streamed"),
    RequestField("attempts", _I, "tries it took, at least 1; retries are folded into the one request", required=True),
    RequestField("kv_cache_hit_ratio", _F, "share of prompt tokens found in the KV cache, 0..1, not clamped"),
    RequestField("kv_cache_used_ratio", _F, "share of the KV cache in use, 0..1, not clamped"),
    RequestField("prompt_entropy", _F, "entropy of the prompt's token distribution"),
    RequestField("attention_head_variance", _F, "variance across attention heads"),
    RequestField("token_attention_entropy", _F, "entropy of attention over tokens"),
    RequestField("gpu_memory_fragmentation", _F, "fragmented share of GPU memory, 0..1, not clamped"),
    RequestField("prompt_embedding_similarity", _F, "cosine of the prompt's embedding to the reference, -1..1"),
    RequestField("prompt_embedding", _V, f"embedding of the prompt; finite, at most {MAX_EMBEDDING_LENGTH} numbers"),
    RequestField(
        "response_embedding", _V, f"embedding of the response; finite, at most {MAX_EMBEDDING_LENGTH} numbers"
    ),
    RequestField("perplexity", _F, "perplexity of the response"),
    RequestField(
        "intent_response_consistency", _F, "how well the response answers the prompt's intent, 0..1, not clamped"
    ),
    RequestField("factuality", _F, "share of the response's claims that hold, 0..1, not clamped"),
    RequestField("retrieval_recall", _F, "recall of the retrieval behind the request, 0..1"),
    RequestField("retrieval_document_count", _I, "documents retrieved for the request"),
    RequestField("guardrail_triggered", _B, "a guardrail stopped or changed the request"),
    RequestField("guardrail_reason", _S, "category of the guardrail that triggered"),
    RequestField("prompt", _S, "text of the prompt, personal data masked; null unless ingest carries text"),
    RequestField("response", _S, "text of the response, personal data masked; null unless ingest carries text"),
    RequestField("is_text_cut", _B, "prompt or response was longer than ingest carries; null without text"),
    RequestField("child_span_count", _I, "spans below the request that came in time to join it", required=True),
    RequestField(
        "attributes",
        FieldType.DOUBLE_MAP,
        f"numeric attributes that are no field here, by their own names; at most {MAX_ATTRIBUTES}",
    ),
)

_BY_NAME = {field.name: field for field in REQUEST_FIELDS}


def request_fields(names: Iterable[str] | None = None) -> tuple[RequestField, ...]:
    """Return the fields called `names` in that order, or all. Raises ValueError on a name that is no field.

    >>> [field.type.name for field in request_fields(["event_time_ms", "model"])]
    ['INT64', 'STRING']
    """
    if names is None:
        return REQUEST_FIELDS
    wanted = list(names)
    if unknown := [name for name in wanted if name not in _BY_NAME]:
        raise ValueError(f"no field of a request: {', '.join(unknown)}; the fields are {', '.join(_BY_NAME)}")
    return tuple(_BY_NAME[name] for name in wanted)


def event_time_header(event_time_ms: int) -> tuple[str, bytes]:
    """Return the Kafka header that goes with a record.

    >>> event_time_header(1_700_000_000_000)
    ('event_time_ms', b'1700000000000')
    """
    return EVENT_TIME_HEADER, str(event_time_ms).encode()


def numeric_field_names() -> tuple[str, ...]:
    """Return the names of the fields that hold one number each.

    >>> "input_tokens" in numeric_field_names(), "model" in numeric_field_names()
    (True, False)
    """
    return tuple(field.name for field in REQUEST_FIELDS if field.type in {FieldType.INT64, FieldType.FLOAT64})


def flink_columns(names: Iterable[str] | None = None) -> str:
    """Return the column list of a Flink CREATE TABLE over topic `requests` (format json), without parentheses.

    Raises ValueError on a name that is no field.

    >>> print(flink_columns(["trace_id", "event_time_ms"]))
    `trace_id` STRING,
      `event_time_ms` BIGINT
    """
    return ",\n  ".join(f"`{field.name}` {field.type.value.flink}" for field in request_fields(names))


def spark_ddl(names: Iterable[str] | None = None) -> str:
    """Return the schema as a Spark DDL text, for `from_json` or a Delta table. Raises ValueError as above.

    >>> spark_ddl(["trace_id", "attributes"])
    'trace_id STRING, attributes MAP<STRING, DOUBLE>'
    """
    return ", ".join(f"{field.name} {field.type.value.spark}" for field in request_fields(names))


def arrow_schema(names: Iterable[str] | None = None) -> pa.Schema:
    """Return the pyarrow schema; required fields are not nullable. Raises ValueError as above.

    >>> arrow_schema(["input_tokens"]).field("input_tokens").type
    DataType(int64)
    """
    return pa.schema(
        [pa.field(field.name, field.type.value.arrow, nullable=not field.required) for field in request_fields(names)]
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one value of topic `requests`.

    >>> json_schema()["properties"]["is_error"]["type"]
    'boolean'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "LLM request",
        "description": "One value of Kafka topic `requests`.",
        "type": "object",
        "additionalProperties": False,
        "required": [field.name for field in REQUEST_FIELDS if field.required],
        "properties": {field.name: {"description": field.meaning, **field.type.value.json} for field in REQUEST_FIELDS},
    }


if __name__ == "__main__":
    print(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode())
