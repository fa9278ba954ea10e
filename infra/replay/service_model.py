"""The service-time model: what the trace does not say about a request, drawn from a seed.

Arrivals and tokens are the trace's. Queueing is a G/G/k queue over them, prefill is linear in the tokens that were not
cached, decode is log-normal a token; the other columns are draws by service_model.yaml, which gives every constant with
its reasoning. One object is one run of the queue: give it blocks of arrivals in order.
"""

import heapq
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from infra.replay.request_block import Arrivals, Columns, Ints, RequestBlock
from infra.replay.span_attributes import ATTRIBUTE_KEYS
from jobs.kafka_client import ConfigurationError

DEFAULT_MODEL = Path(__file__).with_name("service_model.yaml")
Floats = NDArray[np.float64]


def load_constants(path: Path = DEFAULT_MODEL) -> Mapping[str, Any]:
    """Read a service model's constants. Raises ConfigurationError naming file, section and remedy."""
    sections = yaml.safe_load(DEFAULT_MODEL.read_text())
    try:
        loaded = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        raise ConfigurationError(
            str(path), "(file)", "no such file", "Give --service-model a path that exists"
        ) from None
    except yaml.YAMLError as error:
        raise ConfigurationError(str(path), "(file)", "is not YAML", f"Mend it: {error}") from None
    for section, defaults in sections.items():
        found = loaded.get(section) if isinstance(loaded, dict) else None
        missing = [section] if found is None else []
        if isinstance(defaults, dict) and section != "resource" and isinstance(found, dict):
            missing = [f"{section}.{name}" for name in defaults if name not in found]
        if missing:
            raise ConfigurationError(str(path), missing[0], "is missing", f"Start from a copy of {DEFAULT_MODEL}")
    return dict(loaded)


def resource_attributes(constants: Mapping[str, Any]) -> dict[str, str]:
    """Return the OpenTelemetry resource attributes of every span."""
    return {name: str(value) for name, value in constants["resource"].items()}


class ServiceModel:
    """Serves blocks of arrivals, in order, in one queue; every draw comes from `rng`.

    `rate_ratio` is how many times faster requests come than the trace's do; slots and KV cache grow with it.
    `serve` costs about 8 microseconds a request; it holds O(slots) between blocks.
    """

    def __init__(self, constants: Mapping[str, Any], rng: np.random.Generator, rate_ratio: float = 1.0) -> None:
        self._constants, self._rng = constants, rng
        scale = rate_ratio if constants["queue"]["slots_scale_with_rate"] else 1.0
        self.slots = max(1, round(constants["queue"]["slots"] * scale))
        self._capacity_tokens = constants["kv_cache"]["capacity_tokens"] * self.slots / constants["queue"]["slots"]
        self._running: list[tuple[int, int]] = []  # (end in ns, tokens held), a heap
        self._running_tokens = 0

    def serve(self, arrivals: Arrivals, slowdown: Floats | None = None) -> RequestBlock:
        """Return the served requests, in the order of arrival.

        `slowdown` (n float64, default 1) multiplies prefill and decode, and so lengthens the queue behind a slow
        request as well.
        """
        n = len(arrivals)
        factor = np.ones(n) if slowdown is None else slowdown
        hit_ratio = self._hit_ratio(n)
        prefill = self._prefill_seconds(arrivals.input_tokens, hit_ratio) * factor
        per_token = self._lognormal("decode_median_seconds_per_token", "decode_log_sigma", n) * factor
        decode = per_token * np.maximum(arrivals.output_tokens - 1, 0)
        schedule = self._lognormal("schedule_median_seconds", "schedule_log_sigma", n, "queue")
        tokens = arrivals.input_tokens + arrivals.output_tokens
        busy_ns = _nanoseconds(schedule + prefill + decode)
        wait_ns, used_tokens = self._queue(arrivals.arrival_ns, busy_ns, tokens)
        queue = wait_ns / 1e9 + schedule
        used_ratio = used_tokens / self._capacity_tokens
        fields: Columns = {
            "input_tokens": arrivals.input_tokens,
            "output_tokens": arrivals.output_tokens,
            "time_to_first_token_seconds": queue + prefill,
            "time_per_output_token_seconds": per_token,
            "end_to_end_seconds": queue + prefill + decode,
            "queue_seconds": queue,
            "prefill_seconds": prefill,
            "decode_seconds": decode,
            "kv_cache_hit_ratio": hit_ratio,
            "kv_cache_used_ratio": used_ratio,
            **self._signals(arrivals.input_tokens, used_ratio),
            **self._labels(arrivals.output_tokens),
        }
        ordered = {name: fields[name] for name in ATTRIBUTE_KEYS}
        return RequestBlock(arrivals.arrival_ns, arrivals.arrival_ns + wait_ns + busy_ns, ordered)

    def _queue(self, arrival_ns: Ints, busy_ns: Ints, tokens: Ints) -> tuple[Ints, Ints]:
        """Return each request's wait for a slot (ns) and the tokens held by all slots when it has one (int64)."""
        running, held_tokens = self._running, self._running_tokens
        waits, held = [], []
        for arrival, busy, size in zip(arrival_ns.tolist(), busy_ns.tolist(), tokens.tolist(), strict=True):
            begin = arrival
            while running and (running[0][0] <= begin or len(running) >= self.slots):
                end, freed = heapq.heappop(running)
                held_tokens -= freed
                begin = max(begin, end)
            heapq.heappush(running, (begin + busy, size))
            held_tokens += size
            waits.append(begin - arrival)
            held.append(held_tokens)
        self._running_tokens = held_tokens
        return np.array(waits, dtype=np.int64), np.array(held, dtype=np.int64)

    def _lognormal(self, median: str, sigma: str, n: int, section: str = "latency") -> Floats:
        constants = self._constants[section]
        return self._rng.lognormal(np.log(constants[median]), constants[sigma], n)

    def _prefill_seconds(self, input_tokens: Ints, hit_ratio: Floats) -> Floats:
        latency = self._constants["latency"]
        line: Floats = latency["prefill_fixed_seconds"] + latency["prefill_seconds_per_token"] * input_tokens * (
            1 - hit_ratio
        )
        spread: Floats = self._rng.lognormal(0.0, latency["prefill_log_sigma"], len(input_tokens))
        return line * spread

    def _hit_ratio(self, n: int) -> Floats:
        cache = self._constants["kv_cache"]
        missed = self._rng.random(n) < cache["miss_share"]
        a, b = cache["hit_beta"]
        found: Floats = self._rng.beta(a, b, n)
        found[missed] = 0.0
        return found

    def _signals(self, input_tokens: Ints, used_ratio: Floats) -> Columns:
        signals, n = self._constants["signals"], len(input_tokens)
        entropy_line = signals["prompt_entropy_mean"] + signals["prompt_entropy_per_log_token"] * np.log1p(input_tokens)
        head_variance = self._rng.lognormal(
            np.log(signals["attention_head_variance_median"]), signals["attention_head_variance_log_sigma"], n
        )
        fragmentation = (
            signals["gpu_memory_fragmentation_base"]
            + signals["gpu_memory_fragmentation_per_used_ratio"] * used_ratio
            + self._rng.normal(0.0, signals["gpu_memory_fragmentation_sigma"], n)
        )
        return {
            "prompt_entropy": np.maximum(entropy_line + self._rng.normal(0.0, signals["prompt_entropy_sigma"], n), 0.0),
            "attention_head_variance": head_variance,
            "gpu_memory_fragmentation": np.clip(fragmentation, 0.0, 1.0),
        }

    def _labels(self, output_tokens: Ints) -> Columns:
        columns: Columns = {}
        for name, shares in self._constants["labels"].items():
            weights = np.array(list(shares.values()), dtype=np.float64)
            codes = self._rng.choice(len(weights), size=len(output_tokens), p=weights / weights.sum())
            columns[name] = np.array(list(shares))[codes]
        full = output_tokens >= self._constants["max_output_tokens"]
        columns["finish_reason"] = np.where(full, "length", columns["finish_reason"])
        return columns


def _nanoseconds(seconds: Floats) -> Ints:
    rounded: Floats = np.rint(seconds * 1e9)
    return rounded.astype(np.int64)
