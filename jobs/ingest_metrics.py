"""Metrics: `otlp_metrics` -> `measurements`, what each counter added; the rest to `dead_letters`, all in `books`.

    flink run -py jobs/ingest_metrics.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT

The topology: Kafka bytes -> one vectorised Python decode -> lines cut in the JVM -> keyed by metric and service -> the
series in keyed state -> three sinks in one transaction. It needs no watermark: a series has its own points' times for a
clock. Names of operators (`uid`) are part of every savepoint and never change.
"""

import argparse
import sys

from pyflink.table import DataTypes, Schema, StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.kafka_client import ConfigurationError
from jobs.settings import (
    JobSettings,
    add_encoding_argument,
    add_job_arguments,
    keyed_by,
    settings_from,
    sink_options,
    source_options,
)
from jobs.sql_script import sql_statements
from schemas.books import MetricKind
from schemas.requests import EVENT_TIME_HEADER
from udfs.telemetry.flink_metrics import JOB, OUTCOME_TYPE, MeasureSeries, MetricLines, family_of_line
from udfs.telemetry.metric_family import FamilyPolicy
from udfs.telemetry.metric_series import SeriesPolicy

EXAMPLES = """examples:
  slacktide submit ingest-metrics
  slacktide submit ingest-metrics --bootstrap-servers kafka:9092 -- --young-seconds 300 --series-per-metric 2000
"""

_POLICY = FamilyPolicy()


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser(
        "ingest-metrics", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_job_arguments(result)
    add_encoding_argument(result)
    result.add_argument("--lenient", action="store_true", help="accept enum names")
    result.add_argument(
        "--max-skew-seconds", type=float, default=300, help="further ahead of Kafka's time is clock_skew (default: 300)"
    )
    result.add_argument(
        "--young-seconds",
        type=float,
        default=_POLICY.series.young_seconds,
        help="a counter's first report counts from zero if it started less than this before (default: %(default)s)",
    )
    result.add_argument(
        "--allowed-lateness-seconds",
        type=float,
        default=_POLICY.series.remember_seconds,
        help="points older than this behind their series' newest are late (default: %(default)s)",
    )
    result.add_argument(
        "--series-per-metric",
        type=int,
        default=_POLICY.most_series,
        help="of one metric of one service; beyond it series_overflow (default: %(default)s)",
    )
    result.add_argument(
        "--forget-series-hours",
        type=float,
        default=_POLICY.forget_seconds / 3600,
        help="a series silent for so long is forgotten (default: %(default)s)",
    )
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings]:
    """Check the command line. Raises ConfigurationError naming the field and the remedy."""
    arguments = parser().parse_args(argv)
    for name in ("max_skew_seconds", "allowed_lateness_seconds", "series_per_metric", "forget_series_hours"):
        if not 0 < getattr(arguments, name) < float("inf"):
            option = "--" + name.replace("_", "-")
            raise ConfigurationError("command line", option, "is not positive", "Give a number above 0")
    if not 0 <= arguments.young_seconds < float("inf"):
        raise ConfigurationError(
            "command line", "--young-seconds", "is negative", "Give seconds, or 0 to count no first report from zero"
        )
    if arguments.forget_series_hours * 3600 < arguments.allowed_lateness_seconds:
        raise ConfigurationError(
            "command line",
            "--forget-series-hours",
            "is below --allowed-lateness-seconds, so a copy could count twice",
            "Make it at least as long",
        )
    return arguments, settings_from(arguments)


def policy_of(arguments: argparse.Namespace) -> FamilyPolicy:
    """Return the policy that the command line gives."""
    series = SeriesPolicy(young_seconds=arguments.young_seconds, remember_seconds=arguments.allowed_lateness_seconds)
    return FamilyPolicy(arguments.series_per_metric, arguments.forget_series_hours * 3600, series)


def statements(settings: JobSettings) -> list[str]:
    """The SQL of the job in order: tables and views, then one INSERT a sink (the last three)."""
    return sql_statements(
        "ingest_metrics.sql",
        source=source_options(settings, JOB, "otlp_metrics", {"format": "raw"}),
        measurements=sink_options(settings, JOB, "measurements", keyed_by("series_id")),
        dead_letters=sink_options(settings, JOB, "dead_letters", keyed_by("topic")),
        books=sink_options(
            settings, JOB, "books", keyed_by("job") | {"value.format": "json", "value.fields-include": "ALL"}
        ),
        event_time_header=EVENT_TIME_HEADER,
        job=JOB,
        **{f"kind_{kind.name.lower()}": kind.value for kind in MetricKind},
    )


def build(table_env: StreamTableEnvironment, arguments: argparse.Namespace, settings: JobSettings) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    lines = MetricLines(
        arguments.encoding, lenient=arguments.lenient, max_skew_ms=round(arguments.max_skew_seconds * 1000)
    )
    table_env.create_temporary_function("metric_lines", udf(lines, result_type=DataTypes.STRING(), func_type="pandas"))
    statement_set = table_env.create_statement_set()
    for statement in statements(settings):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW lines"):
            _register_outcomes(table_env, policy_of(arguments))
    return statement_set


def _register_outcomes(table_env: StreamTableEnvironment, policy: FamilyPolicy) -> None:
    """Put the series behind view `lines` and register what comes out of them as `outcomes`."""
    keyed = keyed_stream(table_env.to_data_stream(table_env.from_path("lines")), family_of_line, "metrics-family-key")
    outcomes = keyed.process(MeasureSeries(policy), OUTCOME_TYPE).name("metric series").uid("metrics-series")
    schema = Schema.new_builder().column_by_expression("proctime", "PROCTIME()").build()
    table_env.create_temporary_view("outcomes", outcomes, schema)


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings = validate(argv)
    environment, table_env = open_environment(settings, JOB)
    build(table_env, arguments, settings).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
