"""The trace file: what is read, what is refused, and how arrivals are made of it."""

from pathlib import Path

import numpy as np
import pytest

from infra.replay.arrivals import BLOCK_ROWS, arrival_source
from infra.replay.position import parse_position, parse_seconds, parse_share
from infra.replay.trace import Trace, read_trace
from jobs.kafka_client import ConfigurationError

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_the_real_trace_is_read_whole() -> None:
    trace = read_trace()
    assert len(trace) == 19_366
    assert (trace.input_tokens[0], trace.output_tokens[0]) == (374, 44)
    assert (trace.input_tokens[-1], trace.output_tokens[-1]) == (197, 183)
    # 18:15:46.6805900 to 19:14:08.4025270
    assert trace.duration_ns == 3_501_721_937_000


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46,1\n", "TIMESTAMP, ContextTokens, GeneratedTokens"),
        (HEADER + "yesterday,1,2\n", "TIMESTAMP, ContextTokens, GeneratedTokens"),
        (HEADER, "(rows)"),
        (HEADER + "2023-11-16 18:15:46,,2\n", "ContextTokens"),
        (HEADER + "2023-11-16 18:15:46,1,-2\n", "GeneratedTokens"),
        (HEADER + "2023-11-16 18:15:46,1,2\n2023-11-16 18:15:45,1,2\n", "TIMESTAMP"),
    ],
)
def test_a_bad_trace_is_refused_with_file_and_column(tmp_path: Path, text: str, field: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        read_trace(file)
    assert (refused.value.file, refused.value.field) == (str(file), field)


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        read_trace(tmp_path / "none.csv")


def test_a_part_begins_at_zero_and_may_be_empty() -> None:
    trace = read_trace()
    part = trace.part(1_000_000_000_000, 2_000_000_000_000)
    inside = (trace.arrival_ns >= 1_000_000_000_000) & (trace.arrival_ns < 2_000_000_000_000)
    assert len(part) == inside.sum()
    assert part.arrival_ns[0] == 0
    assert np.array_equal(np.diff(part.arrival_ns), np.diff(trace.arrival_ns[inside]))
    assert len(trace.part(5, 5)) == 0


def test_arrivals_repeat_the_trace_in_blocks_and_never_fall() -> None:
    trace = read_trace()
    blocks = list(arrival_source(trace, limit=50_000).blocks())
    assert max(map(len, blocks)) == BLOCK_ROWS
    arrival_ns = np.concatenate([block.arrival_ns for block in blocks])
    tokens = np.concatenate([block.input_tokens for block in blocks])
    assert len(arrival_ns) == 50_000
    assert (np.diff(arrival_ns) >= 0).all()
    assert np.array_equal(tokens[: len(trace)], tokens[len(trace) : 2 * len(trace)])


def test_duration_limits_what_arrives() -> None:
    trace = Trace(np.array([0, 10, 20]), np.array([1, 1, 1]), np.array([1, 1, 1]))  # a lap is 20 and a mean gap of 10
    for duration_ns, expected in ((1, 1), (20, 2), (21, 3), (30, 3), (31, 4), (61, 7)):
        source = arrival_source(trace, duration_ns=duration_ns)
        assert (source.count, source.last_ns < duration_ns) == (expected, True)
    assert arrival_source(trace, limit=2, duration_ns=61).count == 2


def test_a_steady_rate_sets_the_arrivals_aside() -> None:
    source = arrival_source(read_trace(), duration_ns=2_000_000_000, rate_per_second=2_000)
    arrival_ns = np.concatenate([block.arrival_ns for block in source.blocks()])
    assert np.array_equal(arrival_ns, np.arange(4_000) * 500_000)


@pytest.mark.parametrize("text", ["", "5x", "m5", "-1s", "1h 2m", "inf", "nan"])
def test_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        parse_seconds(text)


@pytest.mark.parametrize("text", ["", "x%", "101%", "-1%", "1.5", "nan"])
def test_no_share(text: str) -> None:
    with pytest.raises(ValueError, match="no share"):
        parse_share(text)


def test_an_instant_needs_a_zone_and_a_start() -> None:
    with pytest.raises(ValueError, match="time zone"):
        parse_position("2026-01-31T12:00:00")
    instant = parse_position("2026-01-31T12:00:01Z")
    assert instant.offset_ns(0, start_ms=1_769_860_800_000) == 1_000_000_000
    with pytest.raises(ValueError, match="start is known"):
        instant.offset_ns(0)
