"""`slacktide`: the console command. Each subcommand is imported only when it is called, so that help is instant."""

import importlib
import sys

import click

from infra.errors import StackError
from infra.help_text import HelpFormatter
from jobs.kafka_client import ConfigurationError

# name -> (module, what it does in a line); every module has the click command as `command`.
COMMANDS = {
    "up": ("infra.commands.up", "Start the embedded stack: Kafka broker and Flink cluster."),
    "down": ("infra.commands.down", "End what `up` and `submit` started, and nothing else."),
    "status": ("infra.commands.status", "Show processes, memory, jobs, lag, watermarks and the balance of the books."),
    "submit": ("infra.commands.submit", "Check a job's configuration and submit it to a cluster."),
    "replay": ("infra.commands.replay", "Send a recorded trace as OTLP messages to Kafka."),
    "reference": ("infra.commands.reference", "Build and show the reference profiles that drift is judged against."),
    "monitors": ("infra.commands.monitors", "Check, explain and backtest a file of monitors."),
    "backtest-alerts": ("infra.commands.backtest_alerts", "Count false alarms of static thresholds and of ours."),
    "thresholds": ("infra.commands.thresholds", "Compute and keep what a false-alarm budget asks of each feature."),
    "score": ("infra.commands.score", "Score one request by hand."),
    "models": ("infra.commands.models", "List the scorers' models: from where, which digest, on which device."),
    "judge": ("infra.commands.judge", "Validate the scorers that judge against what people said."),
    "alerts": ("infra.commands.alerts", "Show alerts as they fire and resolve."),
    "silence": ("infra.commands.silence", "Keep alerts from people for a while."),
    "change": ("infra.commands.change", "Tell of a deploy or another change that may explain alerts."),
    "forward": ("infra.commands.forward", "Deliver alerts to Alertmanager and webhooks."),
    "deadman": ("infra.commands.deadman", "Tell that the monitor itself is blind, past Kafka and Flink."),
    "slo": ("infra.commands.slo", "Show error budgets, burn rates and projections; check a file of SLOs."),
    "plot": ("infra.commands.plot", "Draw a drift series, a service level, or the distances between versions."),
    "sql": ("infra.commands.sql", "Open Spark SQL on the Delta audit tables."),
}
USER_ERROR = 2
# Every command's context makes its formatter of this.
click.Context.formatter_class = HelpFormatter


class LazyGroup(click.Group):
    """A group that knows its commands by name and line, and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module_name = COMMANDS[cmd_name][0]
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and module_name.startswith(error.name):
                raise click.ClickException(f"`slacktide {cmd_name}` is not part of this version.") from None
            remedy = "Run `make setup`, which installs what slacktide needs."
            raise click.ClickException(f"`slacktide {cmd_name}` needs the package {error.name}. {remedy}") from None
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="slacktide")
def slacktide() -> None:
    """Watch LLM serving: exact drift tests and quiet alerts on Flink, audited in Delta.

    \b
    Examples:
      slacktide up
      slacktide submit ingest
      slacktide status
      slacktide down
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line. What the user can mend is said in a sentence on stderr, with exit status 2."""
    try:
        slacktide.main(args=argv, prog_name="slacktide")
    except (StackError, ConfigurationError) as error:
        click.echo(f"slacktide: {error}", err=True)
        sys.exit(USER_ERROR)


if __name__ == "__main__":
    main()
