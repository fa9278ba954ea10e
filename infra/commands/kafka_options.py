"""Where Kafka is, as options shared by the commands that speak to it."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from infra.addresses import embedded_bootstrap_servers

Command = TypeVar("Command", bound=Callable[..., Any])


def kafka_options(command: Command) -> Command:
    """Add `--bootstrap-servers`, by default the embedded broker's, and `--kafka-config`."""
    servers = click.option(
        "--bootstrap-servers",
        envvar="SLACKTIDE_BOOTSTRAP_SERVERS",
        show_envvar=True,
        default=embedded_bootstrap_servers,
        show_default="the embedded broker",
        help="Kafka HOST:PORT[,HOST:PORT...].",
    )
    config = click.option(
        "--kafka-config", help="YAML of Kafka client settings (TLS, SASL); ${NAME} is from the environment."
    )
    return servers(config(command))
