"""Slo: `requests` -> verdicts on service levels, their error budgets and burn rates; the rest to `dead_letters`.

    flink run -py jobs/slo.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT --slos FILE

The topology: the front of the drift job (`jobs.request_slices`); the requests of a slice and series collected in the
JVM and counted by one Python call for all SLOs; then the state machine of each SLO and series in keyed state, with a
timer for slices without events. No Python sees a single request behind the front. docs/slos.md says what a verdict
means. Names of operators (`uid`) are part of every savepoint and never change.
"""

import argparse
import sys
from pathlib import Path

from pyflink.table import DataTypes, StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.request_slices import (
    MAX_SKEW_MINUTES,
    OPTIONS,
    WINDOW_END_MS,
    interval,
    register_once,
    request_statements,
    take_requests,
)
from jobs.settings import JobSettings, add_job_arguments, settings_from, sql_text
from jobs.slos import Slos, load_slos
from jobs.sql_script import sql_statements
from schemas.books import DriftKind
from udfs.slicing.slicer import RequestSlicer, SlicePlan
from udfs.slo.flink_slos import JOB, VERDICT_TYPE, JudgeSlos, SloGroup, TallySlices, group_and_series

EXAMPLES = """examples:
  slacktide submit slo --slos slos.yaml
  slacktide submit slo --slos slos.yaml --model-card cards/chat.json
  slacktide submit slo --slos slos.yaml -- --until-now --name-suffix=-backfill
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("slo", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    result.add_argument("--slos", required=True, help="OpenSLO v1 file (docs/slos.md)")
    result.add_argument("--model-card", type=Path, help="card of SLOs that name none")
    result.add_argument(
        "--watermark-bound-seconds", type=float, default=10.0, help="how late a request may come (default: 10)"
    )
    result.add_argument(
        "--idle-timeout-seconds", type=float, default=30.0, help="after so long an idle partition is passed (30)"
    )
    result.add_argument(
        "--until-now", action="store_true", help="stop at the end that the topic has at the start, and judge all of it"
    )
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings, Slos]:
    """Check command line, SLOs and model cards. Raises ConfigurationError naming file, field and remedy."""
    arguments = parser().parse_args(argv)
    return arguments, settings_from(arguments), load_slos(arguments.slos, arguments.model_card)


def groups_of(slos: Slos) -> tuple[SloGroup, ...]:
    """Return the SLOs by the labels of their series, in the order of the file."""
    by_labels: dict[tuple[str, ...], list[int]] = {}
    for number, slo in enumerate(slos.slos):
        by_labels.setdefault(slo.group_by, []).append(number)
    return tuple(SloGroup(labels, tuple(slos.slos[n] for n in numbers)) for labels, numbers in by_labels.items())


def slicer_of(settings: JobSettings, slos: Slos) -> RequestSlicer:
    """Return what takes records apart: one plan a group."""
    plans = tuple(SlicePlan(group.name, group.labels, slos.slice_ms, 1, group.inputs) for group in groups_of(slos))
    return RequestSlicer(JOB, plans, settings.topic("requests"), MAX_SKEW_MINUTES * 60_000)


def front_statements(settings: JobSettings, arguments: argparse.Namespace) -> list[str]:
    """The SQL up to what is taken from the records."""
    return request_statements(
        settings,
        JOB,
        watermark_bound_ms=round(arguments.watermark_bound_seconds * 1000),
        idle_timeout_ms=round(arguments.idle_timeout_seconds * 1000),
        until_now=arguments.until_now,
    )


def statements(settings: JobSettings, slos: Slos) -> list[str]:
    """The SQL over view `taken`: views, then INSERTs for dead letters and books.

    View `tallied_once` must be registered as `tallied` right after it, through a DataStream.
    """
    groups = groups_of(slos)
    packets = [
        f"SELECT {sql_text(group.name)} AS slo_group, series[{number}] AS series, packets[{number}] AS packet,"
        f" sizes[{number}] AS n, event_time\nFROM taken WHERE sizes[{number}] > 0"
        for number, group in enumerate(groups, 1)
    ]
    return sql_statements(
        "slo.sql",
        packets="\nUNION ALL\n".join(packets),
        slice=interval(slos.slice_ms),
        first_group=sql_text(groups[0].name),
        window_end_ms=WINDOW_END_MS,
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
        **{kind.name.lower(): kind.value for kind in DriftKind},
    )


def build(
    table_env: StreamTableEnvironment, settings: JobSettings, slos: Slos, arguments: argparse.Namespace
) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    take_requests(table_env, slicer_of(settings, slos), front_statements(settings, arguments))
    tally = udf(TallySlices(groups_of(slos)), result_type=DataTypes.BYTES(), func_type="pandas")
    table_env.create_temporary_function("tally_slices", tally)
    statement_set = table_env.create_statement_set()
    for statement in statements(settings, slos):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW tallied_once"):
            register_once(table_env, "tallied_once", "tallied", event_time="window_time")
    _judge(table_env, slos, statement_set)
    return statement_set


def _judge(table_env: StreamTableEnvironment, slos: Slos, statement_set: StatementSet) -> None:
    """Put the state machines between view `tallied` and table `verdicts`."""
    query = "SELECT slo_group, series, tallies, slice_end, window_time FROM tallied"
    keyed = keyed_stream(table_env.to_data_stream(table_env.sql_query(query)), group_and_series, "slo-key")
    verdicts = keyed.process(JudgeSlos(groups_of(slos), slos.slice_ms), VERDICT_TYPE)
    verdicts = verdicts.name("service levels").uid("slo-judge")
    statement_set.add_insert("verdicts", table_env.from_data_stream(verdicts))


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings, slos = validate(argv)
    environment, table_env = open_environment(settings, JOB, OPTIONS)
    build(table_env, settings, slos, arguments).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
