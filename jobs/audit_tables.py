"""The audit tables in a warehouse: made, compared with what the code expects, and registered by name with the views."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from delta.tables import DeltaTable as DeltaTableApi
from pyspark.sql import SparkSession

from jobs.kafka_client import ConfigurationError
from schemas.delta import DATABASE, DeltaTable, literal
from schemas.delta_tables import MODEL_CARDS, TABLES
from schemas.model_card import ModelCard

VIEWS_FOLDER = Path(__file__).parent / "sql" / "views"
_CONSTRAINT = "delta.constraints."


@dataclass(frozen=True, slots=True)
class View:
    """One view: `comment` is the file's first line, `query` the rest."""

    name: str
    comment: str
    query: str


def views() -> list[View]:
    """Read the views of jobs/sql/views, one a file, by name.

    >>> [view.name for view in views()][:1]
    ['alert_timeline']
    """
    return [_view(path) for path in sorted(VIEWS_FOLDER.glob("*.sql"))]


def _view(path: Path) -> View:
    first, _, query = path.read_text().partition("\n")
    return View(path.stem, first.removeprefix("-- ").strip(), query.strip())


def location(warehouse: str, table: DeltaTable) -> str:
    """Where the table lies."""
    return f"{warehouse.rstrip('/')}/{table.name}"


def create_tables(spark: SparkSession, warehouse: str) -> None:
    """Make the tables that are not there yet. Raises ConfigurationError where one is of another version."""
    for table in TABLES:
        path = location(warehouse, table)
        if DeltaTableApi.isDeltaTable(spark, path):
            _require_same(spark, table, path)
        else:
            spark.sql(table.create_sql(path))


def _require_same(spark: SparkSession, table: DeltaTable, path: str) -> None:
    """A table made by another version is never altered silently: the message holds the statement that does it."""
    detail = DeltaTableApi.forPath(spark, path).detail().select("properties").first()
    present = {c.name: c.dataType.simpleString() for c in spark.read.format("delta").load(path).schema}
    constraints = {k.removeprefix(_CONSTRAINT): v for k, v in detail[0].items() if k.startswith(_CONSTRAINT)}
    for field, problem, statement in _differences(table, present, constraints):
        remedy = f"Run in `slacktide sql`: {statement}"
        raise ConfigurationError(path, field, problem, remedy)


def _differences(
    table: DeltaTable, present: dict[str, str], constraints: dict[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (what, problem, the statement that mends it)."""
    alter = f"ALTER TABLE {DATABASE}.{table.name}"
    for column in table.columns:
        found = present.get(column.name)
        if found is None:
            yield column.name, "the table has no such column", f"{alter} ADD COLUMNS (`{column.name}` {column.type})"
        elif found != column.type.replace(" ", "").lower():
            problem = f"is {found.upper()} in the table and {column.type} in this version"
            yield column.name, problem, "-- no statement changes a type: write to another --warehouse"
    expected = {check.name: check.sql for check in table.checks}
    for name in sorted(constraints.keys() - expected.keys() | changed_keys(constraints, expected)):
        yield name, "the table's constraint is of another version", f"{alter} DROP CONSTRAINT {name}"
    for name in sorted(expected.keys() - constraints.keys()):
        yield name, "the table lacks the constraint", f"{alter} ADD CONSTRAINT {name} CHECK ({expected[name]})"


def changed_keys(one: dict[str, str], other: dict[str, str]) -> set[str]:
    """Keys of both that have different values.

    >>> changed_keys({"a": "1", "b": "2"}, {"a": "1", "b": "3"})
    {'b'}
    """
    return {key for key in one.keys() & other.keys() if one[key] != other[key]}


def register(spark: SparkSession, warehouse: str) -> list[str]:
    """Register tables and views by name in database `slacktide`, make it the current one, and return the names.

    A table that is not there is left out, and so are the views that need it. Costs about 0.1 s a name.
    """
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {DATABASE} LOCATION {literal(warehouse)}")
    spark.sql(f"USE {DATABASE}")
    present = [table for table in TABLES if DeltaTableApi.isDeltaTable(spark, location(warehouse, table))]
    for table in present:
        spark.sql(f"CREATE TABLE IF NOT EXISTS {table.name} USING delta LOCATION {literal(location(warehouse, table))}")
    if len(present) < len(TABLES):
        return [table.name for table in present]
    for view in views():
        spark.sql(f"CREATE OR REPLACE VIEW {view.name} COMMENT {literal(view.comment)} AS {view.query}")
    return [table.name for table in present] + [view.name for view in views()]


def put_model_cards(spark: SparkSession, warehouse: str, cards: list[ModelCard]) -> None:
    """Put in the cards that are not there yet; a card's digest is its key, so a row never changes."""
    path = location(warehouse, MODEL_CARDS)
    known = {row[0] for row in spark.read.format("delta").load(path).select(MODEL_CARDS.key).collect()}
    rows = [_card_row(card) for card in {card.digest: card for card in cards}.values() if card.digest not in known]
    if not rows:
        return
    source = spark.sql(" UNION ALL ".join(rows)).alias("source")
    same = f"target.{MODEL_CARDS.key} = source.{MODEL_CARDS.key}"
    target = DeltaTableApi.forPath(spark, path).alias("target")
    target.merge(source, same).whenNotMatchedInsertAll().execute()


def _card_row(card: ModelCard) -> str:
    """SQL text, so that no Python worker has to be started for a row or two."""
    document = card.document
    values = {
        "model_card_digest": literal(card.digest),
        **{name: literal(document[name]) for name in ("name", "version", "schema_version")},
        "owners": f"array({', '.join(map(literal, document['owners']))})",
        "signature_status": literal(document["signature"]["status"]),
        "card": literal(card.canonical_json),
        "registered_at": "current_timestamp()",
        "day": "current_date()",
    }
    return "SELECT " + ", ".join(f"{values[column.name]} AS {column.name}" for column in MODEL_CARDS.columns)
