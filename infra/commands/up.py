"""`slacktide up`: start the embedded stack."""

from pathlib import Path

import click
from rich.console import Console

from infra.commands.state_option import state_option
from infra.stack import Stack
from infra.stack_settings import StackSettings, load_settings

EXAMPLES = """
\b
Examples:
  slacktide up
  slacktide up --free-ports
  slacktide up --port-offset 1000 --state-folder /tmp/second
  slacktide up --port kafka=29092 --port flink_web=28081
"""


def _parse_ports(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    ports = {}
    for value in values:
        name, _, number = value.partition("=")
        if not number.isdigit():
            raise click.BadParameter(f"{value!r} is not NAME=PORT, such as kafka=29092")
        ports[name] = int(number)
    return ports


@click.command(name="up", epilog=EXAMPLES)
@state_option
@click.option("--config", type=click.Path(dir_okay=False, path_type=Path), help="YAML laid over infra/conf/stack.yaml.")
@click.option("--port", "ports", multiple=True, callback=_parse_ports, metavar="NAME=PORT", help="Set a single port.")
@click.option("--port-offset", type=int, default=0, help="Add N to every port.")
@click.option("--free-ports", is_flag=True, help="Take ports that are free now.")
def command(state: Path, config: Path | None, ports: dict[str, int], port_offset: int, free_ports: bool) -> None:
    """Start the embedded stack: a Kafka broker and a Flink cluster, on loopback, looked after by a supervisor.

    What runs already is left alone, so calling it twice does no harm. `slacktide down` ends it.
    """
    console = Console(highlight=False)
    chosen = _settings(config, ports, port_offset, free_ports)
    present = Stack.of(state)
    if present is not None and any(present.processes().values()):
        if chosen.ports != present.settings.ports and (config or ports or port_offset):
            console.print("The stack runs on other ports; they change after `slacktide down`.")
        stack, was_up = present, present.is_up
    else:
        stack, was_up = Stack(state, chosen), False
    if was_up:
        console.print("The stack is up already.")
    with console.status("starting the stack"):
        stack.up(say=lambda line: console.print(f"  {line}"))
    console.print(f"Kafka         {stack.broker.bootstrap_servers}")
    console.print(f"Flink web UI  {stack.flink.rest_url}")
    console.print(f"State         {stack.run}")
    console.print("Next: slacktide submit ingest · slacktide status · slacktide down")


def _settings(config: Path | None, ports: dict[str, int], port_offset: int, free_ports: bool) -> StackSettings:
    settings = load_settings(config)
    if free_ports:
        settings = settings.with_free_ports()
    if port_offset:
        settings = settings.with_offset(port_offset)
    return settings.with_ports(ports, "--port")
