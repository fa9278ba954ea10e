"""Ingest: `otlp_spans` -> typed, de-duplicated `requests`; the rest to `dead_letters`, everything counted in `books`.

    flink run -py jobs/ingest.py -pyfs slacktide-jobs.zip --bootstrap-servers HOST:PORT

The topology: Kafka bytes -> one vectorised Python decode -> lines cut in the JVM -> late check by the partition's
newest event time -> first of each (trace id, span id) -> spans that need others of their trace wait for them in keyed
state; requests that need none go on at once. Source and decode are shared by the three sinks.
"""

import argparse
import sys

from pyflink.table import DataTypes, Schema, StatementSet, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.flink_environment import job_name, keyed_stream, open_environment
from jobs.kafka_client import ConfigurationError
from jobs.mask_key import mask_key
from jobs.request_slices import interval
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
from schemas.books import IngestKind
from schemas.request_headers import LABELS_HEADER, NUMBERS_HEADER
from schemas.requests import EVENT_TIME_HEADER
from udfs.flink_ingest import JOB, DeadLetters, DecodeSpans, JudgeMasking, Privacy
from udfs.telemetry.batch import (
    REQUEST_INDEX_AT,
    REQUEST_LABELS_AT,
    REQUEST_LENGTH_AT,
    REQUEST_NUMBERS_AT,
    REQUEST_SPAN_AT,
    REQUEST_TIME_AT,
    REQUEST_TRACE_AT,
)
from udfs.telemetry.flink_join import JOINED_TYPE, JoinTraces, bucket_of_row
from udfs.telemetry.masking import MAX_TEXT_CHARACTERS
from udfs.telemetry.waiting_line import GENAI, OTHER

# A partition without traffic holds the others' watermark back for so long. No shorter: open bugs of the connector.
MOST_CHARACTERS = 1_000_000
_SOURCE_IDLE = {"table.exec.source.idle-timeout": "30 s"}

EXAMPLES = """examples:
  slacktide submit ingest
  SLACKTIDE_MASK_KEY=... slacktide submit ingest -- --text masked
  slacktide submit ingest --bootstrap-servers kafka:9092 --kafka-config kafka.yaml -- --encoding otlp_json
"""


def parser() -> argparse.ArgumentParser:
    """The job's command line."""
    result = argparse.ArgumentParser("ingest", epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_job_arguments(result)
    add_encoding_argument(result)
    result.add_argument("--lenient", action="store_true", help="accept base64 ids and enum names")
    result.add_argument("--allowed-lateness-seconds", type=int, default=600, help="older spans are late (default: 600)")
    # Twice the lateness: a copy may come long after the first while event time stood still.
    result.add_argument(
        "--deduplicate-seconds", type=int, default=1200, help="how long a span id is remembered (default: 1200)"
    )
    result.add_argument(
        "--max-skew-seconds", type=int, default=300, help="further ahead of Kafka's time is clock_skew (default: 300)"
    )
    result.add_argument(
        "--join-seconds",
        type=int,
        default=30,
        help="how long spans wait for others of their trace, by Kafka's timestamps; 0: never (default: 30)",
    )
    result.add_argument(
        "--text",
        default="none",
        choices=("none", "masked"),
        metavar="TEXT",
        help="masked: carry prompts and responses, personal data masked; or none (default)",
    )
    result.add_argument(
        "--text-max-characters",
        type=int,
        default=MAX_TEXT_CHARACTERS,
        help=f"longer prompts and responses are cut, and say so (default: {MAX_TEXT_CHARACTERS})",
    )
    result.add_argument(
        "--masking-verdict-seconds", type=int, default=60, help="how often masking is judged, with text (default: 60)"
    )
    result.add_argument("--name-model", default="", help="package.module:factory of a model that finds names of people")
    return result


def validate(argv: list[str] | None = None) -> tuple[argparse.Namespace, JobSettings]:
    """Check the command line. Raises ConfigurationError naming the field and the remedy."""
    arguments = parser().parse_args(argv)
    for name in ("allowed_lateness_seconds", "deduplicate_seconds", "max_skew_seconds", "masking_verdict_seconds"):
        if getattr(arguments, name) <= 0:
            option = "--" + name.replace("_", "-")
            raise ConfigurationError("command line", option, "is not positive", "Give a number of seconds above 0")
    _validate_text(arguments)
    if arguments.join_seconds < 0:
        raise ConfigurationError(
            "command line", "--join-seconds", "is negative", "Give a number of seconds, or 0 to join nothing"
        )
    if arguments.deduplicate_seconds < arguments.allowed_lateness_seconds:
        raise ConfigurationError(
            "command line",
            "--deduplicate-seconds",
            "is below --allowed-lateness-seconds, so a copy could pass as new",
            "Make it at least as long",
        )
    return arguments, settings_from(arguments)


def _validate_text(arguments: argparse.Namespace) -> None:
    mask_key(required=arguments.text == "masked")
    if not 1 <= arguments.text_max_characters <= MOST_CHARACTERS:
        remedy = f"Give a number from 1 to {MOST_CHARACTERS}: a request must fit into a Kafka record"
        raise ConfigurationError("command line", "--text-max-characters", "is out of range", remedy)
    if arguments.name_model and arguments.text == "none":
        raise ConfigurationError(
            "command line", "--name-model", "is given, but no text is carried", "Add --text masked"
        )


def statements(arguments: argparse.Namespace, settings: JobSettings) -> list[str]:
    """The SQL of the job in order: tables and views, then one INSERT a sink; then that of masking, if it is judged."""
    judged = _masking_statements(arguments, settings) if arguments.text == "masked" else []
    return [*_main_statements(arguments, settings), *judged]


def _masking_statements(arguments: argparse.Namespace, settings: JobSettings) -> list[str]:
    verdicts = sink_options(settings, JOB, "verdicts", keyed_by("series_key"))
    return sql_statements(
        "ingest_masking.sql", verdicts=verdicts, judge_interval=interval(arguments.masking_verdict_seconds * 1000)
    )


def _main_statements(arguments: argparse.Namespace, settings: JobSettings) -> list[str]:
    return sql_statements(
        "ingest.sql",
        source=source_options(settings, JOB, "otlp_spans", {"format": "raw"}),
        requests=sink_options(settings, JOB, "requests", keyed_by("trace_id")),
        dead_letters=sink_options(settings, JOB, "dead_letters", keyed_by("topic")),
        books=sink_options(
            settings, JOB, "books", keyed_by("job") | {"value.format": "json", "value.fields-include": "ALL"}
        ),
        event_time_header=EVENT_TIME_HEADER,
        allowed_lateness_ms=str(arguments.allowed_lateness_seconds * 1000),
        time_at=str(REQUEST_TIME_AT + 1),
        time_length=str(REQUEST_INDEX_AT - REQUEST_TIME_AT),
        span_key_at=str(REQUEST_TRACE_AT + 1),
        span_key_length=str(REQUEST_TIME_AT - REQUEST_TRACE_AT),
        trace_id_length=str(REQUEST_SPAN_AT - REQUEST_TRACE_AT),
        numbers_header=NUMBERS_HEADER,
        labels_header=LABELS_HEADER,
        numbers_at=str(REQUEST_NUMBERS_AT + 1),
        numbers_length=str(REQUEST_LENGTH_AT - REQUEST_NUMBERS_AT),
        length_at=str(REQUEST_LENGTH_AT + 1),
        length_length=str(REQUEST_LABELS_AT - REQUEST_LENGTH_AT),
        labels_at=str(REQUEST_LABELS_AT + 1),
        waiting_genai=GENAI,
        waiting_other=OTHER,
        job=JOB,
        **{f"kind_{kind.name.lower()}": kind.value for kind in IngestKind},
    )


def build(table_env: StreamTableEnvironment, arguments: argparse.Namespace, settings: JobSettings) -> StatementSet:
    """Register everything and return the statement set, ready to attach."""
    decode = DecodeSpans(
        arguments.encoding,
        lenient=arguments.lenient,
        max_skew_ms=arguments.max_skew_seconds * 1000,
        joins=arguments.join_seconds > 0,
        privacy=ingest_privacy(arguments),
    )
    table_env.create_temporary_function("decode_spans", udf(decode, result_type=DataTypes.STRING(), func_type="pandas"))
    table_env.create_temporary_function(
        "dead_letter", udf(DeadLetters(), result_type=DataTypes.BYTES(), func_type="pandas")
    )
    table_env.create_temporary_function(
        "judge_masking", udf(JudgeMasking(), result_type=DataTypes.STRING(), func_type="pandas")
    )
    statement_set = table_env.create_statement_set()
    for statement in statements(arguments, settings):
        if statement.startswith("INSERT"):
            statement_set.add_insert_sql(statement)
        else:
            table_env.execute_sql(statement)
        if statement.startswith("CREATE TEMPORARY VIEW judging"):
            _register_once(table_env, "judging", "judged")
            table_env.get_config().set("table.exec.state.ttl", f"{arguments.deduplicate_seconds} s")
        if statement.startswith("CREATE TEMPORARY VIEW numbering"):
            _register_once(table_env, "numbering", "numbered")
        if statement.startswith("CREATE TEMPORARY VIEW waiting"):
            _register_joined(table_env, arguments.join_seconds * 1000)
    return statement_set


def ingest_privacy(arguments: argparse.Namespace) -> Privacy:
    """Return what to mask and carry. Raises ConfigurationError where text is to be carried and there is no key."""
    carries_text = arguments.text == "masked"
    key = mask_key(required=carries_text)
    return Privacy(key, carries_text, arguments.text_max_characters, arguments.name_model)


def _register_once(table_env: StreamTableEnvironment, view: str, name: str) -> None:
    """Register `view` as `name` through a DataStream, so that every reader shares one copy; adds `proctime`.

    The optimizer can't tell that two UNNESTs are the same, and would keep a copy of the state for each sink. The
    watermark passes on: a stream's time attribute is its `kafka_time`.
    """
    stream = table_env.to_data_stream(table_env.from_path(view))
    schema = (
        Schema.new_builder()
        .column_by_expression("proctime", "PROCTIME()")
        .column_by_metadata("kafka_time", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
        .watermark("kafka_time", "SOURCE_WATERMARK()")
        .build()
    )
    table_env.create_temporary_view(name, stream, schema)


def _register_joined(table_env: StreamTableEnvironment, wait_ms: int) -> None:
    """Put the join behind view `waiting` and register what comes out of it as `joined`."""
    stream = table_env.to_data_stream(table_env.from_path("waiting"))
    waiting = keyed_stream(stream, bucket_of_row, "ingest-join-bucket")
    joined = waiting.process(JoinTraces(wait_ms), JOINED_TYPE).name("join traces").uid("ingest-join-by-bucket")
    schema = Schema.new_builder().column_by_expression("proctime", "PROCTIME()").build()
    table_env.create_temporary_view("joined", joined, schema)


def main(argv: list[str] | None = None) -> None:
    """Validate, build and submit."""
    arguments, settings = validate(argv)
    environment, table_env = open_environment(settings, JOB, _SOURCE_IDLE)
    build(table_env, arguments, settings).attach_as_datastream()
    environment.execute(job_name(settings, JOB))


if __name__ == "__main__":
    main(sys.argv[1:])
