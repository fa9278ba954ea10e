"""One batch of the audit job: every record of it goes into its table, or was there before, or goes to quarantine.

Nothing is lost and nothing is written twice, whenever the driver dies:

- Delta refuses a second commit of the same (`txnAppId`, `txnVersion`) = (checkpoint and topic, batch), so a batch that
  is repeated after a crash leaves out what it had already done.
- Rows go in by an insert-only MERGE on their deterministic id, so records that a Flink job wrote a second time, or
  that are read again under a new checkpoint, add nothing.

Where fewer rows went in than were offered, every record is looked up by its id: a row of this batch and this place on
Kafka counts as inserted, one with the same content as already there, and other content under the same id is a fault,
which goes to quarantine. A record that is nowhere stops the job.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.storagelevel import StorageLevel

from jobs.audit_merge import FATE, INSERTED, LOST, OTHER, PLACE, SAME, Span, merge_new, span_of, with_fates
from jobs.audit_rows import FAULTS, LENGTH, RAW, RAW_ENCODING, stages
from jobs.audit_tables import location
from schemas.delta import DeltaTable, literal
from schemas.delta_tables import BATCHES, QUARANTINE, place_id_sql
from schemas.ids import record_id

_TRANSACTION_ID = "spark.databricks.delta.write.txnAppId"
_TRANSACTION_VERSION = "spark.databricks.delta.write.txnVersion"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
# Rows are checkpointed before they are merged, so they can't differ between the passes of a MERGE.
_MATERIALIZE = "spark.databricks.delta.merge.materializeSource"
# Delta looks for small files to put together after each commit, which costs a tenth of a batch: so not after each.
_COMPACT = "spark.databricks.delta.autoCompact.enabled"
COMPACT_EVERY_BATCHES = 64


@dataclass(frozen=True, slots=True)
class Figures:
    """Where the records of one topic in one batch went: `read` is the sum of the other three."""

    topic: str
    read: int
    inserted: int
    already_there: int
    quarantined: int


class LostRecordsError(RuntimeError):
    """Records are in no table although their batch was written."""


@dataclass(frozen=True)
class BatchWriter:
    """Writes the batches of one checkpoint into the tables of `warehouse`; `tables` by topic name on the broker."""

    warehouse: str
    tables: dict[str, DeltaTable]
    checkpoint_id: str

    def write(self, batch: DataFrame, batch_id: int) -> list[Figures]:
        """Write one batch of Kafka rows and return its figures by topic. Safe to repeat."""
        spark = batch.sparkSession
        settings = {
            _TRANSACTION_VERSION: str(batch_id),
            _MATERIALIZE: "none",
            _COMPACT: str(batch_id % COMPACT_EVERY_BATCHES == COMPACT_EVERY_BATCHES - 1).lower(),
            _USER_METADATA: f'{{"checkpoint_id": "{self.checkpoint_id}", "batch_id": {batch_id}}}',
        }
        for key, value in settings.items():
            spark.conf.set(key, value)
        # In memory alone: the values hold raw bytes of dead letters, which must not be spilled to a disk. In one
        # partition: a batch is small, and every job over it is then one task without a shuffle.
        batch = batch.coalesce(1).persist(StorageLevel.MEMORY_ONLY)
        try:
            counts = batch.groupBy("topic").agg(fn.count("*").alias("n")).orderBy("topic").collect()
            figures = [self._write_topic(batch, batch_id, row.topic, row.n) for row in counts]
            if figures:
                self._write_figures(spark, figures, batch_id)
            return figures
        finally:
            batch.unpersist()
            for key in (*settings, _TRANSACTION_ID):
                spark.conf.unset(key)

    def _write_topic(self, batch: DataFrame, batch_id: int, topic: str, read: int) -> Figures:
        table = self.tables[topic]
        # With the topic, because quarantine takes one commit of each: Delta would refuse the second as done before.
        batch.sparkSession.conf.set(_TRANSACTION_ID, f"slacktide-audit-{self.checkpoint_id}-{topic}")
        rows = batch.where(fn.col("topic") == topic)
        for columns in stages(table, self._batch_key(batch_id, topic)):
            rows = rows.selectExpr(*columns)
        # A checkpoint, not a cache: later plans start from the rows, and don't carry (and ship) how they were parsed.
        rows = rows.localCheckpoint()
        good, bad = rows.where(fn.size(FAULTS) == 0), rows.where(fn.size(FAULTS) > 0)
        span = span_of(good, table)
        inserted, same = self._insert(good, table, span)
        if clashing := span.rows - inserted - same:
            bad = bad.unionByName(self._clashes(good, table, span))
        quarantined = 0
        if read - span.rows + clashing:
            quarantined, quarantined_before = self._quarantine(bad)
            same += quarantined_before
        return Figures(topic, read, inserted, same, quarantined)

    def _insert(self, rows: DataFrame, table: DeltaTable, span: Span) -> tuple[int, int]:
        """Return how many rows went in, by this call or by the same batch before a crash, and how many were there."""
        if not span.rows:
            return 0, 0
        path = location(self.warehouse, table)
        inserted = merge_new(rows, table, path, span)
        if inserted == span.rows:
            return inserted, 0
        fates = with_fates(rows, table, path, span).groupBy(FATE).agg(fn.count("*").alias("n")).collect()
        counts = {row[FATE]: row.n for row in fates}
        if lost := counts.get(LOST, 0):
            raise LostRecordsError(f"{lost} records are not in {path} after they were written")
        return counts.get(INSERTED, 0), counts.get(SAME, 0)

    def _clashes(self, good: DataFrame, table: DeltaTable, span: Span) -> DataFrame:
        """The rows whose id is taken by other content, with that as their fault."""
        fates = with_fates(good, table, location(self.warehouse, table), span).where(fn.col(FATE) == OTHER)
        fault = fn.array(fn.lit(f"{table.key}: this id is already there with other content"))
        return fates.drop(FATE).withColumn(FAULTS, fault)

    def _quarantine(self, bad: DataFrame) -> tuple[int, int]:
        made = {
            QUARANTINE.key: place_id_sql(*PLACE),
            "reason": f"{FAULTS}[0]",
            "faults": FAULTS,
            "raw": RAW,
            "raw_encoding": RAW_ENCODING,
            "length": LENGTH,
            "day": "CAST(kafka_timestamp AS DATE)",
        }
        rows = bad.selectExpr(*(f"{made.get(c.name, c.name)} AS {c.name}" for c in QUARANTINE.columns))
        return self._insert(rows, QUARANTINE, span_of(rows, QUARANTINE))

    def _write_figures(self, spark: SparkSession, figures: list[Figures], batch_id: int) -> None:
        selects = [
            f"SELECT {literal(self._batch_key(batch_id, f.topic))} AS batch_key, {literal(self.checkpoint_id)} AS "
            f"checkpoint_id, {batch_id}L AS batch_id, {literal(f.topic)} AS kafka_topic, {f.read}L AS rows_read, "
            f"{f.inserted}L AS rows_inserted, {f.already_there}L AS rows_already_there, "
            f"{f.quarantined}L AS rows_quarantined, current_timestamp() AS written_at, current_date() AS day"
            for f in figures
        ]
        spark.conf.set(_TRANSACTION_ID, f"slacktide-audit-{self.checkpoint_id}")
        rows = spark.sql(" UNION ALL ".join(selects)).coalesce(1)
        rows.write.format("delta").mode("append").save(location(self.warehouse, BATCHES))

    def _batch_key(self, batch_id: int, topic: str) -> str:
        return record_id(self.checkpoint_id, batch_id, topic)
