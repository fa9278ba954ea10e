"""`slacktide replay`: send a recorded trace as OTLP messages to Kafka."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from infra.commands.kafka_options import kafka_options
from infra.replay.faults import FaultShares, parse_drift, parse_slowdown
from infra.replay.labels import parse_arms, parse_version
from infra.replay.plan import BEGIN, END, NOW, ReplayPlan
from infra.replay.position import parse_position, parse_seconds, parse_share
from infra.replay.progress import shown_progress
from infra.replay.resolve import resolve
from infra.replay.sender import replay
from infra.replay.service_model import DEFAULT_MODEL
from infra.replay.summary import plan_lines, report_lines
from infra.replay.trace import AZURE_TRACE
from jobs.kafka_client import load_kafka_client
from schemas.times import epoch_ms
from schemas.topics import OTLP_METRICS, OTLP_SPANS

NOT_ALL_SENT, INTERRUPTED = 1, 130


class Parsed(click.ParamType[Any]):
    """An option read by a function that raises ValueError with a sentence for the user."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a text; what is already read stays."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _start(text: str) -> int | str:
    return NOW if text == NOW else epoch_ms(text)


def _speed_up(text: str) -> float:
    return float("inf") if text == "max" else float(text)


SHARE = Parsed("share", parse_share)
POSITION = Parsed("time", parse_position)
DURATION = Parsed("duration", parse_seconds)
EXISTING = click.Path(dir_okay=False, path_type=Path)

EXAMPLES = """
\b
Examples:
  slacktide replay                                   the whole trace, 60 times faster
  slacktide replay --drift time_per_output_token_seconds@50% --malformed 1% --duplicates 1% --late 1%
  slacktide replay --start now --speed-up 1          live: event time is now
  slacktide replay --rate 2000 --duration 5m         2,000 requests/s, live
  slacktide replay --rate 2000 --limit 1000000 --speed-up max --encoding otlp_json
  slacktide replay --arms control=50%,treatment=50% --model-version v1 --model-version v2@50%
  slacktide replay --text --limit 10000              prompts and responses, for `submit ingest -- --text masked`
  slacktide replay --metrics                         vLLM's metrics beside the spans, for `submit ingest-metrics`
  slacktide replay --latency 3@40%+5m --dry-run      say what would be sent
"""


@click.command(name="replay", epilog=EXAMPLES, context_settings={"show_default": True})
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
@click.option("--topic", default=OTLP_SPANS.name, help="Where to send.")
@click.option(
    "--trace", type=EXISTING, default=AZURE_TRACE, show_default="the Azure LLM trace 2023", help="CSV to replay."
)
@click.option(
    "--service-model", type=EXISTING, default=DEFAULT_MODEL, show_default="ours", help="YAML of its constants."
)
@click.option("--seed", type=click.IntRange(0), default=0, help="Of all that is drawn.")
@click.option(
    "--start",
    type=Parsed("instant", _start),
    help="Event time of the first arrival: 'now' or "
    "2026-01-31T12:00:00Z. [default: such that the last request ends now]",
)
@click.option(
    "--speed-up",
    type=Parsed("factor", _speed_up),
    help="How much faster than its own clock it is sent; 'max' "
    "is as fast as Kafka takes it. [default: 60; 1 with --rate or --start now]",
)
@click.option("--rate", type=float, help="Requests a second, instead of the trace's own arrivals.")
@click.option("--limit", type=click.IntRange(1), help="End after N requests; the trace is repeated as need be.")
@click.option("--duration", type=DURATION, help="End after so much event time, as 90s, 30m or 1h30m.")
@click.option("--from", "part_from", type=POSITION, default=BEGIN, show_default="0%", help="Begin here in the trace.")
@click.option("--until", "part_until", type=POSITION, default=END, show_default="100%", help="End here in the trace.")
@click.option("--encoding", type=click.Choice(["otlp_proto", "otlp_json"]), default="otlp_proto", help="Of messages.")
@click.option("--children", is_flag=True, help="Send prefill and decode spans below each request.")
@click.option("--partition-traces-by-id", "keyed", is_flag=True, help="One trace a message, keyed by its id.")
@click.option("--batch", type=click.IntRange(1), default=16, help="Spans a message at most.")
@click.option("--batch-seconds", type=DURATION, default=1.0, help="Event time in a message at most.")
@click.option(
    "--arms",
    type=Parsed("arms", parse_arms),
    multiple=True,
    help="NAME=SHARE,...[@TIME]: users are in these arms, as control=95%,treatment=5%. Another one, with a later TIME, "
    "is the next epoch. Repeatable.",
)
@click.option("--users", type=click.IntRange(1), default=10_000, help="How many users ask, with --arms.")
@click.option(
    "--model-version",
    "versions",
    type=Parsed("version", parse_version),
    multiple=True,
    help="VERSION[@TIME]: requests have this model version, as v2@50%. Repeatable.",
)
@click.option("--text", is_flag=True, help="Send made-up prompts and responses, some with made-up personal data.")
@click.option("--personal", "personal_share", type=SHARE, default=0.2, help="Share of prompts with some, with --text.")
@click.option("--metrics", is_flag=True, help="Send what vLLM's metrics show of it, too, to topic otlp_metrics.")
@click.option("--scrape", type=DURATION, default=15.0, help="Event time between two scrapes, with --metrics.")
@click.option(
    "--drift",
    "drifts",
    type=Parsed("drift", parse_drift),
    multiple=True,
    help="FEATURE@TIME[:scale|shift,AMOUNT], as input_tokens@50%:shift,200. Default: scale,1.5. Repeatable.",
)
@click.option(
    "--latency",
    "slowdowns",
    type=Parsed("episode", parse_slowdown),
    multiple=True,
    help="FACTOR@TIME[+DURATION]: requests take FACTOR times as long. Repeatable.",
)
@click.option("--duplicates", type=SHARE, default=0.0, help="Share sent twice: 1% or 0.01.")
@click.option("--malformed", type=SHARE, default=0.0, help="Share that can't be used, of four kinds.")
@click.option("--late", type=SHARE, default=0.0, help="Share sent --late-by after its end.")
@click.option("--late-by", type=DURATION, default=900.0, help="More than ingest's allowed lateness (600 s).")
@click.option("--skew", type=SHARE, default=0.0, help="Share with a clock a day ahead.")
@click.option("--flush", type=DURATION, help="In the end send requests so far ahead that the last windows close.")
@click.option("--report", "report_file", type=EXISTING, help="Write the account as JSON.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, and send nothing.")
def command(
    bootstrap_servers: str,
    kafka_config: str | None,
    topic_prefix: str,
    report_file: Path | None,
    dry_run: bool,
    **options: Any,
) -> None:
    """Send a recorded trace as OTLP messages to Kafka.

    Requests become vLLM's `llm_request` spans, in messages as the OpenTelemetry Collector's Kafka exporter writes them.
    What the trace lacks comes from a seeded service-time model. Ends with an account of all that was sent, which
    ingest's books must match; exits with 1 when a message was not acknowledged.
    """
    plan = plan_of(topic_prefix, options)
    if dry_run:
        click.echo("\n".join(plan_lines(resolve(plan))))
        return
    with shown_progress(Console(stderr=True)) as progress:
        report = replay(plan, load_kafka_client(bootstrap_servers, kafka_config), progress)
    click.echo("\n".join(report_lines(report)))
    if report_file is not None:
        report_file.write_bytes(report.to_json())
    if report.interrupted:
        raise SystemExit(INTERRUPTED)
    if not report.complete:
        raise SystemExit(NOT_ALL_SENT)


def plan_of(topic_prefix: str, options: dict[str, Any]) -> ReplayPlan:
    """Build the plan from the command's options."""
    shares = FaultShares(**{name: options.pop(name) for name in ("duplicates", "malformed", "late", "skew")})
    renamed = {
        "rate": "rate_per_second",
        "duration": "duration_seconds",
        "batch": "batch_spans",
        "late_by": "late_by_seconds",
        "flush": "flush_seconds",
        "scrape": "scrape_seconds",
    }
    options["topic"] = topic_prefix + options["topic"]
    if options["metrics"]:
        options["metrics_topic"] = topic_prefix + OTLP_METRICS.name
    return ReplayPlan(shares=shares, **{renamed.get(name, name): value for name, value in options.items()})
