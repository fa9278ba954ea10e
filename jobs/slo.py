"""Slo: `requests`, `scores`, `measurements` -> verdicts on service levels; the unusable to `dead_letters`.

    flink run -py jobs/slo.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT --slos FILE

The topology, of each topic that an SLO counts from: the front of the drift job (`jobs.request_slices`); the records of
a slice and series collected in the JVM and counted by one Python call for all SLOs; then the state machine of each SLO
and series in keyed state, with a timer for slices without events. No Python sees a single record behind the front.
docs/slos.md says what a verdict means. Names of operators (`uid`) are part of every savepoint and never change.
"""

import argparse
import sys
from pathlib import Path

from pyflink.datastream import DataStream
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
from udfs.slo.slo import Slo

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


def sources_of(slos: Slos) -> tuple[str, ...]:
    """Return the topics that the SLOs count from, in the order of the file."""
    return tuple(dict.fromkeys(slo.source for slo in slos.slos))


def groups_of(slos: Slos, source: str) -> tuple[SloGroup, ...]:
    """Return the SLOs that count from a topic by the labels of their series, in the order of the file."""
    by_labels: dict[tuple[str, ...], list[Slo]] = {}
    for slo in slos.slos:
        if slo.source == source:
            by_labels.setdefault(slo.group_by, []).append(slo)
    return tuple(SloGroup(labels, tuple(of)) for labels, of in by_labels.items())


def slicer_of(settings: JobSettings, slos: Slos, source: str) -> RequestSlicer:
    """Return what takes the records of a topic apart: one plan a group."""
    groups = groups_of(slos, source)
    plans = tuple(SlicePlan(group.name, group.labels, slos.slice_ms, 1, group.inputs) for group in groups)
    return RequestSlicer(JOB, plans, settings.topic(source), MAX_SKEW_MINUTES * 60_000)


def front_statements(settings: JobSettings, slos: Slos, arguments: argparse.Namespace, source: str) -> list[str]:
    """The SQL up to what is taken from the records of a topic."""
    return request_statements(
        settings,
        JOB,
        watermark_bound_ms=round(arguments.watermark_bound_seconds * 1000),
        idle_timeout_ms=round(arguments.idle_timeout_seconds * 1000),
        by_headers=slicer_of(settings, slos, source).reads_headers,
        until_now=arguments.until_now,
        topic=source,
        suffix=_suffix(slos, source),
    )


def slice_statements(slos: Slos, source: str) -> list[str]:
    """The views over view `taken` of a topic.

    View `tallied_once` must be registered as `tallied` right after it, through a DataStream.
    """
    groups, suffix = groups_of(slos, source), _suffix(slos, source)
    packets = [
        f"SELECT {sql_text(group.name)} AS slo_group, series[{number}] AS series, packets[{number}] AS packet,"
        f" sizes[{number}] AS n, event_time\nFROM taken{suffix} WHERE sizes[{number}] > 0"
        for number, group in enumerate(groups, 1)
    ]
    return sql_statements(
        "slo_slices.sql",
        suffix=suffix,
        packets="\nUNION ALL\n".join(packets),
        slice=interval(slos.slice_ms),
        first_group=sql_text(groups[0].name),
    )


def sink_statements(settings: JobSettings, slos: Slos) -> list[str]:
    """The INSERTs for dead letters and books, of all topics together."""
    suffixes = {source: _suffix(slos, source) for source in sources_of(slos)}
    letters = [
        f"SELECT {sql_text(settings.topic(source))}, letter\n"
        f"FROM taken{suffix} CROSS JOIN UNNEST(letters) AS unnested (letter)"
        for source, suffix in suffixes.items()
    ]
    return sql_statements(
        "slo_sinks.sql",
        letters="\nUNION ALL\n".join(letters),
        read_counts=" UNION ALL ".join(f"SELECT * FROM read_counts{suffix}" for suffix in suffixes.values()),
        all_sliced=" UNION ALL ".join(f"SELECT * FROM sliced{suffix}" for suffix in suffixes.values()),
        window_end_ms=WINDOW_END_MS,
        job=sql_text(JOB),
        **{kind.name.lower(): kind.value for kind in DriftKind},
    )


def _suffix(slos: Slos, source: str) -> str:
    """What tells the views of a topic from those of the first."""
    return "" if source == sources_of(slos)[0] else f"_{source}"


def build(
    table_env: StreamTableEnvironment, settings: JobSettings, slos: Slos, arguments: argparse.Namespace
) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    streams = [_verdicts(table_env, settings, slos, arguments, source) for source in sources_of(slos)]
    statement_set = table_env.create_statement_set()
    for statement in sink_statements(settings, slos):
        statement_set.add_insert_sql(statement)
    verdicts = streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]
    statement_set.add_insert("verdicts", table_env.from_data_stream(verdicts))
    return statement_set


def _verdicts(
    table_env: StreamTableEnvironment, settings: JobSettings, slos: Slos, arguments: argparse.Namespace, source: str
) -> DataStream:
    """Register one topic's views, and return the verdicts of its SLOs' state machines, their uids the topic's own."""
    groups, suffix = groups_of(slos, source), _suffix(slos, source)
    front = front_statements(settings, slos, arguments, source)
    take_requests(table_env, slicer_of(settings, slos, source), front, suffix)
    tally = udf(TallySlices(groups), result_type=DataTypes.BYTES(), func_type="pandas")
    table_env.create_temporary_function(f"tally_slices{suffix}", tally)
    for statement in slice_statements(slos, source):
        table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW tallied_once"):
            register_once(table_env, f"tallied_once{suffix}", f"tallied{suffix}", event_time="window_time")
    query = f"SELECT slo_group, series, tallies, slice_end, window_time FROM tallied{suffix}"
    slices = table_env.to_data_stream(table_env.sql_query(query))
    keyed = keyed_stream(slices, group_and_series, f"slo-key-{source}")
    verdicts = keyed.process(JudgeSlos(groups, slos.slice_ms), VERDICT_TYPE)
    return verdicts.name(f"service levels of {source}").uid(f"slo-judge-{source}")


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings, slos = validate(argv)
    environment, table_env = open_environment(settings, JOB, OPTIONS)
    build(table_env, settings, slos, arguments).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
