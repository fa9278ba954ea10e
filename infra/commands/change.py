"""`slacktide change`: tell the alert job of a change by hand, where no pipeline does."""

import uuid

import click

from infra.commands.instants import Instant, now_ms, pairs
from infra.commands.kafka_options import kafka_options
from infra.send_record import send_record
from jobs.kafka_client import load_kafka_client
from schemas.changes import Change, ChangeKind
from schemas.times import rfc3339
from schemas.topics import CHANGES

EXAMPLES = """
\b
Examples:
  slacktide change add deploy chat --summary "chat 1.8" --label version=1.8
  slacktide change add training_data_update chat --lasting 30m
  slacktide change add high_concurrency '*' --lasting 10m --summary "sale"
"""


@click.group(name="change", epilog=EXAMPLES)
def command() -> None:
    """Write changes to topic changes, as CloudEvents: what they explain is kept back or held to a higher bar."""


@command.command(
    name="add",
    epilog='\b\nExample:\n  slacktide change add deploy chat --summary "chat 1.8" --label version=1.8 --lasting 10m',
)
@click.argument("kind", type=click.Choice([str(kind) for kind in ChangeKind]))
@click.argument("service")
@click.option("--summary", default="", help="A sentence for people; it stands in the alerts that it explains.")
@click.option("--label", "labels", multiple=True, help="name=value of the series that it concerns; repeatable.")
@click.option("--at", type=Instant(), help="When it happened. [default: now]")
@click.option("--lasting", type=Instant(), help="How long from now it goes on: 10m. [default: it is over at once]")
@click.option("--id", "event_id", help="The event's id: the same one again changes nothing. [default: a new one]")
@click.option("--source", default="urn:slacktide:cli", show_default=True, help="Who tells it.")
@kafka_options
@click.option("--topic-prefix", default="", help="Put before the topic's name.")
def add(
    *,
    kind: str,
    service: str,
    summary: str,
    labels: tuple[str, ...],
    at: int | None,
    lasting: int | None,
    event_id: str | None,
    source: str,
    bootstrap_servers: str,
    kafka_config: str | None,
    topic_prefix: str,
) -> None:
    """Tell of a change of KIND to SERVICE (`*`: every service). Prints its id.

    How long it explains alerts is the policy's to say (jobs/alert_rules.yaml), whatever end it gives itself.
    """
    if not service.strip():
        raise click.BadParameter("give a name, or * for every service", param_hint="SERVICE")
    change = Change(
        source=source,
        event_id=event_id or str(uuid.uuid4()),
        kind=ChangeKind(kind),
        service=service,
        time_ms=now_ms() if at is None else at,
        ends_ms=lasting,
        summary=summary,
        labels=pairs(labels, "--label"),
    )
    if change.ends_ms is not None and change.ends_ms < change.time_ms:
        raise click.UsageError(f"It would end at {rfc3339(change.ends_ms)}, before it happened.")
    kafka = load_kafka_client(bootstrap_servers, kafka_config)
    send_record(kafka, topic_prefix + CHANGES.name, change.key, change.to_json())
    click.echo(change.change_id)
