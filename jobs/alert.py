"""Alert: `verdicts` -> one firing or resolved `alerts` record a transition; the unreadable to `dead_letters`.

    flink run -py jobs/alert.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT

The topology: Kafka bytes -> keyed by series -> the alert lifecycle in keyed state -> two sinks in one transaction. It
needs no watermark: the only clock is the verdicts' own window ends. Names of operators (`uid`) are part of every
savepoint and never change.
"""

import argparse
import sys

from pyflink.table import StatementSet, StreamTableEnvironment

from jobs.alert_rules import load_alert_rules
from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.settings import JobSettings, add_job_arguments, keyed_by, settings_from, sink_options, source_options
from jobs.sql_script import sql_statements
from udfs.alerts.flink_lifecycle import ALERT_TYPE, DEAD_LETTERS, JOB, AlertLifecycle, series_of
from udfs.alerts.rule import AlertRules

EXAMPLES = """examples:
  slacktide submit alert
  slacktide submit alert -- --rules my_rules.yaml
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("alert", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    result.add_argument("--rules", help="YAML laid over jobs/alert_rules.yaml (default: that file alone)")
    return result


def validate(argv: list[str] | None = None) -> tuple[AlertRules, JobSettings]:
    """Check command line and rules file. Raises ConfigurationError naming file, field and remedy."""
    arguments = parser().parse_args(argv)
    return load_alert_rules(arguments.rules), settings_from(arguments)


def statements(settings: JobSettings) -> list[str]:
    """The SQL of the job: one table a topic."""
    return sql_statements(
        "alert.sql",
        verdicts=source_options(settings, JOB, "verdicts", {"format": "raw"}),
        alerts=sink_options(settings, JOB, "alerts", keyed_by("fingerprint")),
        dead_letters=sink_options(settings, JOB, "dead_letters", keyed_by("source_topic")),
    )


def build(table_env: StreamTableEnvironment, rules: AlertRules, settings: JobSettings) -> StatementSet:
    """Register the tables, put the lifecycle between them, and return the statement set, ready to attach."""
    for statement in statements(settings):
        table_env.execute_sql(statement)
    verdicts = table_env.to_data_stream(table_env.from_path("verdicts"))
    keyed = keyed_stream(verdicts, series_of, "alert-series-key")
    alerts = keyed.process(AlertLifecycle(rules), ALERT_TYPE).name("alert lifecycle").uid("alert-lifecycle")
    dead_letters = alerts.get_side_output(DEAD_LETTERS).name("dead letters").uid("alert-dead-letters")
    statement_set = table_env.create_statement_set()
    statement_set.add_insert("alerts", table_env.from_data_stream(alerts))
    statement_set.add_insert("dead_letters", table_env.from_data_stream(dead_letters))
    return statement_set


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    rules, settings = validate(argv)
    environment, table_env = open_environment(settings, JOB)
    build(table_env, rules, settings).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
