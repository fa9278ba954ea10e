"""`slacktide sql`: Spark SQL on the Delta audit tables, as a prompt or for one query."""

import csv
import io
import sys
from pathlib import Path

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import NumericType
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from infra.commands.state_option import state_option
from infra.errors import StackError
from infra.spark import open_query_session
from infra.sql_prompt import read_statements
from infra.sql_text import plain_message, split_statements
from infra.stack import Stack
from jobs.audit_tables import register, views
from schemas.delta_tables import TABLES

EXAMPLES = """
\b
Examples:
  slacktide sql
  slacktide sql -e "SELECT * FROM drift_by_feature ORDER BY drifted_share DESC"
  slacktide sql -e "SELECT * FROM open_alerts" --format json
  slacktide sql -e "DESCRIBE HISTORY verdicts"
  slacktide sql -e "SELECT * FROM table_changes('verdicts', 1)" --format csv > changes.csv

Times are UTC. docs/audit.md says what the tables and views hold.
"""
HELP = """  tables            what there is, a line each
  DESCRIBE name;    the columns of a table or view, with what they mean
  exit              end (so does Ctrl-D); Ctrl-C breaks a query off
  Anything else is Spark SQL, over as many lines as you like, up to a semicolon."""
QUERY_FAILED = 1
WIDEST = 100_000


@click.command(name="sql", epilog=EXAMPLES)
@state_option
@click.option("-e", "--execute", "query", metavar="SQL", help="Run this and exit; 1 where it fails.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True,
    help="How rows are printed: a table for reading, one JSON object a line, or CSV with a header.",
)  # fmt: skip
@click.option(
    "--max-rows", type=click.IntRange(min=1), default=1000, show_default=True, help="Print no more than this."
)
@click.option(
    "--warehouse", "place", metavar="DIR", help="Folder or URI of the tables. [default: the embedded stack's]"
)
def command(*, state: Path, query: str | None, form: str, max_rows: int, place: str | None) -> None:
    """Open Spark SQL with the audit tables and views by name, or run one query with -e."""
    place = _existing(place or _embedded(state))
    with Console(stderr=True).status("starting Spark"):
        spark = open_query_session(state, state / "run" / "spark" / "sql.log")
        names = register(spark, place)
    if not names:
        raise StackError(f"no audit tables in {place}", "Start the audit job first: `slacktide submit audit`")
    if query is not None:
        statements, rest = split_statements(query)
        succeeded = all(
            _run(spark, statement, form, max_rows) for statement in [*statements, *([rest] if rest else [])]
        )
        sys.exit(0 if succeeded else QUERY_FAILED)
    _prompt(spark, state, form, max_rows)


def _embedded(state: Path) -> str:
    stack = Stack.of(state)
    if stack is None:
        problem = f"no embedded stack was ever started under {state}"
        raise StackError(problem, "Start one with `slacktide up`, or name the tables' folder with --warehouse")
    return str(stack.warehouse)


def _existing(place: str) -> str:
    if "://" in place:
        return place
    if not Path(place).is_dir():
        raise StackError(f"there is no folder {place}", "Start the audit job first: `slacktide submit audit`")
    return str(Path(place).resolve())


def _prompt(spark: SparkSession, state: Path, form: str, max_rows: int) -> None:
    _show_names()
    click.echo("Type `help` for help, `exit` to end.\n")
    words = [*(table.name for table in TABLES), *(view.name for view in views())]
    words += sorted({column.name for table in TABLES for column in table.columns})
    for statement in read_statements(state / "sql_history", words):
        if statement.lower() == "help":
            click.echo(HELP)
        elif statement.lower() == "tables":
            _show_names()
        else:
            _run(spark, statement, form, max_rows)


def _show_names() -> None:
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, comment in [*((t.name, t.comment) for t in TABLES), *((v.name, v.comment) for v in views())]:
        table.add_row(f"[bold]{name}[/bold]", comment)
    Console().print(table)


def _run(spark: SparkSession, statement: str, form: str, max_rows: int) -> bool:
    """Run one statement and print its rows; on a mistake say what it is, and return False."""
    try:
        result = spark.sql(statement)
        if result.columns:
            _print(result, form, max_rows)
    except KeyboardInterrupt:
        spark.sparkContext.cancelAllJobs()
        click.echo("broken off", err=True)
        return False
    except (PySparkException, Py4JError) as error:
        java = getattr(error, "java_exception", None)
        click.echo(plain_message(str(java.getMessage() if java is not None else error)), err=True)
        return False
    return True


def _print(result: DataFrame, form: str, max_rows: int) -> None:
    """Rows go through Spark's own text, so that times stay UTC whatever the zone of this machine."""
    limited = result.limit(max_rows + 1)
    if form == "json":
        whole = fn.to_json(fn.struct("*"), {"ignoreNullFields": "false"})
        rows = [[row[0]] for row in limited.select(whole).collect()]
        click.echo("".join(f"{row[0]}\n" for row in rows[:max_rows]), nl=False)
    else:
        names = [f"_{number}" for number in range(len(result.columns))]
        texts = limited.toDF(*names).select(*(fn.col(name).cast("string") for name in names))
        rows = [list(row) for row in texts.collect()]
        show = _print_csv if form == "csv" else _print_table
        show(result, rows[:max_rows])
    if len(rows) > max_rows:
        click.echo(f"more than {max_rows} rows; the rest is left out (--max-rows)", err=True)


def _print_csv(result: DataFrame, rows: list[list[str | None]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(rows)
    click.echo(text.getvalue(), nl=False)


def _print_table(result: DataFrame, rows: list[list[str | None]]) -> None:
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for field in result.schema.fields:
        is_number = isinstance(field.dataType, NumericType)
        table.add_column(escape(field.name), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*("[dim]null[/dim]" if value is None else escape(value) for value in row))
    _print_whole(table)
    click.echo(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}")


def _print_whole(table: Table) -> None:
    """No column is cut: where the terminal is too narrow, it wraps the lines."""
    console = Console()
    width = Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum
    Console(width=max(width, console.width)).print(table, crop=False)
