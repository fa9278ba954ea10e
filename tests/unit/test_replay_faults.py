"""Each fault alone: how it is written, what it changes, and that what must not be readable isn't."""

import numpy as np
import orjson
import pytest
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from infra.replay.faults import (
    DRIFT_FEATURES,
    MALFORMED,
    UNREADABLE,
    Drift,
    FaultShares,
    Sent,
    parse_drift,
    parse_slowdown,
    unreadable_message,
)
from infra.replay.otlp_messages import span_encoder
from infra.replay.position import Position
from infra.replay.request_block import RequestBlock
from schemas.requests import numeric_field_names
from udfs.telemetry.otlp import decode_spans

HALF = Position(share=0.5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prompt_entropy@50%", Drift("prompt_entropy", HALF, "scale", 1.5)),
        ("prompt_entropy@50%:scale,2", Drift("prompt_entropy", HALF, "scale", 2.0)),
        ("queue_seconds@30m:shift,-0.5", Drift("queue_seconds", Position(seconds=1800.0), "shift", -0.5)),
        ("queue_seconds@1h:kind=shift,amount=1e-3", Drift("queue_seconds", Position(seconds=3600.0), "shift", 0.001)),
        (
            "input_tokens@2026-01-31T12:00:00Z:scale,2",
            Drift("input_tokens", Position(instant_ms=1_769_860_800_000), "scale", 2.0),
        ),
    ],
)
def test_a_drift_as_written(text: str, expected: Drift) -> None:
    assert parse_drift(text) == expected


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("prompt_entropy", "is no drift"),
        ("model@50%", "can't drift"),
        ("event_time_ms@50%", "can't drift"),
        ("prompt_entropy@soon", "no duration"),
        ("prompt_entropy@50%:scale", "no duration"),
        ("prompt_entropy@50%:scale,..", "no duration"),
        ("prompt_entropy@150%", "no share"),
    ],
)
def test_a_drift_that_is_none(text: str, because: str) -> None:
    with pytest.raises(ValueError, match=because):
        parse_drift(text)


def test_slow_episodes_as_written() -> None:
    episode = parse_slowdown("2.5@10%+90s")
    assert (episode.factor, episode.at, episode.duration_seconds) == (2.5, Position(share=0.1), 90.0)
    assert parse_slowdown("2@10m").duration_seconds is None
    assert parse_slowdown("3@10s+10s").factors(np.array([9, 10, 19, 20]) * 10**9, 10**10).tolist() == [1, 3, 3, 1]
    for text in ("@10%", "0@10%", "2@10%+", "x@10%", "..@10%", "2@x"):
        with pytest.raises(ValueError, match="is no"):
            parse_slowdown(text)


def three_requests() -> RequestBlock:
    fields = {"prompt_entropy": np.array([1.0, 2.0, 3.0]), "input_tokens": np.array([1, 2, 3])}
    return RequestBlock(np.array([0, 0, 0]), np.array([10, 20, 30]), fields)


def test_a_drift_touches_one_field_from_its_time_on() -> None:
    block = three_requests()
    assert Drift("prompt_entropy", HALF).apply(block, 20) == 2
    assert block.fields["prompt_entropy"].tolist() == [1.0, 3.0, 4.5]
    assert block.fields["input_tokens"].tolist() == [1, 2, 3]


def test_tokens_stay_whole_and_at_least_none() -> None:
    block = three_requests()
    Drift("input_tokens", HALF, "shift", -2).apply(block, 0)
    assert block.fields["input_tokens"].tolist() == [0, 0, 1]
    assert block.fields["input_tokens"].dtype == np.int64


def test_only_numbers_drift() -> None:
    assert set(DRIFT_FEATURES) <= set(numeric_field_names())
    assert len(DRIFT_FEATURES) == 13


def test_shares_are_kept_and_late_ones_are_early_enough() -> None:
    n = 100_000
    early = np.arange(n) < n // 2
    shares = FaultShares(duplicates=0.02, malformed=0.04, late=0.01, skew=0.005)
    fates = shares.draw(np.random.default_rng(0), early, late_share=0.02)
    counts = {kind: fates.count(kind) for kind in Sent}
    expected = {Sent.DUPLICATE: 2000, Sent.SKEWED: 500, Sent.LATE: 1000, **dict.fromkeys(MALFORMED, 1000)}
    for kind, wanted in expected.items():
        assert abs(counts[kind] - wanted) < 5 * wanted**0.5, kind
    assert all(early[row] for row, fate in enumerate(fates) if fate is Sent.LATE)
    assert sum(counts.values()) == n
    assert set(FaultShares().draw(np.random.default_rng(0), early, 0.0)) == {Sent.CLEAN}


@pytest.mark.parametrize("encoding", ["otlp_proto", "otlp_json"])
@pytest.mark.parametrize("kind", UNREADABLE)
def test_unreadable_messages_are_never_read(kind: Sent, encoding: str) -> None:
    """By no reader: protobuf's own, a JSON parser, or ingest in either encoding."""
    rng = np.random.default_rng(9)
    encoder = span_encoder(encoding, {"service.name": "a"})
    good = encoder.message([])
    messages = [unreadable_message(kind, good, rng) for _ in range(300)]
    if kind is Sent.TRUNCATED:
        messages = [good[:length] for length in range(3, len(good))]
    for message in messages:
        if encoding == "otlp_proto" or kind is Sent.GARBAGE:
            with pytest.raises(DecodeError):
                ExportTraceServiceRequest.FromString(message)
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(message)
    table, dead = decode_spans(messages, encoding)
    assert (table.num_rows, len(dead)) == (0, len(messages))
    assert {letter.reason for letter in dead} == {f"malformed_{encoding.removeprefix('otlp_')}"}
