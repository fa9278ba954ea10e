"""Score: a sample of `requests` with text -> `scores`, `decisions` to review; the unusable to `dead_letters`.

    flink run -py jobs/score.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT --scorers scorers.yaml

The topology: Kafka bytes -> sampled in the JVM by the hash of the key, before anything of a record is parsed -> one
vectorised Python call a batch, in which each scorer scores what its own rule chooses -> three sinks and the books in
one transaction. A scorer that is slow holds the source back: while Python scores a batch, the JVM waits for it, and no
more than a batch is in memory. docs/score_job.md says what is sampled and what a score means.
"""

import argparse
import sys

from pyflink.table import StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.flink_environment import job_name, open_environment
from jobs.request_slices import register_once
from jobs.score_batch import JOB
from jobs.score_function import SCORED, ScoreRequests
from jobs.scorers import Scorers, load_scorers
from jobs.settings import (
    JobSettings,
    add_job_arguments,
    keyed_by,
    settings_from,
    sink_options,
    source_options,
    sql_text,
)
from jobs.sql_script import sql_statements
from schemas.books import ScoreKind
from schemas.requests import EVENT_TIME_HEADER
from udfs.sampling.hash_fraction import HASH_DIGITS, threshold_digits
from udfs.sampling.rule import SampleRule, widest

EXAMPLES = """examples:
  slacktide submit score --scorers scorers.yaml
  slacktide submit score --scorers scorers.yaml -- --until-now --name-suffix=-backfill
"""
# A counter of a minute is kept for so long after its last request: longer than requests of one minute are apart.
COUNTER_SECONDS = 3600
_TRACE_ID = r'"trace_id"\s*:\s*"([0-9a-f]{32})"'
_EVENT_TIME = r'"event_time_ms"\s*:\s*([0-9]{1,15})\s*[,}]'
# As the ingest job orders the fields. A writer with another order gets one floor for all models of a service. It only
# has to tell series apart, so a name may be cut at a quote in it; and nothing in it recurses, however long a name is.
_SERIES = r'"service_name"\s*:\s*"[^"]*"(?:,"provider":"[^"]*")?(?:,"model":"[^"]*")?'


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("score", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    result.add_argument("--scorers", required=True, help="YAML file of scorers (docs/scorers.md)")
    result.add_argument(
        "--until-now", action="store_true", help="stop at the end that the topic has at the start, and score all of it"
    )
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings, Scorers]:
    """Check command line, scorers file and models. Raises ConfigurationError naming file, field and remedy."""
    arguments = parser().parse_args(argv)
    return arguments, settings_from(arguments), load_scorers(arguments.scorers)


def sampled_by(scorers: Scorers) -> SampleRule:
    """The rule that chooses what any of the scorers wants."""
    return widest(spec.sampling for spec in scorers.scorers)


def options(scorers: Scorers) -> dict[str, str]:
    """Flink options of the job: how large a batch is, and how long a worker waits for one to fill."""
    return {
        "python.fn-execution.arrow.batch.size": str(scorers.batch_records),
        # A bundle is one batch: while it ends, the JVM waits for Python.
        "python.fn-execution.bundle.size": str(scorers.batch_records),
        "python.fn-execution.bundle.time": str(scorers.batch_wait_ms),
        "table.exec.state.ttl": f"{COUNTER_SECONDS} s",
    }


def place_sql(rule: SampleRule) -> str:
    """SQL for a request's place in its series' minute, from 1. Without a floor nobody asks, and no record is read."""
    if rule.at_least_per_minute == 0:
        return "CAST(1 AS BIGINT)"
    text, header = "CAST(request AS STRING)", f"headers[{sql_text(EVENT_TIME_HEADER)}]"
    looked_up = f"CAST(REGEXP_EXTRACT({text}, {sql_text(_EVENT_TIME)}, 1) AS BIGINT)"
    in_header = f"TRY_CAST(CAST({header} AS STRING) AS BIGINT)"
    minute = f"FLOOR((CASE WHEN {header} IS NOT NULL THEN {in_header} ELSE {looked_up} END) / 60000)"
    series = f"REGEXP_EXTRACT({text}, {sql_text(_SERIES)}, 0)"
    return (
        f"COUNT(*) OVER (PARTITION BY `partition`, {series}, {minute}\n"
        "    ORDER BY proctime ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )


def chosen_sql(rule: SampleRule) -> str:
    """SQL for whether `rule` includes a request with these `digits` and `place`: the same as in Python, in the JVM."""
    threshold = threshold_digits(rule.rate)
    if threshold is None:
        return "TRUE"
    by_share = f"digits < '{threshold}'"
    floor = rule.at_least_per_minute
    if floor == 0:
        return by_share
    by_floor = f"LOWER(HEX(CAST(CEIL({floor}e0 / place * {16**HASH_DIGITS}e0) AS BIGINT)))"
    return f"{by_share} OR place <= {floor} OR digits < LPAD({by_floor}, {HASH_DIGITS}, '0')"


def statements(settings: JobSettings, scorers: Scorers, until_now: bool = False) -> list[str]:
    """The SQL of the job in order.

    Views `sampling` and `scored_once` must be registered as `sampled` and `scored` right after they are made, through a
    DataStream.
    """
    rule = sampled_by(scorers)
    reading = {"key.format": "raw", "key.fields": "key_text", "value.format": "raw"}
    reading |= {"value.fields-include": "EXCEPT_KEY"} | ({"scan.bounded.mode": "latest-offset"} if until_now else {})
    counting = keyed_by("job") | {"value.format": "json", "value.fields-include": "ALL"}
    return sql_statements(
        "score.sql",
        requests=source_options(settings, JOB, "requests", reading),
        scores=sink_options(settings, JOB, "scores", keyed_by("trace_id")),
        decisions=sink_options(settings, JOB, "decisions", keyed_by("subject")),
        dead_letters=sink_options(settings, JOB, "dead_letters", keyed_by("topic")),
        books=sink_options(settings, JOB, "books", counting),
        trace_id=sql_text(_TRACE_ID),
        hash_digits=str(HASH_DIGITS),
        place=place_sql(rule),
        chosen=chosen_sql(rule),
        read=ScoreKind.READ,
        unsampled=ScoreKind.UNSAMPLED,
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
    )


def build(
    table_env: StreamTableEnvironment, settings: JobSettings, scorers: Scorers, until_now: bool = False
) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    score = udf(ScoreRequests(scorers, settings.topic("requests")), result_type=SCORED, func_type="pandas")
    table_env.create_temporary_function("score_requests", score)
    statement_set = table_env.create_statement_set()
    for statement in statements(settings, scorers, until_now):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW sampling"):
            register_once(table_env, "sampling", "sampled")
        if statement.startswith("CREATE TEMPORARY VIEW scored_once"):
            register_once(table_env, "scored_once", "scored")
    return statement_set


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings, scorers = validate(argv)
    environment, table_env = open_environment(settings, JOB, options(scorers))
    build(table_env, settings, scorers, arguments.until_now).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
