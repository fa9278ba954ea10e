"""Drift: `requests` -> one judged window a feature, series and slide on `verdicts`; the rest to `dead_letters`.

    flink run -py jobs/drift.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT --monitors monitors.yaml

The topology: collect (values of a slice, in the JVM), sketch (one Python call for many slices), merge (sketches of a
window, in the JVM), judge (one Python call for many windows). No Python sees a single request. docs/monitors.md says
what counts as late, what is written where, and what an upgrade does.
"""

import argparse
import sys

from pyflink.datastream import DataStream
from pyflink.table import DataTypes, StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.drift_sql import (
    DEAD_LABELS,
    FOLLOWED,
    JOB,
    Cut,
    all_verdicts,
    cuts_of,
    feedback_statements,
    front_statements,
    sink_statements,
    slicer_of,
    view_statements,
)
from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.monitor_state import Plan, plan_of_state
from jobs.monitors import Monitors, load_monitors
from jobs.request_slices import MAX_SKEW_MINUTES, OPTIONS, take_requests
from jobs.settings import JobSettings, add_job_arguments, settings_from
from udfs.flink_drift import JudgeWindows, SketchSlices
from udfs.flink_machines import StepSlices, series_of
from udfs.signals.flink_feedback import DEAD_LETTERS, FOLLOWED_TYPE, TakeFeedback
from udfs.signals.flink_follow import VERDICT_TYPE, FollowVerdicts, monitor_and_series

EXAMPLES = """examples:
  slacktide submit drift --monitors monitors.yaml
  slacktide submit drift --jobmanager flink:8081 --bootstrap-servers kafka:9092 --monitors monitors.yaml
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("drift", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    result.add_argument("--monitors", required=True, help="YAML file of monitors (docs/monitors.md)")
    result.add_argument(
        "--until-now", action="store_true", help="stop at the end that the topic has at the start, and judge all of it"
    )
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings, Monitors]:
    """Check command line, monitors, references and cards. Raises ConfigurationError naming field and remedy."""
    arguments = parser().parse_args(argv)
    return arguments, settings_from(arguments), load_monitors(arguments.monitors)


def state_plan(argv: list[str]) -> Plan:
    """Return what the job's state will be made of; `slacktide submit` holds it against a state to be taken over."""
    _, _, monitors = validate(argv)
    return plan_of_state(monitors)


def build(
    table_env: StreamTableEnvironment, settings: JobSettings, monitors: Monitors, until_now: bool = False
) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    take_requests(table_env, slicer_of(settings, monitors), front_statements(settings, monitors, until_now))
    _register_functions(table_env, monitors)
    for statement in view_statements(monitors):
        table_env.execute_sql(statement)
    for cut in cuts_of(monitors):
        if cut.machines:
            _register_machines(table_env, cut)
    if monitors.followers or monitors.feedback:
        _register_followed(table_env, settings, monitors, until_now)
    statement_set = table_env.create_statement_set()
    for statement in sink_statements(settings, monitors):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
    return statement_set


def _register_machines(table_env: StreamTableEnvironment, cut: Cut) -> None:
    """Register what the slice machines of a cut say, their states under a uid of their own."""
    query = f"SELECT monitor, series, packets, slice_end FROM slices_{cut.name}"
    name = f"drift-machines-{cut.name}"
    slices = keyed_stream(table_env.to_data_stream(table_env.sql_query(query)), series_of, f"{name}-key")
    stepped = StepSlices({number: (monitor.inputs, monitor.machines) for number, monitor in cut.members.items()})
    verdicts = slices.process(stepped, VERDICT_TYPE).name(name).uid(name)
    table_env.create_temporary_view(f"machine_verdicts_{cut.name}", table_env.from_data_stream(verdicts))


def _register_followed(
    table_env: StreamTableEnvironment, settings: JobSettings, monitors: Monitors, until_now: bool
) -> None:
    """Register the verdicts with what the monitors' signals say of them and of labels, in a state of its own uid."""
    query = all_verdicts(monitors)
    if monitors.feedback:
        query = f"SELECT verdict, CAST(NULL AS STRING) AS label, CAST(NULL AS STRING) AS key FROM ({query})"
    rows = table_env.to_data_stream(table_env.sql_query(query))
    if monitors.feedback:
        labels = _labels(table_env, settings, monitors, until_now)
        table_env.create_temporary_view(DEAD_LABELS, table_env.from_data_stream(labels.get_side_output(DEAD_LETTERS)))
        rows = rows.map(lambda row: row, FOLLOWED_TYPE).uid("drift-followed-rows").union(labels)
    keyed = keyed_stream(rows, monitor_and_series, "drift-signal-key")
    following = FollowVerdicts(monitors.followers, monitors.feedback)
    followed = keyed.process(following, VERDICT_TYPE).name("signals").uid("drift-signals")
    table_env.create_temporary_view(FOLLOWED, table_env.from_data_stream(followed))


def _labels(
    table_env: StreamTableEnvironment, settings: JobSettings, monitors: Monitors, until_now: bool
) -> DataStream:
    """Return the labels that monitors follow, one row a monitor."""
    for statement in feedback_statements(settings, until_now):
        table_env.execute_sql(statement)
    records = table_env.to_data_stream(table_env.from_path("feedback"))
    taking = TakeFeedback(JOB, monitors.feedback, MAX_SKEW_MINUTES * 60)
    return records.process(taking, FOLLOWED_TYPE).name("labels").uid("drift-labels")


def _register_functions(table_env: StreamTableEnvironment, monitors: Monitors) -> None:
    """Register the vectorised functions by the names that the SQL calls; their references travel with them."""
    collected = [(monitor.inputs, monitor.window_judges) for monitor in monitors.monitors]
    functions = {
        "sketch_slices": (SketchSlices(collected), DataTypes.BYTES()),
        "judge_windows": (JudgeWindows([judges for _, judges in collected]), DataTypes.ARRAY(DataTypes.STRING())),
    }
    for name, (function, result_type) in functions.items():
        table_env.create_temporary_function(name, udf(function, result_type=result_type, func_type="pandas"))


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings, monitors = validate(argv)
    environment, table_env = open_environment(settings, JOB, OPTIONS)
    build(table_env, settings, monitors, arguments.until_now).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
