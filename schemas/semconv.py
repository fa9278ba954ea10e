"""Every spelling of a span attribute that we know, and the request field it fills. Nothing else knows a spelling.

Conventions move (`gen_ai.system` became `gen_ai.provider.name`, `prompt_tokens` became `input_tokens`) and emitters
stay behind, so a field has a list of spellings. They stand in order of precedence: our own first, then the current
OpenTelemetry convention, then older ones, then other vendors'. The first one present with a usable value wins.

Sources: OpenTelemetry semantic-conventions-genai (docs/gen-ai/client-inference.md) and semantic-conventions v1.26 to
v1.37 (gen-ai-spans.md); vLLM vllm/tracing (SpanAttributes, spans `llm_request`; SGLang uses the same names);
OpenInference semconv.trace; OpenLLMetry (Traceloop) semconv_ai; Langfuse OtelSpanAttributes; Vercel AI SDK telemetry;
OpenTelemetry's attribute registry (user, enduser, feature_flag).

Two spellings are left out on purpose, since emitters disagree about their unit: `gen_ai.response.time_to_first_token`
(seconds in one, nanoseconds in another) and `gen_ai.server.request.duration` as a span attribute (seconds,
milliseconds). They stay among the free-form attributes under their own names.
"""

from dataclasses import dataclass
from types import MappingProxyType

MILLISECONDS = 1e3  # a second, in the unit of the spelling
NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Alias:
    """One spelling. The field's value is the attribute's value divided by `per_unit`.

    `in_json` names the member to read where the attribute is a text holding a flat JSON object of numbers.
    """

    key: str
    per_unit: float = 1.0
    in_json: str = ""


def _ms(key: str) -> Alias:
    return Alias(key, per_unit=MILLISECONDS)


FIELD_ALIASES: MappingProxyType[str, tuple[Alias, ...]] = MappingProxyType(
    {
        field: tuple(alias if isinstance(alias, Alias) else Alias(alias) for alias in aliases)
        for field, aliases in {
            "service_name": ("service.name",),
            "provider": (
                "slacktide.provider",
                "gen_ai.provider.name",
                "gen_ai.system",
                "llm.provider",
                "llm.system",
                "llm.vendor",
                "ai.model.provider",
            ),
            "model": (
                "slacktide.model",
                "gen_ai.response.model",
                "gen_ai.request.model",
                "llm.response.model_name",
                "llm.model_name",
                "llm.request.model_name",
                "llm.response.model",
                "llm.request.model",
                "langfuse.observation.model.name",
                "ai.response.model",
                "ai.model.id",
            ),
            "model_version": (
                "slacktide.model_version",
                "gen_ai.response.model_version",
                "gen_ai.request.model_version",
                "llm.model.version",
                "llm.model_version",
                "ai.model.version",
                "model.version",
            ),
            "tenant": ("slacktide.tenant", "tenant.id", "tenant_id", "tenant", "organization.id"),
            "user_hash": (  # of what is named here: HASHED_FIELDS
                "slacktide.user_id",
                "user.id",
                "enduser.pseudo.id",
                "enduser.id",
                "user.hash",
                "gen_ai.user",
                "llm.user",
                "langfuse.user.id",
                "langwatch.user.id",
                "traceloop.association.properties.user_id",
                "ai.telemetry.metadata.userId",
                "feature_flag.context.id",  # the targeting key: most often the user
            ),
            "accelerator_type": (
                "slacktide.accelerator_type",
                "accelerator.type",
                "accelerator_type",
                "gpu.model",
                "gpu.name",
                "k8s.node.label.nvidia.com/gpu.product",
                "k8s.node.label.cloud.google.com/gke-accelerator",
            ),
            "prompt_template": (
                "slacktide.prompt_template",
                "gen_ai.prompt.name",
                "traceloop.prompt.key",
                "langfuse.observation.prompt.name",
                "prompt.id",
            ),
            "prompt_template_version": (
                "slacktide.prompt_template_version",
                "gen_ai.prompt.version",
                "traceloop.prompt.version",
                "langfuse.observation.prompt.version",
                "llm.prompt_template.version",
            ),
            "experiment": ("slacktide.experiment", "experiment.id", "experiment.name", "experiment"),
            "arm": ("slacktide.arm", "experiment.arm", "experiment.variant"),
            "assignment_epoch": (
                "slacktide.assignment_epoch",
                "experiment.assignment_epoch",
                "experiment.epoch",
                "experiment.version",
                "feature_flag.version",  # of the flag's rules, or of the set it belongs to
            ),
            "adapter_id": ("slacktide.adapter_id", "adapter_id", "lora.adapter_id", "lora.adapter_name", "lora.name"),
            "input_tokens": (
                "slacktide.input_tokens",
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.prompt_tokens",
                "llm.token_count.prompt",
                "llm.usage.prompt_tokens",
                Alias("langfuse.observation.usage_details", in_json="input"),
                "ai.usage.inputTokens",
                "ai.usage.promptTokens",
            ),
            "output_tokens": (
                "slacktide.output_tokens",
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.completion_tokens",
                "llm.token_count.completion",
                "llm.usage.completion_tokens",
                Alias("langfuse.observation.usage_details", in_json="output"),
                "ai.usage.outputTokens",
                "ai.usage.completionTokens",
            ),
            "time_to_first_token_seconds": (
                "slacktide.time_to_first_token_seconds",
                "gen_ai.response.time_to_first_chunk",
                "gen_ai.server.time_to_first_token",
                "gen_ai.latency.time_to_first_token",
                "gen_ai.server.ttft",
                _ms("gen_ai.server.time_to_first_token_ms"),
                _ms("ai.response.msToFirstChunk"),
                _ms("ai.stream.msToFirstChunk"),
                Alias("slacktide.time_to_first_token_nanoseconds", per_unit=NANOSECONDS),
            ),
            "time_per_output_token_seconds": (
                "slacktide.time_per_output_token_seconds",
                "gen_ai.server.time_per_output_token",
                "gen_ai.latency.time_per_output_token",
            ),
            "end_to_end_seconds": (
                "slacktide.end_to_end_seconds",
                "gen_ai.latency.e2e",
                _ms("ai.response.msToFinish"),
            ),
            "queue_seconds": ("slacktide.queue_seconds", "gen_ai.latency.time_in_queue"),
            "prefill_seconds": ("slacktide.prefill_seconds", "gen_ai.latency.time_in_model_prefill"),
            "decode_seconds": ("slacktide.decode_seconds", "gen_ai.latency.time_in_model_decode"),
            "finish_reason": (
                "slacktide.finish_reason",
                "gen_ai.response.finish_reasons",
                "gen_ai.response.finish_reason",
                "gen_ai.response.stop_reason",
                "llm.finish_reason",
                "llm.response.finish_reason",
                "llm.response.stop_reason",
                "ai.response.finishReason",
                "ai.finishReason",
            ),
            "error_type": ("slacktide.error_type", "error.type", "exception.type"),
            "is_streaming": (
                "slacktide.is_streaming",
                "gen_ai.request.stream",
                "gen_ai.is_streaming",
                "gen_ai.request.is_stream",
                "llm.is_streaming",
                "langwatch.gen_ai.streaming",
            ),
            "attempts": ("slacktide.attempts",),
            "kv_cache_hit_ratio": ("slacktide.kv_cache_hit_ratio", "kv_cache.hit_ratio"),
            "kv_cache_used_ratio": ("slacktide.kv_cache_used_ratio", "kv_cache.used_ratio"),
            "prompt_entropy": ("slacktide.prompt_entropy", "llm.prompt_entropy"),
            "attention_head_variance": ("slacktide.attention_head_variance",),
            "token_attention_entropy": ("slacktide.token_attention_entropy",),
            "gpu_memory_fragmentation": ("slacktide.gpu_memory_fragmentation",),
            "prompt_embedding_similarity": ("slacktide.prompt_embedding_similarity",),
            "prompt_embedding": ("slacktide.prompt_embedding",),
            "response_embedding": ("slacktide.response_embedding",),
            "intent_response_consistency": ("slacktide.intent_response_consistency",),
            "factuality": ("slacktide.factuality",),
            "perplexity": ("slacktide.perplexity", "llm.perplexity"),
            "retrieval_recall": ("slacktide.retrieval_recall", "retrieval.recall"),
            "retrieval_document_count": ("slacktide.retrieval_document_count", "retrieval.document_count"),
            "guardrail_triggered": (
                "slacktide.guardrail_triggered",
                "gen_ai.guardrail.triggered",
                "guardrail.triggered",
            ),
            "guardrail_reason": ("slacktide.guardrail_reason", "gen_ai.guardrail.name", "guardrail.name"),
        }.items()
    }
)

# Spellings whose value is a list with one entry a generation; the first text of the list is taken.
LIST_KEYS = frozenset({"gen_ai.response.finish_reasons", "gen_ai.response.finish_reason", "llm.finish_reason"})

# Spellings whose value is a list of numbers, taken whole.
VECTOR_KEYS = frozenset(
    alias.key for field in ("prompt_embedding", "response_embedding") for alias in FIELD_ALIASES[field]
)

# Fields that hold the SHA-256 of their attribute, in hex, and never the attribute itself, whichever spelling gave it.
HASHED_FIELDS = frozenset({"user_hash"})

# What a span says it does, in order of precedence, and the answers (in lower case) that make it an LLM request.
# A span that gives any other answer (embeddings, execute_tool, invoke_agent, TOOL, CHAIN...) is none.
OPERATION_KEYS = (
    "gen_ai.operation.name",
    "openinference.span.kind",
    "langfuse.observation.type",
    "llm.request.type",
    "ai.operationId",
)
REQUEST_OPERATIONS = frozenset(
    {
        "chat",
        "text_completion",
        "generate_content",
        "completion",  # Traceloop llm.request.type
        "llm",  # OpenInference
        "generation",  # Langfuse
        "ai.generatetext",  # Vercel AI SDK, outer and inner spans
        "ai.generatetext.dogenerate",
        "ai.streamtext",
        "ai.streamtext.dostream",
        "ai.generateobject",
        "ai.generateobject.dogenerate",
        "ai.streamobject",
        "ai.streamobject.dostream",
    }
)

# Where a span doesn't say what it does, a value for one of these makes a CLIENT or SERVER span a request.
EVIDENCE_FIELDS = frozenset(
    {
        "model",
        "input_tokens",
        "output_tokens",
        "time_to_first_token_seconds",
        "time_per_output_token_seconds",
        "finish_reason",
    }
)

# What only the serving side knows of a request, itself or in the spans below it. A request without any waits for those.
SERVER_SIDE_FIELDS = frozenset({"time_to_first_token_seconds", "queue_seconds", "prefill_seconds", "decode_seconds"})

# Names of spans below a request whose durations give its time in a phase, where no attribute does.
PHASE_SPANS = MappingProxyType(
    {"queue": "queue_seconds", "prefill": "prefill_seconds", "decode": "decode_seconds"},
)
