"""Alert: `verdicts` -> `alerts`, a record a transition, and `incidents`; the unreadable to `dead_letters`.

    flink run -py jobs/alert.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT

The topology: Kafka bytes -> keyed by series -> the alert lifecycle -> keyed by incident scope, with `changes` and
`silences` broadcast -> incidents -> three sinks in one transaction. It needs no watermark: the only clock is the
verdicts' own window ends (docs/alerts.md). Names of operators (`uid`) are part of every savepoint and never change.
"""

import argparse
import sys
from dataclasses import replace

from pyflink.datastream import DataStream
from pyflink.table import StatementSet, StreamTableEnvironment

from jobs.alert_rules import load_alert_rules
from jobs.dependencies import load_dependencies
from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.settings import JobSettings, add_job_arguments, keyed_by, settings_from, sink_options, source_options
from jobs.sql_script import sql_statements
from udfs.alerts.flink_context import CONTEXT_TYPE, ReadContext
from udfs.alerts.flink_incidents import CONTEXT, INCIDENTS, Incidents
from udfs.alerts.flink_lifecycle import (
    ALERT_TYPE,
    DEAD_LETTERS,
    JOB,
    STAGED_TYPE,
    AlertLifecycle,
    scope_of,
    series_of,
)
from udfs.alerts.rule import AlertRules

CHECKPOINT_INTERVAL_SECONDS = 1.0
# A page is seen when its checkpoint is through, and a checkpoint waits for the bundle that each Python operator is at:
# in a storm a thousand records would hold it up for seconds.
OPTIONS = {"python.fn-execution.bundle.size": "100"}
EXAMPLES = """examples:
  slacktide submit alert
  slacktide submit alert -- --rules my_rules.yaml --dependencies dependencies.yaml
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("alert", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    # An alert is seen when its transaction is committed; the state that a checkpoint writes is small.
    result.set_defaults(checkpoint_interval_seconds=CHECKPOINT_INTERVAL_SECONDS)
    result.add_argument("--rules", help="YAML laid over jobs/alert_rules.yaml (default: that file alone)")
    result.add_argument("--dependencies", help="YAML of which service calls which (docs/root-cause.md; default: none)")
    return result


def validate(argv: list[str] | None = None) -> tuple[AlertRules, JobSettings]:
    """Check command line and rules file. Raises ConfigurationError naming file, field and remedy."""
    arguments = parser().parse_args(argv)
    rules = load_alert_rules(arguments.rules)
    if arguments.dependencies is not None:
        incidents = replace(rules.incidents, dependencies=load_dependencies(arguments.dependencies))
        rules = replace(rules, incidents=incidents)
    return rules, settings_from(arguments)


def statements(settings: JobSettings) -> list[str]:
    """The SQL of the job: one table a topic.

    Changes and silences are read from the beginning whenever the job starts without a savepoint: what was silenced
    before still is.
    """
    whole = {"format": "raw", "scan.startup.mode": "earliest-offset"}
    reading = {"verdicts": {"format": "raw"}, "changes": whole, "silences": whole}
    sources = [
        statement
        for topic, how in reading.items()
        for statement in sql_statements("raw_topic.sql", table=topic, options=source_options(settings, JOB, topic, how))
    ]
    return sources + sql_statements(
        "alert.sql",
        incidents=sink_options(settings, JOB, "incidents", keyed_by("incident_id")),
        alerts=sink_options(settings, JOB, "alerts", keyed_by("fingerprint")),
        dead_letters=sink_options(settings, JOB, "dead_letters", keyed_by("source_topic")),
    )


def build(table_env: StreamTableEnvironment, rules: AlertRules, settings: JobSettings) -> StatementSet:
    """Register the tables, put the two stages between them, and return the statement set, ready to attach."""
    for statement in statements(settings):
        table_env.execute_sql(statement)
    verdicts = table_env.to_data_stream(table_env.from_path("verdicts"))
    keyed = keyed_stream(verdicts, series_of, "alert-series-key")
    staged = keyed.process(AlertLifecycle(rules), STAGED_TYPE).name("alert lifecycle").uid("alert-lifecycle")
    context = _context(table_env, settings)
    by_scope = keyed_stream(staged, scope_of, "alert-scope-key")
    alerts = by_scope.connect(context.broadcast(CONTEXT)).process(
        Incidents(rules.incidents, rules.forget_series_after_days), ALERT_TYPE
    )
    alerts = alerts.name("incidents").uid("alert-incidents")
    incidents = alerts.get_side_output(INCIDENTS).name("notifications").uid("alert-notifications")
    dead_letters = _dead_letters(staged, "verdicts").union(_dead_letters(context, "context"))
    statement_set = table_env.create_statement_set()
    statement_set.add_insert("alerts", table_env.from_data_stream(alerts))
    statement_set.add_insert("incidents", table_env.from_data_stream(incidents))
    statement_set.add_insert("dead_letters", table_env.from_data_stream(dead_letters))
    return statement_set


def _context(table_env: StreamTableEnvironment, settings: JobSettings) -> DataStream:
    """What topics `changes` and `silences` hold, checked."""
    changes, silences = (table_env.to_data_stream(table_env.from_path(topic)) for topic in ("changes", "silences"))
    read = changes.union(silences).process(ReadContext(settings.topic("silences")), CONTEXT_TYPE)
    return read.name("changes and silences").uid("alert-context")


def _dead_letters(read: DataStream, source: str) -> DataStream:
    """What could not be read."""
    return read.get_side_output(DEAD_LETTERS).name(f"dead letters of {source}").uid(f"alert-dead-letters-{source}")


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    rules, settings = validate(argv)
    environment, table_env = open_environment(settings, JOB, OPTIONS)
    build(table_env, rules, settings).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
