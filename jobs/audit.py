"""Audit: the topics of schemas/delta_tables.py -> Delta tables, each record once; the rest quarantined.

    python -m jobs.audit --bootstrap-servers HOST:PORT --warehouse DIR --jars .slacktide/jars/spark

One Spark Structured Streaming query reads all topics (read committed): one set of consumers, one plan a batch, and one
batch at a time on two cores. How a batch stays exact is said in audit_batch.py.
"""

import signal
import sys
import threading
from types import FrameType

import orjson
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.base import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from jobs.audit_batch import BatchWriter, Figures
from jobs.audit_session import SMALL_BATCHES, open_session
from jobs.audit_settings import AuditSettings, settings_from
from jobs.audit_status import AuditStatus
from jobs.audit_tables import create_tables, location, put_model_cards
from jobs.kafka_client import ConfigurationError
from schemas.delta_tables import BATCHES

POLL_SECONDS = 0.5
STOP_SECONDS = 25.0
_QUERY_ID = "sql.streaming.queryId"


def validate(argv: list[str] | None = None) -> AuditSettings:
    """Check the command line and the model cards. Raises ConfigurationError naming file, field and remedy."""
    return settings_from(argv)


def main(argv: list[str] | None = None) -> None:
    """Run until SIGTERM, or with `--once` until all is read. Exits with 1 and a sentence where it can't go on."""
    settings = validate(argv)
    stopping = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    status = AuditStatus.start(settings.status_file, settings.warehouse, settings.tables)
    try:
        run(settings, status, stopping)
    except ConfigurationError as error:
        status.write("failed", str(error))
        raise
    except (PySparkException, Py4JError, OSError) as error:
        # A signal to the whole process group ends the JVM under us; asked to stop, that is no failure.
        if not stopping.is_set():
            reason = explained(error)
            status.write("failed", reason)
            sys.exit(f"slacktide audit: {reason}")
    status.write("stopped")


def run(settings: AuditSettings, status: AuditStatus, stopping: threading.Event) -> None:
    """Open a session, make the tables, and stream until `stopping` is set or all is read."""
    spark = open_session(
        "slacktide-audit",
        jars=settings.jars,
        master=settings.master,
        heap_mb=settings.heap_mb,
        ui_port=settings.ui_port,
        settings=SMALL_BATCHES,
    )
    create_tables(spark, settings.warehouse)
    put_model_cards(spark, settings.warehouse, list(settings.cards))
    for figures in totals(spark, settings.warehouse):
        status.add(figures.topic, counts_of(figures))
    while True:
        try:
            watch(start(spark, settings, status), status, stopping)
            return
        except StreamingQueryException as error:
            if not is_metrics_fault(error):
                raise


def is_metrics_fault(error: Exception) -> bool:
    """Whether Spark failed in counting, after the batch was committed, and only has to be started again.

    It does so after it has repeated a batch that a killed driver left open: SPARK-55271, in all of Spark 4.1.
    """
    return 'return value of "scala.Option.get()" is null' in str(error)


def totals(spark: SparkSession, warehouse: str) -> list[Figures]:
    """What all batches so far came to, by topic."""
    batches = spark.read.format("delta").load(location(warehouse, BATCHES))
    names = ("rows_read", "rows_inserted", "rows_already_there", "rows_quarantined")
    sums = batches.groupBy("kafka_topic").sum(*names).collect()
    return [Figures(*row) for row in sums]


def counts_of(figures: Figures) -> dict[str, int]:
    """The figures under the names of the status file."""
    return {
        "read": figures.read,
        "inserted": figures.inserted,
        "already_there": figures.already_there,
        "quarantined": figures.quarantined,
    }


def start(spark: SparkSession, settings: AuditSettings, status: AuditStatus) -> StreamingQuery:
    """Start the query."""

    def write(batch: DataFrame, batch_id: int) -> None:
        # The query's id lives in its checkpoint: a deleted checkpoint gives a new one, as Delta's guard needs.
        checkpoint_id = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
        writer = BatchWriter(settings.warehouse, settings.tables, str(checkpoint_id))
        for figures in writer.write(batch, batch_id):
            status.add(figures.topic, counts_of(figures))

    source = spark.readStream.format("kafka").options(**settings.source_options).load()
    stream = source.writeStream.queryName("audit").foreachBatch(write).option("checkpointLocation", settings.checkpoint)
    if settings.once:
        return stream.trigger(availableNow=True).start()
    return stream.trigger(processingTime=f"{settings.trigger_seconds} seconds").start()


def watch(query: StreamingQuery, status: AuditStatus, stopping: threading.Event) -> None:
    """Keep the status file up to date until the query ends or is asked to. Raises what the query failed of."""
    while not query.awaitTermination(POLL_SECONDS):
        if stopping.is_set():
            _stop(query)
            return
        _note_progress(query, status)
        status.write("running")
    _note_progress(query, status)


def _note_progress(query: StreamingQuery, status: AuditStatus) -> None:
    if progress := query.lastProgress:
        status.note_progress(orjson.loads(progress.json))


def _stop(query: StreamingQuery) -> None:
    """Let the batch at work end, for a while: to break it off would be safe, but it would be done again."""
    waited_seconds = 0.0
    while query.isActive and query.status["isTriggerActive"] and waited_seconds < STOP_SECONDS:
        query.awaitTermination(POLL_SECONDS)
        waited_seconds += POLL_SECONDS
    query.stop()


def explained(error: Exception) -> str:
    """Return what went wrong in words a person can act on."""
    text = str(error)
    if "data may have been lost" in text or "KAFKA_DATA_LOSS" in text:
        return (
            "Kafka has deleted records, or a topic, before they were audited. Start the job with a new --checkpoint: "
            "it reads all that is there, and what the tables hold already is not added again."
        )
    if "UnknownTopicOrPartition" in text:
        return "a topic is missing on the broker. Create the topics first (`slacktide up` does), then start it again."
    if isinstance(error, StreamingQueryException) and "Timeout" in text:
        return f"the broker did not answer in time. {text.splitlines()[0]}"
    return text.strip().split("\n\tat ")[0]


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConfigurationError as problem:
        sys.exit(f"slacktide audit: {problem}")
