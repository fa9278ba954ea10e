"""`slacktide forward`: deliver alerts to Alertmanager and webhooks."""

import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click

from infra.commands.kafka_options import kafka_options
from infra.commands.state_option import state_option
from infra.commands.target_options import SECRET_VARIABLE, target_options
from infra.delivery.alert_topic import AlertTopic, DeadLetters
from infra.delivery.forwarder import Forwarder
from infra.delivery.metrics import forward_page
from infra.delivery.targets import environment_secret, load_delivery
from infra.errors import StackError
from infra.metrics_gateway import MetricsGateway
from jobs.kafka_client import load_kafka_client

EXAMPLES = """
\b
Examples:
  slacktide forward                                           to Alertmanager on 127.0.0.1:9093
  slacktide forward --alertmanager http://am.example:9093
  SLACKTIDE_WEBHOOK_SECRET=... slacktide forward --webhook https://hooks.example/slacktide
  slacktide forward --targets delivery.yaml --metrics-port 19251
"""


@click.command(name="forward", epilog=EXAMPLES)
@kafka_options
@state_option
@click.option("--topic-prefix", default="", help="Put before the topics' names.")
@target_options
def command(
    *,
    bootstrap_servers: str,
    kafka_config: str | None,
    state: Path,
    topic_prefix: str,
    targets: Path | None,
    alertmanagers: tuple[str, ...],
    webhooks: tuple[str, ...],
    metrics_port: int | None,
) -> None:
    """Deliver every transition of topic `alerts` to each target, post firing alerts again, until Ctrl-C or SIGTERM.

    A target that is away loses nothing: what it has not taken stays uncommitted on Kafka. What it refuses for good goes
    to `dead_letters`. Run one forwarder a target.
    """
    settings = load_delivery(targets).with_addresses(alertmanagers, webhooks, environment_secret(SECRET_VARIABLE))
    kafka = load_kafka_client(bootstrap_servers, kafka_config)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    stopping = threading.Event()
    stop_on_signals(stopping)
    forwarders = [
        Forwarder(
            target=target,
            policy=settings.policy,
            topic=AlertTopic(kafka, topic_prefix + target.of, target.name),
            dead_letters=DeadLetters(kafka, topic_prefix),
            state_file=state / "run" / "delivery" / f"{topic_prefix}{target.name}.json",
            stopping=stopping,
        )
        for target in settings.targets
    ]
    _run(forwarders, stopping, metrics_port)


def stop_on_signals(stopping: threading.Event) -> None:
    """Set `stopping` at SIGTERM and Ctrl-C. Only in the main thread."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _run(forwarders: list[Forwarder], stopping: threading.Event, metrics_port: int | None) -> None:
    """One thread a target, so that one that is away holds up no other. Raises what a thread ended of."""
    failures: list[BaseException] = []

    def run(forwarder: Forwarder) -> None:
        try:
            forwarder.run()
        except BaseException as error:
            failures.append(error)
            stopping.set()

    gateway = MetricsGateway()
    if metrics_port is not None:
        try:
            gateway.serve(metrics_port)
        except OSError as error:
            raise StackError(f"port {metrics_port} is taken ({error})", "Choose another --metrics-port") from None
    threads = [threading.Thread(target=run, args=(forwarder,), name=forwarder.target.name) for forwarder in forwarders]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        gateway.put("forward", forward_page(forwarders))
        stopping.wait(1.0)
        if stopping.is_set():
            for thread in threads:
                thread.join(0.5)
    if failures:
        raise failures[0]
