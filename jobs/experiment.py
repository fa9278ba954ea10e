"""Experiment: `requests` -> verdicts on each experiment's traffic split, every window; the rest to `dead_letters`.

    flink run -py jobs/experiment.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT --experiments FILE

The topology: the front of the drift job (`jobs.request_slices`); the requests of an experiment, epoch and arm collected
in the JVM and sketched by one Python call; one row a window, of all experiments; then the state machine of each
experiment in keyed state. No Python sees a single request behind the front. docs/experiments.md says what a verdict
means. Names of operators (`uid`) are part of every savepoint and never change.
"""

import argparse
import sys

from pyflink.table import DataTypes, StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.experiments import Experiments, load_experiments
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
from jobs.sql_script import sql_statements
from schemas.books import DriftKind
from udfs.experiments.flink_windows import (
    JOB,
    USERS,
    VERDICT_TYPE,
    GatherWindows,
    JudgeExperiments,
    SketchArm,
    experiment_of,
)
from udfs.slicing.slicer import RequestSlicer, SlicePlan

EXAMPLES = """examples:
  slacktide submit experiment --experiments experiments.yaml
  slacktide submit experiment --experiments experiments.yaml -- --until-now --name-suffix=-backfill
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser(
        "experiment", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_job_arguments(result)
    result.add_argument("--experiments", required=True, help="YAML file of experiments (docs/experiments.md)")
    result.add_argument(
        "--until-now", action="store_true", help="stop at the end that the topic has at the start, and judge all of it"
    )
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings, Experiments]:
    """Check command line, experiments and model cards. Raises ConfigurationError naming file, field and remedy."""
    arguments = parser().parse_args(argv)
    return arguments, settings_from(arguments), load_experiments(arguments.experiments)


def slicer_of(settings: JobSettings, experiments: Experiments) -> RequestSlicer:
    """Return what takes records apart: one plan, by experiment, epoch and arm, for all experiments."""
    labels = ("experiment", experiments.epoch_field, "arm")
    plan = SlicePlan("experiments", labels, experiments.window_ms, 1, USERS)
    skew_ms = MAX_SKEW_MINUTES * 60_000
    return RequestSlicer(JOB, (plan,), settings.topic("requests"), skew_ms)


def front_statements(settings: JobSettings, experiments: Experiments, until_now: bool = False) -> list[str]:
    """The SQL up to what is taken from the records."""
    return request_statements(
        settings,
        JOB,
        watermark_bound_ms=experiments.watermark_bound_ms,
        idle_timeout_ms=experiments.idle_timeout_ms,
        by_headers=slicer_of(settings, experiments).reads_headers,
        until_now=until_now,
    )


def statements(settings: JobSettings, experiments: Experiments) -> list[str]:
    """The SQL over view `taken`: views, then INSERTs for dead letters and books.

    View `gathered_once` must be registered as `gathered` right after it, through a DataStream.
    """
    return sql_statements(
        "experiment.sql",
        window=interval(experiments.window_ms),
        users_remembered=str(experiments.users_remembered),
        window_end_ms=WINDOW_END_MS,
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
        **{kind.name.lower(): kind.value for kind in DriftKind},
    )


def build(
    table_env: StreamTableEnvironment, settings: JobSettings, experiments: Experiments, until_now: bool = False
) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    take_requests(table_env, slicer_of(settings, experiments), front_statements(settings, experiments, until_now))
    sketch = udf(SketchArm(experiments.users_remembered), result_type=DataTypes.BYTES(), func_type="pandas")
    gather = udf(
        GatherWindows(list(experiments.by_name)), result_type=DataTypes.ARRAY(DataTypes.BYTES()), func_type="pandas"
    )
    table_env.create_temporary_function("sketch_arm", sketch)
    table_env.create_temporary_function("gather_windows", gather)
    statement_set = table_env.create_statement_set()
    for statement in statements(settings, experiments):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW gathered_once"):
            register_once(table_env, "gathered_once", "gathered")
    _judge(table_env, experiments, statement_set)
    return statement_set


def _judge(table_env: StreamTableEnvironment, experiments: Experiments, statement_set: StatementSet) -> None:
    """Put the state machines between view `experiment_windows` and table `verdicts`."""
    windows = table_env.to_data_stream(table_env.from_path("experiment_windows"))
    keyed = keyed_stream(windows, experiment_of, "experiment-key")
    verdicts = keyed.process(JudgeExperiments(experiments.by_name), VERDICT_TYPE)
    verdicts = verdicts.name("traffic split").uid("experiment-split")
    statement_set.add_insert("verdicts", table_env.from_data_stream(verdicts))


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings, experiments = validate(argv)
    environment, table_env = open_environment(settings, JOB, OPTIONS)
    build(table_env, settings, experiments, arguments.until_now).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
