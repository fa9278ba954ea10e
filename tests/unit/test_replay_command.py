"""`slacktide replay` on the command line: what it reads, says and refuses, without a broker."""

from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from infra.cli import main
from infra.commands.replay import command, plan_of
from infra.replay import Drift, FaultShares, Position, ReplayPlan, Sent
from infra.replay.message import Message
from infra.replay.report import DriftReport, ReplayReport
from infra.replay.summary import report_lines


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_a_dry_run_says_what_would_be_sent() -> None:
    result = run("--dry-run", "--drift", "prompt_entropy@50%:shift,2", "--latency", "3@40%+5m", "--malformed", "0.5%")
    assert result.exit_code == 0
    for words in (
        "19,366",
        "seed 0",
        "otlp_proto",
        "60 times",
        "prompt_entropy +2 from",
        "x 3 from",
        "0.50% malformed",
    ):
        assert words in result.output


@pytest.mark.parametrize(
    ("arguments", "because"),
    [
        (("--drift", "model@50%"), "can't drift"),
        (("--late", "2"), "no share"),
        (("--duration", "1 week"), "no duration"),
        (("--start", "2026-01-31T12:00:00"), "no time zone"),
        (("--limit", "0"), "not in the range"),
        (("--encoding", "jaeger"), "not one of"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(arguments: tuple[str, ...], because: str) -> None:
    result = run("--dry-run", *arguments)
    assert result.exit_code == 2
    assert because in result.output


def test_no_broker_is_said_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", "--bootstrap-servers", "127.0.0.1:1"])
    assert ended.value.code == 2
    assert "no broker answers at 127.0.0.1:1" in capsys.readouterr().err


def test_options_become_the_plan() -> None:
    with command.make_context(
        "replay",
        [
            *("--rate", "20", "--speed-up", "max", "--duration", "1m30s", "--late", "1%", "--late-by", "20m"),
            *("--drift", "input_tokens@30s", "--start", "2026-01-31T12:00:00Z", "--topic-prefix", "a.", "--batch", "8"),
            *("--partition-traces-by-id", "--flush", "60"),
        ],
    ) as context:
        options = dict(context.params)
    for other in ("bootstrap_servers", "kafka_config", "report_file", "dry_run"):
        options.pop(other)
    assert plan_of(options.pop("topic_prefix"), options) == ReplayPlan(
        rate_per_second=20.0,
        speed_up=float("inf"),
        duration_seconds=90.0,
        shares=FaultShares(late=0.01),
        late_by_seconds=1200.0,
        drifts=(Drift("input_tokens", Position(seconds=30.0)),),
        start=1_769_860_800_000,
        topic="a.otlp_spans",
        batch_spans=8,
        keyed=True,
        flush_seconds=60.0,
    )


def test_a_report_with_a_failure_is_not_complete() -> None:
    report = ReplayReport("otlp_spans", 2, "otlp_proto", 0, 1_700_000_000_000, requests=3)
    report.count(Message(b"", None, 0, 0, 0, 5_000_000_000, Sent.CLEAN, 3, 0))
    report.acknowledged = 1
    assert report.complete
    report.drifts.append(DriftReport("prompt_entropy", "scale", 1.5, 1_700_000_001_000))
    report.acknowledged, report.delivery_errors["MSG_SIZE_TOO_LARGE"] = 0, 1
    assert not report.complete
    said = "\n".join(report_lines(report))
    for words in ("1 sent, 0 acknowledged, 1 failed", "MSG_SIZE_TOO_LARGE", "never sent", "2023-11-14T22:13:25.000Z"):
        assert words in said
    assert orjson.loads(report.to_json())["expected_books"]["requests"] == 3


def test_help_has_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "slacktide replay --rate 2000" in result.output


def test_doc_names_every_option() -> None:
    """docs/replay.md is the one description; an option it doesn't name would be unknown to its readers."""
    text = (Path(__file__).parents[2] / "docs" / "replay.md").read_text()
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if f"`{option}" not in text} == set()
