"""`slacktide alerts`: show alerts as they fire and resolve."""

import contextlib
import time
from typing import Any

import click
import orjson

from infra.commands.kafka_options import kafka_options
from infra.follow import follow
from infra.replay.position import parse_seconds
from jobs.kafka_client import load_kafka_client
from schemas.alerts import AlertState
from schemas.times import epoch_ms
from schemas.topics import ALERTS

EXAMPLES = """
\b
Examples:
  slacktide alerts                       all that topic alerts still holds, then each new one
  slacktide alerts --since 2h            only those published in the last two hours, then each new one
  slacktide alerts --no-follow           what is there now, then exit
  slacktide alerts --json --no-follow | jq -r 'select(.state == "firing") | .fingerprint'
  slacktide alerts --bootstrap-servers kafka.example:9093 --kafka-config kafka.yaml
"""

_URGENT = ("critical", "page")


class Since(click.ParamType[Any]):
    """An instant, given as one or as how long ago; epoch milliseconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read `2h`, `90s` or `2026-01-31T12:00:00Z`."""
        if not isinstance(value, str):
            return value
        try:
            return epoch_ms(value) if "T" in value else int((time.time() - parse_seconds(value)) * 1000)
        except ValueError:
            self.fail(f"{value!r} is neither a duration such as 2h nor a time such as 2026-01-31T12:00:00Z", param, ctx)


@click.command(name="alerts", epilog=EXAMPLES)
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
@click.option("--since", type=Since(), help="Only what was published since: 2h, 90s or 2026-01-31T12:00:00Z.")
@click.option("--follow/--no-follow", "keep_on", default=True, help="Wait for new ones (Ctrl-C ends), or exit.")
@click.option("--json", "as_json", is_flag=True, help="The records as they are, one a line.")
def command(
    *,
    bootstrap_servers: str,
    kafka_config: str | None,
    topic_prefix: str,
    since: int | None,
    keep_on: bool,
    as_json: bool,
) -> None:
    """Show alerts as they fire and resolve, a line each: when, what, the evidence, and since when it drifts.

    Only what is committed is shown. Times are event times in UTC; D and p are the last window's.
    """
    kafka = load_kafka_client(bootstrap_servers, kafka_config)
    shown = json_line if as_json else alert_line
    with contextlib.suppress(KeyboardInterrupt):
        for message in follow(kafka, topic_prefix + ALERTS.name, since_ms=since, to_end=not keep_on):
            try:
                click.echo(shown(message.value()))
            except (ValueError, TypeError, LookupError, AttributeError):
                place = f"{message.topic()}, partition {message.partition()}, offset {message.offset()}"
                click.echo(f"skipped what is not an alert ({place})", err=True)


def json_line(value: bytes) -> str:
    """Return one record as it is. Raises ValueError or TypeError when it is no JSON."""
    orjson.loads(value)
    return value.decode()


def alert_line(value: bytes) -> str:
    """Return one record of topic `alerts` as a line, coloured for a terminal.

    Raises ValueError, TypeError, LookupError or AttributeError when it is no alert.
    """
    alert = orjson.loads(value)
    labels, last = alert["labels"], alert["evidence"][-1]
    firing = AlertState(alert["state"]) is AlertState.FIRING
    name = _printable(f"{labels['alertname']} {alert['monitor']}/{alert['feature']}")
    series = _printable(" ".join(f"{name}={text}" for name, text in alert["series"].items()))
    figures = f"D={_figure(last['statistic'])} p={_figure(last['p_value'])} n={last['n_window']}"
    words = [
        _clock(alert["updatedAt"]),
        _state(firing, labels["severity"]),
        _printable(f"{labels['severity']:<8}"),
        click.style(name, bold=True),
        series,
        figures,
        f"since {_clock(alert['active_at'])}",
    ]
    return "  ".join(word for word in words if word)


def _state(firing: bool, severity: str) -> str:
    if not firing:
        return click.style("RESOLVED", fg="green")
    return click.style("FIRING  ", fg="red" if severity in _URGENT else "yellow", bold=True)


def _printable(text: str) -> str:
    """Return `text` fit for a line of a terminal: labels come from telemetry, and may hold anything.

    >>> _printable("a\\x1b[31m\\nb")
    'a\ufffd[31m\ufffdb'
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _clock(instant: str) -> str:
    """Return an instant without milliseconds. Raises ValueError when it is none."""
    epoch_ms(instant)
    return f"{instant[:10]} {instant[11:19]}Z"


def _figure(number: float | None) -> str:
    """Return three digits of a number.

    >>> _figure(0.18249), _figure(0.0), _figure(None)
    ('0.182', '0', '-')
    """
    return "-" if number is None else f"{number:.3g}"
