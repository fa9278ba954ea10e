"""`slacktide silence`: keep alerts from people for a while, see what is silent, and end it."""

import getpass
import uuid
from dataclasses import replace

import click

from infra.commands.instants import Instant, now_ms
from infra.commands.kafka_options import kafka_options
from infra.errors import StackError
from infra.follow import follow
from infra.send_record import send_record
from jobs.kafka_client import KafkaClient, load_kafka_client
from schemas.matchers import Matcher, MatcherError, parse_matcher
from schemas.record_fields import UnreadableRecordError
from schemas.silences import Silence, decode_silence, require_narrow
from schemas.times import rfc3339
from schemas.topics import SILENCES

EXAMPLES = """
\b
Examples:
  slacktide silence add service_name=chat --for 2h --comment "load test"
  slacktide silence add 'alertname=FeatureDrift' 'model=~"llama.*"' --ends-at 2026-01-31T18:00:00Z
  slacktide silence list                    what is silent now, or will be
  slacktide silence list --all              expired ones too
  slacktide silence expire 3f0c2b8e         the beginning of an id will do
"""


def _user() -> str:
    """Who is at the keyboard; in a container there may be no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "person"


@click.group(name="silence", epilog=EXAMPLES)
def command() -> None:
    """Silence alerts, as Alertmanager does: by matchers of their labels, until a time, with a reason.

    The alert job writes what is silenced to topic alerts as `suppressed`, and fires it when the silence ends first.
    Times are the alerts' event times.
    """


@command.command(
    name="add", epilog='\b\nExample:\n  slacktide silence add service_name=chat --for 2h --comment "load test"'
)
@click.argument("matchers", nargs=-1, required=True)
@click.option("--for", "ends_in", type=Instant(), help="How long from now: 30m, 2h.")
@click.option("--ends-at", type=Instant(), help="Until when: 2026-01-31T18:00:00Z.")
@click.option("--starts-at", type=Instant(), help="From when: a time, or a duration from now. [default: now]")
@click.option("--comment", default="", help="Why; it is audited with every alert that is silenced.")
@click.option("--by", default=_user, show_default="your user name", help="Who silences.")
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
def add(
    *,
    matchers: tuple[str, ...],
    ends_in: int | None,
    ends_at: int | None,
    starts_at: int | None,
    comment: str,
    by: str,
    bootstrap_servers: str,
    kafka_config: str | None,
    topic_prefix: str,
) -> None:
    """Silence the alerts that all MATCHERS match: name=value, name!=value, name=~regex, name!~regex.

    Prints the silence's id. A regular expression must match the whole value.
    """
    if (ends_in is None) == (ends_at is None):
        raise click.UsageError("Give the end, either as --for 2h or as --ends-at TIME.")
    wanted = _matchers(matchers)
    now = now_ms()
    # Backdating would say that alerts were silent which people have seen.
    silence = Silence(
        silence_id=str(uuid.uuid4()),
        matchers=wanted,
        starts_ms=max(now, starts_at or now),
        ends_ms=ends_in if ends_at is None else ends_at,  # type: ignore[arg-type]  # one of the two is there
        updated_ms=now,
        created_by=by,
        comment=comment,
    )
    if silence.ends_ms <= silence.starts_ms:
        raise click.UsageError("It would end before it starts.")
    _write(load_kafka_client(bootstrap_servers, kafka_config), topic_prefix, silence)
    click.echo(silence.silence_id)
    # Incidents live in event time (docs/incidents.md): what lies behind in it is not silenced yet.
    told = "It counts in event time: it holds once requests of its period come, not for alerts of an older replay."
    click.echo(told, err=True)


@command.command(name="list", epilog="\b\nExample:\n  slacktide silence list --all")
@click.option("--all", "show_all", is_flag=True, help="Expired ones too.")
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
def list_(*, show_all: bool, bootstrap_servers: str, kafka_config: str | None, topic_prefix: str) -> None:
    """Show silences, the one that ends first at the top."""
    found = _read(load_kafka_client(bootstrap_servers, kafka_config), topic_prefix)
    now = now_ms()
    shown = [silence for silence in found.values() if show_all or silence.ends_ms > now]
    for silence in sorted(shown, key=lambda each: (each.ends_ms, each.silence_id)):
        click.echo(_line(silence, now))


@command.command(name="expire", epilog="\b\nExample:\n  slacktide silence expire 3f0c2b8e")
@click.argument("silence_id")
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
def expire(*, silence_id: str, bootstrap_servers: str, kafka_config: str | None, topic_prefix: str) -> None:
    """End the silence SILENCE_ID now; the beginning of the id will do."""
    if not silence_id.strip():
        raise click.UsageError("SILENCE_ID is empty, which is the beginning of every id; `silence list` shows the ids.")
    kafka = load_kafka_client(bootstrap_servers, kafka_config)
    meant = [silence for name, silence in _read(kafka, topic_prefix).items() if name.startswith(silence_id)]
    if len(meant) != 1:
        problem = f"{len(meant)} silences have an id that begins with {silence_id}"
        raise StackError(problem, "`slacktide silence list --all` shows the ids")
    (silence,) = meant
    now = now_ms()
    if silence.ends_ms <= now:
        click.echo(f"{silence.silence_id} had ended at {rfc3339(silence.ends_ms)}")
        return
    ended = replace(silence, starts_ms=min(silence.starts_ms, now), ends_ms=now, updated_ms=now)
    _write(kafka, topic_prefix, ended)
    click.echo(f"{silence.silence_id} ended")


def _matchers(texts: tuple[str, ...]) -> tuple[Matcher, ...]:
    try:
        found = tuple(parse_matcher(text) for text in texts)
        require_narrow(found)
    except MatcherError as error:
        raise click.BadParameter(str(error), param_hint="MATCHERS") from None
    return found


def _read(kafka: KafkaClient, prefix: str) -> dict[str, Silence]:
    """The newest record of each silence; what is none is left out here, and is the alert job's dead letter."""
    found: dict[str, Silence] = {}
    for message in follow(kafka, prefix + SILENCES.name, to_end=True):
        try:
            silence = decode_silence(message.value())
        except UnreadableRecordError:
            continue
        known = found.get(silence.silence_id)
        if known is None or silence.updated_ms >= known.updated_ms:
            found[silence.silence_id] = silence
    return found


def _write(kafka: KafkaClient, prefix: str, silence: Silence) -> None:
    send_record(kafka, prefix + SILENCES.name, silence.silence_id, silence.to_json())


def _line(silence: Silence, now: int) -> str:
    state = "expired" if silence.ends_ms <= now else "pending" if silence.starts_ms > now else "active"
    matchers = " ".join(str(matcher) for matcher in silence.matchers)
    span = f"{rfc3339(silence.starts_ms)} to {rfc3339(silence.ends_ms)}"
    words = [silence.silence_id, f"{state:<7}", span, matchers, f"by {silence.created_by}", silence.comment]
    line = "  ".join(word for word in words if word)
    return "".join(character if character.isprintable() else "\ufffd" for character in line)
