"""`slacktide deadman`: an alert that arrives when the monitor itself is blind."""

import logging
import sys
import threading
from functools import partial
from pathlib import Path

import click

from infra.addresses import embedded_jobmanager
from infra.commands.forward import stop_on_signals
from infra.commands.kafka_options import kafka_options
from infra.commands.state_option import state_option
from infra.commands.target_options import SECRET_VARIABLE, target_options
from infra.deadman.dead_man import DeadMan
from infra.deadman.look import Watched, look
from infra.deadman.metrics import dead_man_page
from infra.deadman.thresholds import Thresholds, load_thresholds
from infra.delivery.targets import environment_secret, load_delivery
from infra.errors import StackError
from infra.metrics_gateway import MetricsGateway
from jobs.kafka_client import load_kafka_client

FIRING_STATUS, NOT_TOLD_STATUS = 1, 3
# Looks missed before the metrics are taken away, and the time that a look takes when nobody answers.
STALE_LOOKS = 3.5
EXAMPLES = """
\b
Examples:
  slacktide deadman                                         looks every 15 s, tells Alertmanager on 127.0.0.1:9093
  slacktide deadman --alertmanager http://am.example:9093 --metrics-port 19250
  slacktide deadman --thresholds deadman.yaml --targets delivery.yaml --jobmanager flink.example:8081 \\
      --bootstrap-servers kafka.example:9093 --kafka-config kafka.yaml
  * * * * * slacktide deadman --once                        as a cron job
"""


@click.command(name="deadman", epilog=EXAMPLES)
@kafka_options
@state_option
@click.option("--jobmanager", metavar="HOST:PORT", help="REST address of the cluster. [default: the embedded one]")
@click.option("--topic-prefix", default="", help="Put before the topics' names.")
@click.option(
    "--thresholds",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML of limits. [default: infra/conf/deadman.yaml]",
)
@target_options
@click.option("--once", is_flag=True, help="Look once, tell, and exit: 1 when something fires, 3 when nobody took it.")
def command(
    *,
    bootstrap_servers: str,
    kafka_config: str | None,
    state: Path,
    jobmanager: str | None,
    topic_prefix: str,
    thresholds: Path | None,
    targets: Path | None,
    alertmanagers: tuple[str, ...],
    webhooks: tuple[str, ...],
    metrics_port: int | None,
    once: bool,
) -> None:
    """Watch the monitor itself, and tell Alertmanager or a webhook directly when it is blind.

    Run it on another machine than the rest, or at least by another supervisor. An alert called Watchdog always fires:
    let something outside raise an alarm when it stops coming.
    """
    limits = load_thresholds(thresholds)
    delivery = load_delivery(targets).with_addresses(alertmanagers, webhooks, environment_secret(SECRET_VARIABLE))
    watched = Watched(
        kafka=load_kafka_client(bootstrap_servers, kafka_config),
        jobmanager=jobmanager or embedded_jobmanager(state),
        source_topics=[topic_prefix + topic for topic in limits.source_topics],
        audit_status_file=Path(limits.audit_status_file) if limits.audit_status_file else None,
        max_audit_silence_seconds=limits.max_audit_silence_seconds,
        timeout_seconds=limits.timeout_seconds,
    )
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    memory_file = state / "run" / "delivery" / f"{topic_prefix}deadman-memory.json"
    dead_man = DeadMan(partial(look, watched), limits, delivery, memory_file)
    if once:
        _once(dead_man)
    else:
        _run(dead_man, limits, metrics_port)


def _once(dead_man: DeadMan) -> None:
    is_told = dead_man.once()
    for alarm in dead_man.firing:
        click.echo(f"{alarm.name}: {alarm.detail}")
    if not is_told:
        click.echo("Nobody took it: start what --alertmanager, --webhook or --targets name, or name others.", err=True)
        sys.exit(NOT_TOLD_STATUS)
    sys.exit(FIRING_STATUS if dead_man.firing else 0)


def _run(dead_man: DeadMan, limits: Thresholds, metrics_port: int | None) -> None:
    stopping = threading.Event()
    stop_on_signals(stopping)
    gateway = MetricsGateway(stale_seconds=STALE_LOOKS * max(limits.interval_seconds, 4 * limits.timeout_seconds))
    if metrics_port is not None:
        try:
            gateway.serve(metrics_port)
        except OSError as error:
            raise StackError(f"port {metrics_port} is taken ({error})", "Choose another --metrics-port") from None
    dead_man.run(stopping, after_step=lambda: gateway.put("deadman", dead_man_page(dead_man)))
