"""Metrics: microseconds a point, from Kafka message to measurement, beside Google's parser to plain Python (peer).

    python -m tests.bench.bench_metrics

Messages are a vLLM server's scrapes as the replay sends them: 14 points, 8 of them histograms of 16 to 23 buckets. The
peer only reads them (`MessageToDict`); the limit is parsing alone. CPU time of the process, the best of several passes.
"""

import sys
import time
from collections.abc import Callable

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from infra.replay.generate import Generator
from infra.replay.plan import ReplayPlan
from infra.replay.resolve import resolve
from tests.bench.report import Row, at_least, print_table
from udfs.telemetry.metric_family import Family, FamilyPolicy, take
from udfs.telemetry.metric_lines import FAMILY_AT, PLACE_AT, POINT_AT, metric_lines
from udfs.telemetry.metric_points import MetricPoint

REQUESTS, PASSES = 300, 7
POLICY = FamilyPolicy()


class Store(dict[str, bytes]):
    """A store as Flink's map is one, without its cost."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def remove(self, key: str) -> None:
        del self[key]


def scrapes(encoding: str) -> tuple[list[bytes], int]:
    """Return the messages of a replay scraped every second, and how many points they hold."""
    plan = ReplayPlan(start=1_700_000_000_000, limit=REQUESTS, encoding=encoding, metrics=True, scrape_seconds=1.0)
    found = [message for message in Generator(resolve(plan), 2).messages() if message.points]
    return [message.value for message in found], sum(message.points for message in found)


def to_lines(messages: list[bytes]) -> list[str]:
    """The job's first call."""
    return metric_lines(messages, [-1] * len(messages), max_skew_ms=0)


def to_measurements(texts: list[str]) -> int:
    """The series behind it; returns how many measurements there were."""
    families: dict[str, tuple[Store, Family]] = {}
    measured = 0
    for line in "\n".join(texts).split("\n"):
        if line[0] == "P":
            key, point = line[FAMILY_AT:PLACE_AT], MetricPoint.from_json(line[POINT_AT:])
            store, family = families.get(key) or (Store(), Family())
            family, outcome = take(store, family, point, POLICY)
            families[key] = store, family
            if outcome.measurement is not None:
                measured += len(outcome.measurement.to_json()) > 0
    return measured


def best_us(run: Callable[[], object], points: int) -> float:
    """Return the least CPU time of some passes, microseconds a point."""
    found = []
    for _ in range(PASSES):
        begin = time.process_time()
        run()
        found.append(time.process_time() - begin)
    return min(found) * 1e6 / points


def main() -> int:
    """Print the table; 1 when a target was missed."""
    messages, points = scrapes("otlp_proto")
    in_json, _ = scrapes("otlp_json")
    texts = to_lines(messages)
    assert to_measurements(texts) == points
    parse = ExportMetricsServiceRequest.FromString
    peer = best_us(lambda: [MessageToDict(parse(message)) for message in messages], points)
    limit = best_us(lambda: [parse(message) for message in messages], points)
    decode, decode_json = best_us(lambda: to_lines(messages), points), best_us(lambda: to_lines(in_json), points)
    series = best_us(lambda: to_measurements(texts), points)
    whole = decode + series
    rows = [
        Row("messages to lines, otlp_proto", "us a point", decode, peer, limit),
        Row("messages to lines, otlp_json", "us a point", decode_json),
        Row("lines to measurements", "us a point", series),
        Row(
            "otlp_proto to measurements", "us a point", whole, peer, limit, peer / whole, *at_least(peer / whole, 0.25)
        ),
    ]
    notes = [
        f"{points:,} points in {len(messages):,} messages; the ratio is the peer's time, which only reads, to ours."
    ]
    return 0 if print_table("Metrics", rows, notes=notes) else 1


if __name__ == "__main__":
    sys.exit(main())
