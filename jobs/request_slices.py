"""The front that jobs over topic `requests` share: records in; packets of slices, dead letters and counts out.

Records are read as bytes, placed by the newest event time of their partition, taken apart by one vectorised Python call
a batch (`udfs.slicing`), and passed once through a DataStream, so that every reader shares one copy. A job adds its own
SQL over view `taken`.
"""

from pyflink.table import DataTypes, Schema, StreamTableEnvironment
from pyflink.table.udf import udf

from jobs.settings import JobSettings, keyed_by, sink_options, source_options, sql_text
from jobs.sql_script import sql_statements
from schemas.request_headers import LABELS_HEADER, NUMBERS_HEADER
from schemas.requests import EVENT_TIME_HEADER
from udfs.flink_drift import TakeRequests
from udfs.slicing.slicer import RequestSlicer

# The ingest job refuses these as clock_skew; should one come from elsewhere, it must not move the watermark.
MAX_SKEW_MINUTES = 5
WINDOW_END_MS = "UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000"

_BATCH = "python.fn-execution.arrow.batch.size"
OPTIONS = {
    # A row of slices may hold 100,000 values of each feature, a row of windows the sketches of all slices.
    _BATCH: "500",
    # While a bundle ends, the JVM waits for Python; `bundle.time` keeps it short.
    "python.fn-execution.bundle.size": "50000",
}
# Many records share the cost of a call, and of each packet that they share. A value may be long, headers are not.
_RECORDS_BY_HEADERS, _RECORDS_BY_VALUE = "4000", "1000"
# Digits only, so that a fraction or an exponent is no time; 15 of them are 30,000 years.
_EVENT_TIME = r'"event_time_ms"\s*:\s*([0-9]{1,15})\s*[,}]'
# To look into a record of 1 kB takes 5 microseconds, all told: so the ingest job writes the event time as a header too.
# CASE looks only where there is none; COALESCE would look always.
_HEADER = f"headers[{sql_text(EVENT_TIME_HEADER)}]"
_IN_HEADER = f"GREATEST(TRY_CAST(CAST({_HEADER} AS STRING) AS BIGINT), 0)"
_LOOKED_UP = f"CAST(REGEXP_EXTRACT(CAST(request AS STRING), {sql_text(_EVENT_TIME)}, 1) AS BIGINT)"
_SEEN_MS = f"CASE WHEN {_HEADER} IS NOT NULL THEN {_IN_HEADER} ELSE {_LOOKED_UP} END"
# TIMESTAMPDIFF counts in 32 bits: from 2020 on, seconds last until 2088.
_SECONDS = "TIMESTAMPDIFF(SECOND, TO_TIMESTAMP_LTZ(1577836800000, 3), `timestamp`)"
_FIRST_SKEWED_MS = f"(CAST({_SECONDS} AS BIGINT) + {1_577_836_800 + MAX_SKEW_MINUTES * 60 + 1}) * 1000"
# A clock that runs far ahead must not make other requests late. A comparison would have Flink work out the time of each
# record twice, in each of three places; the remainder is the time itself where it is in order, and else one before the
# first that is skewed (a small one, unless it is decades ahead).
_EVENT_TIME_COLUMN = f"TO_TIMESTAMP_LTZ(MOD({_SEEN_MS}, {_FIRST_SKEWED_MS}), 3)"
# A request goes to Python by its headers alone, a third of its bytes, where it can be used by them. Its value and the
# instants it is judged by go along where the record may become a dead letter: it lacks such headers, is late, or its
# time is out of order (one that is skewed has become a time near 1970).
_CLOSED = "GREATEST(newest_time - {bound}, IFNULL(CURRENT_WATERMARK(event_time), TO_TIMESTAMP_LTZ(0, 3)))"
_UNSURE = " OR ".join(
    (
        "numbers IS NULL",
        "labels IS NULL",
        "event_time <= {closed}",
        "event_time < TO_TIMESTAMP_LTZ(946684800000, 3)",
        f"event_time > `timestamp` + INTERVAL '{MAX_SKEW_MINUTES}' MINUTE",
    )
)
_HEADER_COLUMNS = (
    f" headers[{sql_text(NUMBERS_HEADER)}] AS numbers,"
    f" CASE WHEN request IS NOT NULL THEN headers[{sql_text(LABELS_HEADER)}] END AS labels,"
)
_SINKS = tuple(f"CREATE TEMPORARY TABLE {name} (" for name in ("verdicts", "dead_letters", "books"))
_BOOKS = {"value.format": "json", "value.fields-include": "ALL"}
_TAKEN = DataTypes.ARRAY(DataTypes.ARRAY(DataTypes.BYTES()))


def request_statements(
    settings: JobSettings,
    job: str,
    *,
    watermark_bound_ms: int,
    idle_timeout_ms: int,
    by_headers: bool,
    until_now: bool = False,
    topic: str = "requests",
    suffix: str = "",
) -> list[str]:
    """Return the tables and views up to `taken_once`, in order. `until_now` bounds the source; `by_headers` is
    the slicer's `reads_headers`.

    Another topic of JSON objects with an `event_time_ms` can be read alike. Where a job reads several, the second and
    its views are told apart by a `suffix` of their names; the sinks are those of the first.
    """
    bounded = {"scan.bounded.mode": "latest-offset"} if until_now else {}
    reading = {"format": "raw", "scan.watermark.idle-timeout": f"{idle_timeout_ms} ms", **bounded}
    bound = interval(watermark_bound_ms)
    closed = _CLOSED.format(bound=bound)
    where_unsure = f"CASE WHEN {_UNSURE.format(closed=closed)} THEN {{}} END" if by_headers else "{}"
    statements = sql_statements(
        "request_slices.sql",
        suffix=suffix,
        event_time=_EVENT_TIME_COLUMN,
        watermark_bound=bound,
        header_columns=_HEADER_COLUMNS if by_headers else "",
        value=where_unsure.format("request"),
        arrived=where_unsure.format("CAST(`timestamp` AS TIMESTAMP(3))"),
        closed=where_unsure.format(f"CAST({closed} AS TIMESTAMP(3))"),
        headers=", numbers, labels" if by_headers else "",
        requests=source_options(settings, job, topic, reading),
        verdicts=sink_options(settings, job, "verdicts", keyed_by("series_key")),
        dead_letters=sink_options(settings, job, "dead_letters", keyed_by("topic")),
        books=sink_options(settings, job, "books", keyed_by("job") | _BOOKS),
    )
    return [statement for statement in statements if not (suffix and statement.startswith(_SINKS))]


def take_requests(
    table_env: StreamTableEnvironment, slicer: RequestSlicer, statements: list[str], suffix: str = ""
) -> None:
    """Execute `request_statements` with `slicer`, and register view `taken` (and the suffix)."""
    taking = udf(TakeRequests(slicer), result_type=_TAKEN, func_type="pandas")
    table_env.create_temporary_function(f"take_requests{suffix}", taking)
    for statement in statements:
        table_env.execute_sql(statement)
    table_env.get_config().set(_BATCH, _RECORDS_BY_HEADERS if slicer.reads_headers else _RECORDS_BY_VALUE)
    register_once(table_env, f"taken_once{suffix}", f"taken{suffix}", event_time="event_time")  # translated here
    table_env.get_config().set(_BATCH, OPTIONS[_BATCH])


def register_once(table_env: StreamTableEnvironment, view: str, name: str, event_time: str | None = None) -> None:
    """Register `view` as `name` through a DataStream, so that every reader shares one copy; adds `proctime`.

    The optimizer can't tell that two calls of a Python function are the same where their readers want other columns.
    Where the view has an event time, it and the watermarks, which are those of the single partitions, pass through.
    """
    stream = table_env.to_data_stream(table_env.from_path(view))
    schema = Schema.new_builder().column_by_expression("proctime", "PROCTIME()")
    if event_time:
        schema = schema.watermark(event_time, "SOURCE_WATERMARK()")
    table_env.create_temporary_view(name, stream, schema.build())


def interval(milliseconds: int) -> str:
    """Return a duration as a SQL literal.

    >>> interval(90_061_500)
    "INTERVAL '1 01:01:01.500' DAY TO SECOND(3)"
    """
    seconds, millis = divmod(milliseconds, 1000)
    days, rest = divmod(seconds, 86_400)
    hours, minutes = divmod(rest // 60, 60)
    return f"INTERVAL '{days} {hours:02}:{minutes:02}:{rest % 60:02}.{millis:03}' DAY TO SECOND(3)"
