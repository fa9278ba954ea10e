"""Monitors over the past without an engine, held against the oracle that knows nothing of our sketches."""

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from infra.cli import slacktide
from infra.commands.monitors import backtest_of
from jobs.monitors import load_monitors
from tests.drift_files import monitor, write_files
from tests.oracle import TopicRecord, expected

START_MS = 1_750_000_020_000
QUIET_SECONDS, DRIFTED_SECONDS = 300, 300
MONITORS = [
    monitor(name="fast", features=["input_tokens", "attributes.temperature"], min_samples=5, min_effect=0.1),
    monitor(name="all", group_by=[], features=["input_tokens"], window_seconds=40, slide_seconds=40, slice_shards=3),
]


def requests() -> list[bytes]:
    """A request a second and series, out of order within 10 s; after five minutes the tokens are ten times as many."""
    made = []
    for second in range(QUIET_SECONDS + DRIFTED_SECONDS):
        for name, model in (("chat", "small"), ("chat", None), ("search", "large")):
            tokens = (second * 7) % 59 + 1
            body = {
                "event_time_ms": START_MS + second * 1000 + (second * 7919) % 10_000,
                "service_name": name,
                "input_tokens": tokens * 10 if second >= QUIET_SECONDS and name == "chat" else tokens,
                "attributes": {"temperature": second % 11 / 10} if second % 5 else None,
            }
            made.append(orjson.dumps({**body, "model": model} if model else body))
    return made


def test_the_verdicts_are_the_oracles(tmp_path: Path) -> None:
    monitors = load_monitors(write_files(tmp_path, MONITORS, watermark_bound_seconds=3600))
    history = backtest_of(monitors)
    history.take([*requests(), b"garbage", None, b"{}"])
    assert (history.n_requests, history.n_unusable) == (1803, 3)
    records = [TopicRecord(0, number, START_MS + 10**7, value) for number, value in enumerate(requests())]
    wanted = expected(records, monitors, at_end=True).verdicts
    found = {verdict.verdict_id: verdict for verdict in history.verdicts()}
    assert found.keys() == wanted.keys()
    for verdict_id, verdict in found.items():
        want = wanted[verdict_id]
        assert (verdict.statistic, verdict.n_window, verdict.drifted) == (want.statistic, want.n_window, want.drifted)
        if want.p_value is not None:
            assert verdict.p_value == pytest.approx(want.p_value, rel=1e-12)


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(slacktide, ["monitors", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_backtest_tells_what_would_have_alarmed_and_when(tmp_path: Path) -> None:
    file = write_files(tmp_path, MONITORS)
    past = tmp_path / "past.parquet"
    rows = [orjson.loads(request) for request in requests()]
    schema = pa.schema(
        [
            ("event_time_ms", pa.int64()),
            ("service_name", pa.string()),
            ("model", pa.string()),
            ("input_tokens", pa.int64()),
            ("attributes", pa.map_(pa.string(), pa.float64())),
        ]
    )
    columns = {
        name: [list(row[name].items()) if isinstance(row.get(name), dict) else row.get(name) for row in rows]
        for name in schema.names
    }
    pq.write_table(pa.table(columns, schema=schema), past)
    written = tmp_path / "verdicts.jsonl"
    output = invoke("backtest", str(file), "--from-parquet", str(past), "--write", str(written))
    assert "1,800 requests, 0 of them could not be used" in output
    lines = [line for line in output.splitlines() if "firing" in line]
    assert {part for line in lines for part in ("chat", "search") if f"service_name={part}" in line} == {"chat"}
    assert all("input_tokens" in line for line in lines)
    verdicts = [orjson.loads(line) for line in written.read_bytes().splitlines()]
    assert len({verdict["verdict_id"] for verdict in verdicts}) == len(verdicts) > 100


def test_check_and_explain(tmp_path: Path) -> None:
    signal = {"signal": "baseline_drop", "feature": "p50(factuality)"}
    limit = {"test": "limit", "field": "factuality", "figure": "quantile", "below": 0.5}
    file = write_files(tmp_path, [monitor(findings=["null_rate"], tests=[limit], signals=[signal])])
    assert "chat: 3 tests on windows of 60 s every 20 s, by service_name, model; 1 signal" in invoke("check", str(file))
    told = invoke("explain", str(file), "--samples", "300", "--series", "50")
    for name in ("input_tokens", "null_rate(input_tokens)", "p50(factuality)", "baseline_drop"):
        assert name in told
    assert "MB for 50 series" in told


def test_backtest_needs_one_source(tmp_path: Path) -> None:
    file = write_files(tmp_path, MONITORS)
    result = CliRunner().invoke(slacktide, ["monitors", "backtest", str(file)])
    assert "needs exactly one source" in str(result.exception)
