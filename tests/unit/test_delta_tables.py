"""The audit tables' description agrees with itself and with the records it describes."""

import re

import orjson
import pytest

from schemas.alerts import AlertState
from schemas.delta import DeltaTable, Wire, literal
from schemas.delta_tables import (
    ALERTS,
    BOOKS,
    DEAD_LETTERS,
    DECISIONS,
    FEEDBACK,
    INCIDENTS,
    SCORES,
    TABLES,
    TOPIC_TABLES,
    VERDICTS,
)
from schemas.incidents import IncidentEvent
from schemas.topics import ALL_TOPICS
from tests import audit_records as records

ALL = pytest.mark.parametrize("table", TABLES, ids=[table.name for table in TABLES])


@ALL
def test_names_are_of_columns(table: DeltaTable) -> None:
    names = [column.name for column in table.columns]
    assert len(set(names)) == len(names)
    assert {table.key, table.time, "day", *table.statistics} <= set(names)
    by_name = {column.name: column for column in table.columns}
    assert not by_name[table.key].nullable
    assert not by_name[table.time].nullable
    assert by_name[table.time].type == "TIMESTAMP"


@ALL
def test_no_column_is_called_as_one_of_kafkas_rows(table: DeltaTable) -> None:
    """Both stand side by side while a row is made: Spark would call the name ambiguous, and the stream would stop."""
    assert not {column.name for column in table.columns} & {"key", "value", "topic", "partition", "offset", "timestamp"}


@ALL
def test_constraints_have_names_of_their_own_and_speak_of_columns(table: DeltaTable) -> None:
    names = [check.name for check in table.checks]
    assert len(set(names)) == len(names)
    columns = {column.name for column in table.columns}
    for check in table.checks:
        assert check.column in columns
        assert check.column in check.sql
        assert check.must.startswith("must ")


@ALL
def test_every_column_is_explained(table: DeltaTable) -> None:
    sql = table.create_sql("/somewhere")
    for column in table.columns:
        assert column.comment
        assert f"`{column.name}` {column.type}" in sql
    for check in table.checks:
        assert f"'delta.constraints.{check.name}' = {literal(check.sql)}" in sql
    assert "'delta.enableChangeDataFeed' = 'true'" in sql


def test_every_topic_is_one_of_ours() -> None:
    assert {table.topic for table in TOPIC_TABLES} <= {topic.name for topic in ALL_TOPICS}


@pytest.mark.parametrize(
    ("table", "record", "left_out"),
    [
        (VERDICTS, records.verdict(0).to_json(), set()),
        (VERDICTS, records.unknown_verdict(0).to_json(), set()),
        (ALERTS, records.alert(0, AlertState.SUPPRESSED), {"status", "receivers"}),
        (
            INCIDENTS,
            records.incident(0, IncidentEvent.UPDATED, 2),
            {"version", "groupKey", "receiver", "externalURL"},
        ),
        (SCORES, records.score(0).to_json(), set()),
        (SCORES, records.score(3).to_json(), set()),
        (DECISIONS, records.decision(0), set()),
        (FEEDBACK, orjson.dumps(orjson.loads(records.feedback(0)) | {"trace_id": None, "label": None}), {"note"}),
        (DEAD_LETTERS, records.dead_letter(0), {"payload_base64"}),
        (BOOKS, records.book(0, monitor="chat"), set()),
    ],
)
def test_no_field_of_a_record_is_forgotten(table: DeltaTable, record: bytes, left_out: set[str]) -> None:
    """Fields that have no column are named here, so that a new field can't be left out unseen."""
    fields = {column.field: column for column in table.columns if column.field}
    body = orjson.loads(record)
    assert set(body) == set(fields) | left_out
    kinds = {Wire.TEXT: str, Wire.INTEGER: int, Wire.NUMBER: int | float, Wire.FLAG: bool, Wire.INSTANT: str}
    kinds |= {Wire.EPOCH_MS: int, Wire.LABELS: dict, Wire.JSON: dict | list}
    for field, column in fields.items():
        if body[field] is None:
            assert column.nullable or column.otherwise
        else:
            assert isinstance(body[field], kinds[column.wire])


def test_a_persons_data_could_not_be_in_the_logs_statistics() -> None:
    for table in TABLES:
        indexed = set(table.properties["delta.dataSkippingStatsColumns"].split(","))
        assert not indexed & {
            "raw",
            "source",
            "masked_prefix",
            "detail",
            "evidence",
            "series",
            "annotations",
            "labels",
            "series_key",
        }


def test_mask_leaves_a_shape_and_no_content() -> None:
    """The rule in Python, for the expression that Spark runs (the engine test compares what it gives)."""
    pattern = next(check.sql for check in DEAD_LETTERS.checks if check.column == "masked_prefix")
    forbidden = re.search(r"RLIKE '(\[.*?\])'", pattern)
    assert forbidden is not None
    assert not re.search(forbidden[1], "aaaa@aaaaaaa.aaa 0000")
    assert re.search(forbidden[1], "alice")
