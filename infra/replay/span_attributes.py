"""How a replayed request spells its fields: as vLLM's `llm_request` span does today, with GenAI conventions around it.

vLLM's names are those of vllm/tracing (`SpanAttributes`); where it has none, the current OpenTelemetry GenAI name is
used, and where that has none, a name of schemas/semconv.py. Token counts go by the current `input_tokens`, which vLLM
still calls `prompt_tokens`.
"""

from types import MappingProxyType

from schemas.semconv import PHASE_SPANS

SPAN_NAME = "llm_request"
SCOPE_NAME = "vllm.llm_engine"
# SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE, which OpenTelemetry's Python SDK sets on every span.
SPAN_FLAGS = 0x100
KIND_INTERNAL, KIND_SERVER = 1, 2
CHILD_SPANS = tuple(name for name in PHASE_SPANS if name != "queue")

DISTINCT_VALUES = 65_536  # encoded attributes of counts and labels that an encoder keeps

OPERATION_KEY, OPERATION = "gen_ai.operation.name", "chat"

# field of a request -> attribute of its span
ATTRIBUTE_KEYS: MappingProxyType[str, str] = MappingProxyType(
    {
        "provider": "gen_ai.provider.name",
        "model": "gen_ai.request.model",
        "tenant": "tenant.id",
        "prompt_template": "gen_ai.prompt.name",
        "prompt_template_version": "gen_ai.prompt.version",
        "experiment": "experiment.id",
        "arm": "experiment.arm",
        "is_streaming": "gen_ai.request.stream",
        "finish_reason": "gen_ai.response.finish_reasons",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
        "time_to_first_token_seconds": "gen_ai.latency.time_to_first_token",
        "time_per_output_token_seconds": "gen_ai.latency.time_per_output_token",
        "end_to_end_seconds": "gen_ai.latency.e2e",
        "queue_seconds": "gen_ai.latency.time_in_queue",
        "prefill_seconds": "gen_ai.latency.time_in_model_prefill",
        "decode_seconds": "gen_ai.latency.time_in_model_decode",
        "kv_cache_hit_ratio": "kv_cache.hit_ratio",
        "kv_cache_used_ratio": "kv_cache.used_ratio",
        "prompt_entropy": "llm.prompt_entropy",
        "attention_head_variance": "slacktide.attention_head_variance",
        "gpu_memory_fragmentation": "slacktide.gpu_memory_fragmentation",
    }
)

# What a request has where text is asked for (texts.py): column -> attribute.
TEXT_KEYS: MappingProxyType[str, str] = MappingProxyType(
    {"prompt": "gen_ai.input.messages", "response": "gen_ai.output.messages"}
)

# Labels that a request has on demand (labels.py): column -> attribute.
LABEL_KEYS: MappingProxyType[str, str] = MappingProxyType(
    {
        "user_id": "user.id",
        "assignment_epoch": "experiment.epoch",
        "model_version": "gen_ai.response.model_version",
    }
)
