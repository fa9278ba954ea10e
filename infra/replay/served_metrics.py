"""What the /metrics endpoint of a vLLM server would have shown of the requests served, scraped at fixed times.

Cumulative, from zero at the replay's begin, as the Collector's Prometheus receiver passes it on. Names and buckets are
those of vLLM's vllm/v1/metrics/loggers.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from google.protobuf import json_format
from numpy.typing import NDArray
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

from infra.replay.faults import Sent
from infra.replay.message import Message
from infra.replay.request_block import RequestBlock

CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_OUTPUT_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                 80.0)  # fmt: skip
_REQUEST = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
            960.0, 1920.0, 7680.0)  # fmt: skip
_TOKENS = tuple(float(digit * 10**power) for power in range(5) for digit in (1, 2, 5))

# metric -> field of a request, bounds of its buckets
HISTOGRAMS: MappingProxyType[str, tuple[str, tuple[float, ...]]] = MappingProxyType(
    {
        "vllm:time_to_first_token_seconds": ("time_to_first_token_seconds", _FIRST_TOKEN),
        "vllm:request_time_per_output_token_seconds": ("time_per_output_token_seconds", _OUTPUT_TOKEN),
        "vllm:e2e_request_latency_seconds": ("end_to_end_seconds", _REQUEST),
        "vllm:request_queue_time_seconds": ("queue_seconds", _REQUEST),
        "vllm:request_prefill_time_seconds": ("prefill_seconds", _REQUEST),
        "vllm:request_decode_time_seconds": ("decode_seconds", _REQUEST),
        "vllm:request_prompt_tokens": ("input_tokens", _TOKENS),
        "vllm:request_generation_tokens": ("output_tokens", _TOKENS),
    }
)
# counter -> field that it adds up
COUNTERS = MappingProxyType(
    {"vllm:prompt_tokens_total": "input_tokens", "vllm:generation_tokens_total": "output_tokens"}
)
REQUESTS_COUNTER = "vllm:request_success_total"
RUNNING, WAITING, CACHE = "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"
POINTS_A_MODEL = len(HISTOGRAMS) + len(COUNTERS) + 4


@dataclass
class _Totals:
    """What one model's counters hold."""

    buckets: dict[str, NDArray[np.int64]]
    sums: dict[str, float]
    requests: int = 0
    cache_used: float = 0.0

    @classmethod
    def zero(cls) -> "_Totals":
        buckets = {name: np.zeros(len(bounds) + 1, dtype=np.int64) for name, (_, bounds) in HISTOGRAMS.items()}
        return cls(buckets, dict.fromkeys((*HISTOGRAMS, *COUNTERS), 0.0))

    def add(self, rows: "_Rows") -> None:
        """Count requests that have ended; the last of them to end leaves the cache as it is."""
        for name, (field, bounds) in HISTOGRAMS.items():
            values = rows.fields[field]
            # Bucket i holds (bound i-1, bound i].
            places = np.searchsorted(np.array(bounds), values, side="left")
            self.buckets[name] += np.bincount(places, minlength=len(bounds) + 1)
            self.sums[name] += float(values.sum())
        for name, field in COUNTERS.items():
            self.sums[name] += float(rows.fields[field].sum())
        self.requests += len(rows.end_ns)
        self.cache_used = float(rows.fields["kv_cache_used_ratio"][np.argmax(rows.end_ns)])


@dataclass
class _Rows:
    """Requests that are not yet counted."""

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    fields: dict[str, NDArray[Any]]

    def where(self, which: NDArray[np.bool_]) -> "_Rows":
        fields = {name: values[which] for name, values in self.fields.items()}
        return _Rows(self.start_ns[which], self.end_ns[which], fields)

    def with_block(self, block: RequestBlock) -> "_Rows":
        """Return these and those of a block that has the same fields."""
        fields = {name: np.concatenate([values, block.fields[name]]) for name, values in self.fields.items()}
        starts, ends = ((self.start_ns, block.start_ns), (self.end_ns, block.end_ns))
        return _Rows(np.concatenate(starts), np.concatenate(ends), fields)


class ServedMetrics:
    """Takes blocks of requests in, gives a message for each scrape. Times are nanoseconds after the replay's begin.

    Memory O(block + requests in flight).
    """

    def __init__(self, resource: Mapping[str, str], encoding: str, topic: str, start_ns: int, scrape_ns: int) -> None:
        self._resource, self._encoding, self._topic = dict(resource), encoding, topic
        self._start_ns, self.scrape_ns = start_ns, scrape_ns
        self._next_ns = scrape_ns
        self._rows: _Rows | None = None
        self._totals: dict[str, _Totals] = {}

    def scrapes(self, block: RequestBlock, until_ns: int) -> Iterator[Message]:
        """Take a block in and yield the scrapes up to `until_ns`, before which no later block has a request.

        Until a first request has ended there is nothing to see, and no scrape.
        """
        wanted = {field for field, _ in HISTOGRAMS.values()} | {"model", "kv_cache_used_ratio"}
        fields = {name: block.fields[name] for name in wanted}
        self._rows = _Rows(block.start_ns, block.end_ns, fields) if self._rows is None else self._rows.with_block(block)
        yield from self.scrapes_until(until_ns)

    def scrapes_until(self, until_ns: int) -> Iterator[Message]:
        """Yield the scrapes up to `until_ns` of what was taken in."""
        while self._next_ns <= until_ns:
            message = self._scrape(self._next_ns)
            self._next_ns += self.scrape_ns
            if message.points:
                yield message

    def _scrape(self, at_ns: int) -> Message:
        assert self._rows is not None
        ended = self._rows.end_ns <= at_ns
        done, self._rows = self._rows.where(ended), self._rows.where(~ended)
        for model in np.unique(done.fields["model"]).tolist():
            self._totals.setdefault(model, _Totals.zero()).add(done.where(done.fields["model"] == model))
        value = self._message(at_ns)
        points = len(self._totals) * POINTS_A_MODEL
        # Keyed, so that one server's scrapes stay in order, as with the exporter's partitioning by resource.
        key = self._resource.get("service.name", "").encode()
        return Message(value, key, None, at_ns, at_ns, at_ns, Sent.CLEAN, 0, 0, topic=self._topic, points=points)

    def _message(self, at_ns: int) -> bytes:
        request = ExportMetricsServiceRequest()
        entry = request.resource_metrics.add()
        entry.resource.attributes.extend(_pairs(self._resource))
        scope = entry.scope_metrics.add()
        times = {"start_time_unix_nano": self._start_ns, "time_unix_nano": self._start_ns + at_ns}
        for model, totals in self._totals.items():
            self._add_model(scope, model, totals, at_ns, times)
        if self._encoding == "otlp_proto":
            data: bytes = request.SerializeToString()
            return data
        text: str = json_format.MessageToJson(request, use_integers_for_enums=True, indent=None)
        return text.encode()

    def _add_model(self, scope: Any, model: str, totals: _Totals, at_ns: int, times: dict[str, int]) -> None:
        labels = _pairs({"model_name": model, "engine": "0"})
        for name, (_, bounds) in HISTOGRAMS.items():
            metric = scope.metrics.add(name=name)
            metric.histogram.aggregation_temporality = CUMULATIVE
            counts = totals.buckets[name].tolist()
            metric.histogram.data_points.add(
                attributes=labels, count=sum(counts), sum=totals.sums[name], bucket_counts=counts,
                explicit_bounds=bounds, **times,
            )  # fmt: skip
        for name, holds in (
            (REQUESTS_COUNTER, float(totals.requests)),
            *((name, totals.sums[name]) for name in COUNTERS),
        ):
            metric = scope.metrics.add(name=name)
            metric.sum.aggregation_temporality, metric.sum.is_monotonic = CUMULATIVE, True
            metric.sum.data_points.add(attributes=labels, as_double=holds, **times)
        for name, level in self._levels(model, totals, at_ns).items():
            point = {"attributes": labels, "as_double": level, "time_unix_nano": times["time_unix_nano"]}
            scope.metrics.add(name=name).gauge.data_points.add(**point)

    def _levels(self, model: str, totals: _Totals, at_ns: int) -> dict[str, float]:
        assert self._rows is not None
        here = (self._rows.fields["model"] == model) & (self._rows.start_ns <= at_ns)
        queued_ns = (self._rows.fields["queue_seconds"] * 1e9).astype(np.int64)
        waiting = here & (self._rows.start_ns + queued_ns > at_ns)
        running = float(np.count_nonzero(here & ~waiting))
        return {RUNNING: running, WAITING: float(np.count_nonzero(waiting)), CACHE: totals.cache_used}


def _pairs(texts: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in texts.items()]
