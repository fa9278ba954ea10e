"""Every spelling of a metric's name that we know, and the canonical name it has in `measurements`.

A canonical name is the request field of the same meaning where there is one, so that a service level reads alike from
`requests` and from `measurements`. Nothing else knows a spelling. A metric of no known spelling keeps its own name.

Spellings are compared without regard to `.`, `:`, `/`, `-` and `_`, to case, and to the suffix `_total` of counters:
so `gen_ai.server.request.duration` and the `gen_ai_server_request_duration` of a Prometheus endpoint are one.

Sources: vLLM vllm/v1/metrics/loggers.py and docs/usage/metrics.md (names of V0 too); SGLang production metrics; Hugging
Face TGI metrics; OpenTelemetry semantic-conventions, docs/gen-ai/gen-ai-metrics.md and docs/system/hardware-metrics.md;
NVIDIA DCGM exporter's default counters. Names under `slacktide.` are our own.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from types import MappingProxyType

MIB = 2.0**20
PERCENT = 100.0
MILLISECONDS = 1e3


@dataclass(frozen=True, slots=True)
class CanonicalMetric:
    """One canonical metric: its UCUM unit and meaning."""

    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class MetricAlias:
    """One spelling. The canonical value is the source's divided by `per_unit` (below 1 where the source's is coarser).

    `where` is an attribute and the value it must have, for names that carry several things.
    """

    name: str
    per_unit: float = 1.0
    where: tuple[str, str] | None = None


CANONICAL_METRICS: MappingProxyType[str, CanonicalMetric] = MappingProxyType(
    {
        "time_to_first_token_seconds": CanonicalMetric("s", "arrival to first token"),
        "time_per_output_token_seconds": CanonicalMetric("s", "mean time between output tokens of a request"),
        "inter_token_seconds": CanonicalMetric("s", "time between two output tokens"),
        "end_to_end_seconds": CanonicalMetric("s", "arrival to last token, on the server"),
        "client_end_to_end_seconds": CanonicalMetric("s", "call to last token, as the client sees it"),
        "queue_seconds": CanonicalMetric("s", "waiting to be scheduled"),
        "inference_seconds": CanonicalMetric("s", "scheduled to last token"),
        "prefill_seconds": CanonicalMetric("s", "in prefill"),
        "decode_seconds": CanonicalMetric("s", "in decode"),
        "kernel_seconds": CanonicalMetric("s", "kernel time of a batch"),
        "input_tokens": CanonicalMetric("{token}", "tokens of prompts: a counter's, or a request's in a histogram"),
        "output_tokens": CanonicalMetric("{token}", "tokens generated: a counter's, or a request's in a histogram"),
        "requests_succeeded": CanonicalMetric("{request}", "requests answered"),
        "requests_running": CanonicalMetric("{request}", "requests in the batch"),
        "requests_waiting": CanonicalMetric("{request}", "requests in the queue"),
        "preemptions": CanonicalMetric("{preemption}", "requests preempted"),
        "kv_cache_used_ratio": CanonicalMetric("1", "share of the KV cache in use, 0..1"),
        "kv_cache_hit_ratio": CanonicalMetric("1", "share of prompt tokens found in the KV cache, 0..1"),
        "kv_cache_queried_tokens": CanonicalMetric("{token}", "tokens looked up in the prefix cache"),
        "kv_cache_hit_tokens": CanonicalMetric("{token}", "tokens found in the prefix cache"),
        "gpu_memory_used_bytes": CanonicalMetric("By", "memory in use on an accelerator"),
        "gpu_memory_free_bytes": CanonicalMetric("By", "memory free on an accelerator"),
        "gpu_memory_peak_bytes": CanonicalMetric("By", "peak memory of a request"),
        "gpu_used_ratio": CanonicalMetric("1", "share of time an accelerator was busy, 0..1"),
        "gpu_memory_fragmentation": CanonicalMetric("1", "fragmented share of an accelerator's memory, 0..1"),
    }
)

_INPUT, _OUTPUT = ("gen_ai.token.type", "input"), ("gen_ai.token.type", "output")

METRIC_ALIASES: MappingProxyType[str, tuple[MetricAlias, ...]] = MappingProxyType(
    {
        name: tuple(alias if isinstance(alias, MetricAlias) else MetricAlias(alias) for alias in aliases)
        for name, aliases in {
            "time_to_first_token_seconds": (
                "vllm:time_to_first_token_seconds",
                "sglang:time_to_first_token_seconds",
                "trtllm:time_to_first_token_seconds",
                "gen_ai.server.time_to_first_token",
                "gen_ai.server.time_to_first_token_seconds",
            ),
            "time_per_output_token_seconds": (
                "vllm:request_time_per_output_token_seconds",
                "vllm:time_per_output_token_seconds",
                "sglang:time_per_output_token_seconds",
                "trtllm:time_per_output_token_seconds",
                "tgi_request_mean_time_per_token_duration",
                "gen_ai.server.time_per_output_token",
                "gen_ai.server.time_per_output_token_seconds",
                "token_latency",
                "token_latency_seconds",
                "latency_per_token",
                MetricAlias("token_latency_ms", MILLISECONDS),
            ),
            "inter_token_seconds": ("vllm:inter_token_latency_seconds", "sglang:inter_token_latency_seconds"),
            "end_to_end_seconds": (
                "vllm:e2e_request_latency_seconds",
                "sglang:e2e_request_latency_seconds",
                "trtllm:e2e_request_latency_seconds",
                "tgi_request_duration",
                "gen_ai.server.request.duration",
                "gen_ai.server.request.duration_seconds",
            ),
            "client_end_to_end_seconds": (
                "gen_ai.client.operation.duration",
                "gen_ai.client.operation.duration_seconds",
            ),
            "queue_seconds": (
                "vllm:request_queue_time_seconds",
                "vllm:time_in_queue_requests",
                "sglang:queue_time_seconds",
                "trtllm:request_queue_time_seconds",
                "tgi_request_queue_duration",
            ),
            "inference_seconds": ("vllm:request_inference_time_seconds", "tgi_request_inference_duration"),
            "prefill_seconds": ("vllm:request_prefill_time_seconds",),
            "decode_seconds": ("vllm:request_decode_time_seconds",),
            "kernel_seconds": (
                "kernel_latency",
                "kernel_latency_seconds",
                MetricAlias("kernel_latency_ms", MILLISECONDS),
                MetricAlias("vllm:model_forward_time_milliseconds", MILLISECONDS),
            ),
            "input_tokens": (
                "vllm:prompt_tokens",
                "vllm:request_prompt_tokens",
                "sglang:prompt_tokens",
                "tgi_request_input_length",
                MetricAlias("gen_ai.client.token.usage", where=_INPUT),
            ),
            "output_tokens": (
                "vllm:generation_tokens",
                "vllm:request_generation_tokens",
                "sglang:generation_tokens",
                "tgi_request_generated_tokens",
                MetricAlias("gen_ai.client.token.usage", where=_OUTPUT),
            ),
            "requests_succeeded": (
                "vllm:request_success",
                "sglang:request_success",
                "trtllm:request_success",
                "tgi_request_success",
            ),
            "requests_running": ("vllm:num_requests_running", "sglang:num_running_reqs", "tgi_batch_current_size"),
            "requests_waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "tgi_queue_size"),
            "preemptions": ("vllm:num_preemptions",),
            # vLLM's `perc` runs from 0 to 1.
            "kv_cache_used_ratio": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
            "kv_cache_hit_ratio": ("vllm:gpu_prefix_cache_hit_rate", "sglang:cache_hit_rate"),
            "kv_cache_queried_tokens": ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
            "kv_cache_hit_tokens": ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
            "gpu_memory_used_bytes": (
                "hw.gpu.memory.usage",
                "nvidia_smi_memory_used_bytes",
                MetricAlias("DCGM_FI_DEV_FB_USED", 1 / MIB),
            ),
            "gpu_memory_free_bytes": ("nvidia_smi_memory_free_bytes", MetricAlias("DCGM_FI_DEV_FB_FREE", 1 / MIB)),
            "gpu_memory_peak_bytes": (
                "gpu_memory_peak",
                "torch_cuda_max_memory_allocated_bytes",
                MetricAlias("gpu_memory_peak_mib", 1 / MIB),
            ),
            "gpu_used_ratio": (
                "hw.gpu.utilization",
                "nvidia_smi_utilization_gpu_ratio",
                MetricAlias("DCGM_FI_DEV_GPU_UTIL", PERCENT),
            ),
            "gpu_memory_fragmentation": ("gpu_memory_fragmentation_ratio",),
        }.items()
    }
)

# How many of a unit, as UCUM or in words, make one of the canonical unit: what a source says beats what its name says.
UNIT_FACTORS: MappingProxyType[str, MappingProxyType[str, float]] = MappingProxyType(
    {
        "s": MappingProxyType(
            {"s": 1.0, "seconds": 1.0, "ms": 1e3, "milliseconds": 1e3, "us": 1e6, "ns": 1e9, "min": 1 / 60}
        ),
        "By": MappingProxyType(
            {"By": 1.0, "bytes": 1.0, "kBy": 1e-3, "MBy": 1e-6, "KiBy": 2.0**-10, "MiBy": 2.0**-20, "GiBy": 2.0**-30}
        ),
        "1": MappingProxyType({"1": 1.0, "ratio": 1.0, "%": 100.0}),
    }
)

# Attributes that name the model on metrics, beside those of spans (schemas.semconv).
MODEL_LABELS = ("model_name", "served_model_name")


@dataclass(frozen=True, slots=True)
class Naming:
    """A metric's canonical name and unit, and what its values are divided by."""

    name: str
    unit: str | None
    per_unit: float = 1.0


def canonical_metric(source_name: str, unit: str, labels: dict[str, str]) -> Naming:
    """Return the canonical name of a metric, and how to bring its values to the canonical unit.

    Where the source says a unit that we know, that decides; else the spelling does. A metric of no known spelling keeps
    name and unit. Our own names are taken as they are, bare or under `slacktide.`. O(1).

    >>> canonical_metric("vllm:time_to_first_token_seconds", "", {})
    Naming(name='time_to_first_token_seconds', unit='s', per_unit=1.0)
    >>> canonical_metric("gen_ai.client.token.usage", "{token}", {"gen_ai.token.type": "output"}).name
    'output_tokens'
    >>> canonical_metric("gen_ai.server.request.duration", "ms", {}).per_unit
    1000.0
    >>> canonical_metric("my.own", "ms", {})
    Naming(name='my.own', unit='ms', per_unit=1.0)
    """
    for name, alias in _by_spelling().get(_spelling(source_name), ()):
        if alias.where is None or labels.get(alias.where[0]) == alias.where[1]:
            canonical = CANONICAL_METRICS[name].unit
            per_unit = UNIT_FACTORS[canonical].get(unit, alias.per_unit) if canonical in UNIT_FACTORS else 1.0
            # A source that says only "1" of what its name calls seconds, MiB or percent says nothing.
            return Naming(name, canonical, alias.per_unit if unit in ("", "1") else per_unit)
    return Naming(source_name, unit or None)


@cache
def _by_spelling() -> dict[str, list[tuple[str, MetricAlias]]]:
    """The alias table by spelling; of several aliases of one spelling those with a condition come first."""
    found: dict[str, list[tuple[str, MetricAlias]]] = {}
    for name in CANONICAL_METRICS:
        own = (MetricAlias(f"slacktide.{name}"), MetricAlias(name))
        for alias in (*own, *METRIC_ALIASES.get(name, ())):
            found.setdefault(_spelling(alias.name), []).append((name, alias))
    for aliases in found.values():
        aliases.sort(key=lambda entry: entry[1].where is None)
    return found


@lru_cache(maxsize=4096)
def _spelling(name: str) -> str:
    """Return what two spellings of one name have in common.

    >>> _spelling("vllm:prompt_tokens_total") == _spelling("vllm_prompt_tokens")
    True
    """
    return re.sub(r"[.:/_-]+", "_", name.lower()).removesuffix("_total")
