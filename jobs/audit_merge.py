"""Rows into a Delta table by their id: those that are new go in, of all others it is known what became of them."""

from dataclasses import dataclass

from delta.tables import DeltaTable as DeltaTableApi
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from schemas.delta import DeltaTable

FATE = "_fate"
INSERTED, SAME, OTHER, LOST = "inserted", "same content", "other content", "lost"
PLACE = ("kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp")


@dataclass(frozen=True, slots=True)
class Span:
    """How many rows and ids there are, and the days and times they lie in: all that has to be searched for them."""

    rows: int
    ids: int
    days: tuple[str, ...]
    first: str | None
    last: str | None

    def holds(self, day: Column, time: Column) -> Column:
        """The condition that Delta prunes partitions and files by."""
        between = time.between(fn.lit(self.first).cast("timestamp"), fn.lit(self.last).cast("timestamp"))
        return day.isin([fn.lit(text).cast("date") for text in self.days]) & between


def span_of(rows: DataFrame, table: DeltaTable) -> Span:
    """Measure `rows`; one pass."""
    found = rows.agg(
        fn.count("*"),
        fn.size(fn.collect_set(table.key)),
        fn.array_sort(fn.collect_set(fn.col("day").cast("string"))),
        fn.min(table.time).cast("string"),
        fn.max(table.time).cast("string"),
    ).collect()[0]
    return Span(found[0], found[1], tuple(found[2]), found[3], found[4])


def merge_new(rows: DataFrame, table: DeltaTable, path: str, span: Span) -> int:
    """Insert the rows whose id is not in the table, the first on Kafka of each id, and return how many.

    0 where Delta refuses the commit because this transaction has been made before.
    """
    if span.ids < span.rows:
        order = Window.partitionBy(table.key).orderBy("kafka_partition", "kafka_offset")
        rows = rows.withColumn("_copy", fn.row_number().over(order)).where("_copy = 1")
    source = rows.select(*(column.name for column in table.columns)).alias("source")
    target = DeltaTableApi.forPath(rows.sparkSession, path).alias("target")
    result = target.merge(source, _same_id(table, span)).whenNotMatchedInsertAll().execute().collect()
    return int(result[0].num_inserted_rows) if result else 0


def with_fates(rows: DataFrame, table: DeltaTable, path: str, span: Span) -> DataFrame:
    """Add what became of each row: it is in the table itself, its content was there, its id has other content, or lost.

    "Itself" means this place on Kafka, written by this batch.
    """
    target = DeltaTableApi.forPath(rows.sparkSession, path).toDF().alias("target")
    itself = fn.lit(True)
    for name in (*PLACE, "batch_key"):
        itself = itself & (fn.col(f"source.{name}") == fn.col(f"target.{name}"))
    fate = (
        fn.when(fn.col(f"target.{table.key}").isNull(), LOST)
        .when(itself, INSERTED)
        .when(fn.col("source.content_sha256") == fn.col("target.content_sha256"), SAME)
        .otherwise(OTHER)
    )
    return rows.alias("source").join(target, _same_id(table, span), "left").select("source.*", fate.alias(FATE))


def _same_id(table: DeltaTable, span: Span) -> Column:
    same = fn.col(f"source.{table.key}") == fn.col(f"target.{table.key}")
    return same & span.holds(fn.col("target.day"), fn.col(f"target.{table.time}"))
