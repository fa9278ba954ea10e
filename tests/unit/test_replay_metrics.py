"""`slacktide replay --metrics`: what the metrics say is what the spans say."""

from collections import Counter

import numpy as np
import pytest

from infra.replay.generate import Generator
from infra.replay.message import Message
from infra.replay.plan import ReplayPlan
from infra.replay.resolve import resolve
from infra.replay.sender import empty_report
from infra.replay.served_metrics import HISTOGRAMS, POINTS_A_MODEL
from schemas.measurements import Measurement
from udfs.sketches.explicit_histogram import ExplicitHistogram
from udfs.telemetry.measurement_histogram import histogram_of
from udfs.telemetry.metric_series import SeriesPolicy, SeriesState, step
from udfs.telemetry.otlp import decode_spans
from udfs.telemetry.otlp_metrics import read_points

START_MS = 1_700_000_000_000


def messages(encoding: str) -> list[Message]:
    plan = ReplayPlan(start=START_MS, limit=300, encoding=encoding, metrics=True, scrape_seconds=10)
    return list(Generator(resolve(plan), 2).messages())


def measured(scrapes: list[Message], encoding: str) -> tuple[list[Measurement], Counter[str]]:
    states: dict[str, SeriesState] = {}
    found, kinds = [], Counter[str]()
    for scrape in scrapes:
        for read in read_points(0, scrape.value, encoding):
            assert isinstance(read, tuple)
            state = states.get(read[1].series_id, SeriesState())
            states[read[1].series_id], outcome = step(state, read[1], SeriesPolicy())
            kinds[outcome.kind] += 1
            found += [outcome.measurement] if outcome.measurement else []
    return found, kinds


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
def test_metrics_tell_of_the_requests_that_the_spans_tell_of(encoding: str) -> None:
    sent = messages(encoding)
    scrapes = [message for message in sent if message.points]
    table, dead = decode_spans([message.value for message in sent if not message.points], encoding)
    found, kinds = measured(scrapes, encoding)
    assert dead == []
    assert kinds == {"measurements": sum(message.points for message in scrapes)}
    assert {message.points for message in scrapes} == {POINTS_A_MODEL}

    def total(name: str) -> float:
        return sum(m.value for m in found if m.source_name == name and m.value is not None)

    assert total("vllm:request_success_total") == table.num_rows == 300
    assert total("vllm:generation_tokens_total") == sum(table.column("output_tokens").to_pylist())
    for name, (field, bounds) in HISTOGRAMS.items():
        merged = ExplicitHistogram()
        for m in found:
            if m.source_name == name:
                part = histogram_of(m)
                assert isinstance(part, ExplicitHistogram)
                merged = merged.merge(part)
        values = table.column(field).to_numpy().astype(float)
        for bound in bounds:
            assert merged.good_ratio(bound).low == np.mean(values <= bound), name
        assert merged.sum == pytest.approx(values.sum())


def test_scrapes_are_in_order_keyed_and_counted_apart() -> None:
    sent = messages("otlp_proto")
    dues = [message.due_ns for message in sent]
    assert dues == sorted(dues)
    scrapes = [message for message in sent if message.points]
    assert {(message.key is None, message.topic) for message in scrapes} == {(False, "otlp_metrics")}
    assert {message.due_ns % 10_000_000_000 for message in scrapes} == {0}
    report = empty_report(Generator(resolve(ReplayPlan(start=START_MS, limit=300)), 2))
    for message in sent:
        report.count(message)
    assert (report.metric_messages, report.messages) == (len(scrapes), len(sent))
    assert report.expected_books()["spans"] == 300
    assert report.expected_metric_books() == {"points": report.metric_points, "measurements": report.metric_points}


def test_running_and_waiting_are_levels_of_their_time() -> None:
    found, _ = measured([message for message in messages("otlp_proto") if message.points], "otlp_proto")
    running = [m.value for m in found if m.name == "requests_running"]
    waiting = [m.value for m in found if m.name == "requests_waiting"]
    assert max(running) > 0
    assert (running[-1], waiting[-1]) == (0, 0)  # the last scrape sees every request ended
    used = [m.value for m in found if m.name == "kv_cache_used_ratio"]
    assert all(0 < value <= 1 for value in used)


def test_without_the_option_nothing_changes() -> None:
    plan = ReplayPlan(start=START_MS, limit=300, metrics=False)
    plain = [message.value for message in Generator(resolve(plan), 2).messages()]
    assert plain == [message.value for message in messages("otlp_proto") if not message.points]
