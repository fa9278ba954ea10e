"""What a Delta audit table is: columns, comments, CHECK constraints, partition, properties. `delta_tables` lists them.

One description serves three readers: the audit job creates the tables from it, splits good rows from bad by the same
constraints before it writes, and `slacktide sql` shows the comments. Nothing here imports Spark: types and
constraints are Spark SQL text.

A constraint must be true, never null, for a row to enter (a null is a violation, as Delta has it). Each names its
column and says in words what belongs there, which is what a quarantined row is told.

Source: spec G2 (audit tables: history, change feed, constraints).
"""

from dataclasses import dataclass
from enum import Enum

DATABASE = "slacktide"


class Wire(Enum):
    """How a field stands in a record's JSON: (Delta type, type Spark reads it by, pattern of its JSON kind, in words).

    The pattern is over the type that Spark's `schema_of_variant` reports, so that a text where a number belongs is
    refused rather than cast.
    """

    TEXT = ("STRING", "STRING", "STRING", "a text")
    INTEGER = ("BIGINT", "BIGINT", "BIGINT", "an integer")
    NUMBER = ("DOUBLE", "DOUBLE", "BIGINT|DOUBLE|FLOAT|DECIMAL.*", "a number")
    FLAG = ("BOOLEAN", "BOOLEAN", "BOOLEAN", "true or false")
    INSTANT = ("TIMESTAMP", "STRING", "STRING", "a time as 2026-01-31T12:00:00.000Z")
    EPOCH_MS = ("TIMESTAMP", "BIGINT", "BIGINT", "a time in milliseconds since 1970")
    LABELS = ("MAP<STRING, STRING>", "MAP<STRING, STRING>", "OBJECT<.*>", "an object of texts")
    JSON = ("STRING", "STRING", "OBJECT<.*>|ARRAY<.*>", "an object or a list")

    @property
    def delta_type(self) -> str:
        """The column's type."""
        return self.value[0]

    @property
    def json_type(self) -> str:
        """The type by which `from_json` reads the field."""
        return self.value[1]

    @property
    def json_kind(self) -> str:
        """A regular expression over `schema_of_variant` of the field."""
        return self.value[2]

    @property
    def words(self) -> str:
        """What belongs in the field."""
        return self.value[3]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `field` is the record's field it is read from by `wire`, `otherwise` the SQL literal taken for null.

    Without a field, `sql` makes it from the Kafka row (topic, partition, offset, timestamp, value), with `{record}`
    standing for the parsed record and `{batch_key}` for the batch's; where `sql` is None too, the audit job writes it.
    """

    name: str
    type: str
    comment: str
    nullable: bool = False
    field: str | None = None
    wire: Wire | None = None
    otherwise: str | None = None
    sql: str | None = None

    @property
    def ddl(self) -> str:
        """The column in a CREATE TABLE."""
        null = "" if self.nullable else " NOT NULL"
        return f"`{self.name}` {self.type}{null} COMMENT {literal(self.comment)}"


@dataclass(frozen=True, slots=True)
class Check:
    """One CHECK constraint: `sql` must be true; `must` says so in words after the column's name."""

    column: str
    rule: str
    must: str
    sql: str

    @property
    def name(self) -> str:
        """The constraint's name in Delta."""
        return f"{self.column}_{self.rule}"


@dataclass(frozen=True, slots=True)
class DeltaTable:
    """One table: `key` is unique over the table, and `time` (never null) is the same for the same key.

    So a search for a key needs only the files of its time. The table is partitioned by `day`, the UTC day of `time`.
    `topic` is the Kafka topic whose records become rows, None where the audit job writes rows of its own.
    `unstored` are fields that columns are made of and that never become columns themselves.
    `statistics` are the columns whose minima and maxima go into the Delta log: never one that could hold a person's
    data.
    """

    name: str
    comment: str
    key: str
    time: str
    columns: tuple[Column, ...]
    checks: tuple[Check, ...]
    topic: str | None = None
    statistics: tuple[str, ...] = ()
    unstored: tuple[tuple[str, Wire], ...] = ()

    @property
    def properties(self) -> dict[str, str]:
        """Table properties: append only (a guard, which an owner can lift), change feed, statistics, constraints."""
        indexed = dict.fromkeys((self.key, self.time, *self.statistics))
        return {
            "delta.appendOnly": "true",
            "delta.enableChangeDataFeed": "true",
            "delta.checkpointInterval": "50",
            "delta.dataSkippingStatsColumns": ",".join(indexed),
            **{f"delta.constraints.{check.name}": check.sql for check in self.checks},
        }

    def create_sql(self, location: str) -> str:
        """Return the CREATE TABLE at `location`, one commit with columns, comments and constraints."""
        columns = ",\n  ".join(column.ddl for column in self.columns)
        properties = ",\n  ".join(f"{literal(k)} = {literal(v)}" for k, v in self.properties.items())
        return (
            f"CREATE TABLE IF NOT EXISTS delta.`{location}` (\n  {columns}\n) USING delta\nPARTITIONED BY (day)\n"
            f"COMMENT {literal(self.comment)}\nTBLPROPERTIES (\n  {properties}\n)"
        )


def literal(text: str) -> str:
    r"""Return `text` as a Spark SQL string literal.

    >>> literal("it's a \\")
    "'it\\'s a \\\\'"
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
