"""`slacktide alerts`: show alerts as they fire and resolve, and say what they were worth."""

import contextlib
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click
import orjson

from infra.alert_line import alert_line
from infra.commands.kafka_options import kafka_options
from infra.follow import follow
from infra.labels import PERSON, Word, alert_label, find_alert, send_label
from infra.replay.position import parse_seconds
from jobs.kafka_client import load_kafka_client
from schemas.alerts import AlertState
from schemas.feedback import MAX_NOTE_CHARACTERS
from schemas.times import epoch_ms, rfc3339
from schemas.topics import ALERTS

EXAMPLES = """
\b
Examples:
  slacktide alerts                       all that topic alerts still holds, then each new one
  slacktide alerts --since 2h            only those published in the last two hours, then each new one
  slacktide alerts --no-follow           what is there now, then exit
  slacktide alerts --state firing --state suppressed
  slacktide alerts --json --no-follow | jq -r 'select(.state == "firing") | .fingerprint'
  slacktide alerts ack 8838bd88645e3332
  slacktide alerts label 8838bd88645e3332 false-alarm --note "load test"
  slacktide alerts --bootstrap-servers kafka.example:9093 --kafka-config kafka.yaml
"""

_FINGERPRINT = re.compile(r"[0-9a-f]{16}")
MAX_BY_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where Kafka is, as given before a subcommand."""

    bootstrap_servers: str
    kafka_config: str | None
    topic_prefix: str


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


class Fingerprint(click.ParamType[str]):
    """An alert's fingerprint: 16 hex digits."""

    name = "fingerprint"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read it, in either case."""
        found = str(value).lower()
        if not _FINGERPRINT.fullmatch(found):
            self.fail(f"{value!r} is no fingerprint; `slacktide alerts` shows one at the end of each line", param, ctx)
        return found


@click.group(name="alerts", epilog=EXAMPLES, invoke_without_command=True)
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topics' names.")
@click.option("--since", type=Since(), help="Only what was published since: 2h, 90s or 2026-01-31T12:00:00Z.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice([str(s) for s in AlertState]), help="Only this; repeatable."
)
@click.option("--follow/--no-follow", "keep_on", default=True, help="Wait for new ones (Ctrl-C ends), or exit.")
@click.option("--json", "as_json", is_flag=True, help="The records as they are, one a line.")
@click.pass_context
def command(
    context: click.Context,
    *,
    bootstrap_servers: str,
    kafka_config: str | None,
    topic_prefix: str,
    since: int | None,
    states: tuple[str, ...],
    keep_on: bool,
    as_json: bool,
) -> None:
    """Show alerts as they fire and resolve, a line each: when, what, the evidence, and since when.

    Only what is committed is shown. Times are event times in UTC; the figures are the last window's. At the end of a
    line stands the alert's fingerprint, for `ack` and `label`.
    """
    if context.invoked_subcommand is not None:
        context.obj = Place(bootstrap_servers, kafka_config, topic_prefix)
        return
    kafka = load_kafka_client(bootstrap_servers, kafka_config)
    with contextlib.suppress(KeyboardInterrupt):
        for message in follow(kafka, topic_prefix + ALERTS.name, since_ms=since, to_end=not keep_on):
            try:
                line = shown_line(message.value(), states, as_json=as_json)
            except (ValueError, TypeError, LookupError, AttributeError):
                place = f"{message.topic()}, partition {message.partition()}, offset {message.offset()}"
                click.echo(f"skipped what is not an alert ({place})", err=True)
            else:
                if line is not None:
                    click.echo(line)


def shown_line(value: bytes | None, states: Collection[str], *, as_json: bool) -> str | None:
    """Return what is shown of one record; None where its state was not asked for (none is all).

    Raises ValueError, TypeError, LookupError or AttributeError when it is no alert.
    """
    line = json_line(value) if as_json else alert_line(value)
    return line if not states or orjson.loads(value or b"")["state"] in states else None


def json_line(value: bytes | None) -> str:
    """Return one record as it is. Raises ValueError or TypeError when it is no JSON."""
    orjson.loads(value or b"")
    return (value or b"").decode()


def _label_options(subcommand: Callable[..., Any]) -> Callable[..., Any]:
    """Add what `ack` and `label` share; where Kafka is may stand here or before the subcommand."""
    note = f"At most {MAX_NOTE_CHARACTERS} characters; stays on Kafka for 7 days, and out of Delta."
    options: list[Callable[..., Any]] = [
        click.argument("fingerprint", type=Fingerprint()),
        click.option("--starts-at", type=Since(), help="Which firing: its startsAt. [default: the newest]"),
        click.option(
            "--by", default=PERSON, show_default=True, help="Who says so. It is audited: a role rather than a name."
        ),
        click.option("--note", help=note),
        click.option("--bootstrap-servers", help="Kafka HOST:PORT[,HOST:PORT...]."),
        click.option("--kafka-config", help="YAML of Kafka client settings (TLS, SASL)."),
        click.option("--topic-prefix", help="Put before the topics' names."),
        click.pass_obj,
    ]
    for option in reversed(options):
        subcommand = option(subcommand)
    return subcommand


@command.command(name="ack", epilog="\b\nExamples:\n  slacktide alerts ack 8838bd88645e3332 --by ml-oncall")
@_label_options
def acknowledge(place: Place, **options: Any) -> None:
    """Say that somebody is on the alert FINGERPRINT."""
    _say(place, Word.ACKNOWLEDGED, **options)


@command.command(name="label", epilog="\b\nExamples:\n  slacktide alerts label 8838bd88645e3332 false-alarm")
@_label_options
@click.argument("word", type=click.Choice([Word.FALSE_ALARM.value, Word.TRUE_ALARM.value]))
def label(place: Place, *, word: str, **options: Any) -> None:
    """Say whether the alert FINGERPRINT was a false or a true alarm. Said again, the last word holds."""
    _say(place, Word(word), **options)


def _say(
    place: Place,
    word: Word,
    *,
    fingerprint: str,
    starts_at: int | None,
    by: str,
    note: str | None,
    bootstrap_servers: str | None,
    kafka_config: str | None,
    topic_prefix: str | None,
) -> None:
    by, note = by.strip(), (note or "").strip() or None
    if not by or len(by) > MAX_BY_CHARACTERS or not by.isprintable():
        raise click.BadParameter(f"give 1 to {MAX_BY_CHARACTERS} printable characters", param_hint="--by")
    if note is not None and len(note) > MAX_NOTE_CHARACTERS:
        problem = f"it has {len(note)} characters, {MAX_NOTE_CHARACTERS} are allowed"
        raise click.BadParameter(problem, param_hint="--note")
    kafka = load_kafka_client(bootstrap_servers or place.bootstrap_servers, kafka_config or place.kafka_config)
    prefix = place.topic_prefix if topic_prefix is None else topic_prefix
    alert = find_alert(kafka, prefix + ALERTS.name, fingerprint, starts_at)
    send_label(kafka, alert_label(alert, word, at_ms=time.time_ns() // 1_000_000, by=by, note=note), prefix)
    what = f"{alert.alertname} {alert.monitor}/{alert.feature}, firing from {rfc3339(alert.starts_at_ms)}"
    click.echo(f"{word}: {what}")
