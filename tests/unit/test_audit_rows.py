"""What the SQL that splits records must hold to, whatever it says; what it does is tested in the engine tests."""

import re

import pytest

from jobs.audit_rows import FAULTS, LENGTH, RAW, RAW_ENCODING, stages
from schemas.delta import DeltaTable
from schemas.delta_tables import DEAD_LETTERS, TOPIC_TABLES, VERDICTS

TABLES = pytest.mark.parametrize("table", TOPIC_TABLES, ids=[table.name for table in TOPIC_TABLES])


def _all_sql(table: DeltaTable) -> str:
    return "\n".join(expression for stage in stages(table, "batch") for expression in stage)


@TABLES
def test_last_stage_gives_the_tables_columns_and_what_quarantine_needs(table: DeltaTable) -> None:
    names = [re.split(r" AS ", expression)[-1].strip("`") for expression in stages(table, "batch")[-1]]
    assert names == [*(column.name for column in table.columns), FAULTS, LENGTH, RAW, RAW_ENCODING]


@TABLES
def test_every_constraint_and_every_field_is_looked_at(table: DeltaTable) -> None:
    sql = _all_sql(table)
    for check in table.checks:
        assert f"NOT coalesce({check.sql}, false)" in sql
    for column in table.columns:
        if column.field:
            assert f"'{column.field}: must be " in sql.replace('"', "'")
        if column.field and not column.nullable and not column.otherwise:
            assert f"'{column.field}: must not be missing'" in sql


@TABLES
def test_nothing_that_raises_on_bad_input_is_used(table: DeltaTable) -> None:
    """CAST of a text, parse_json, element access out of bounds and unbase64 would each stop the stream for good."""
    sql = _all_sql(table)
    assert not re.search(r"(?<!try_)parse_json|(?<!\w)unbase64|(?<!\w)to_timestamp|element_at|\]\[", sql)
    assert not re.search(r"(?<!try_)cast\(_record", sql, re.IGNORECASE)


def test_a_dead_letters_bytes_are_nowhere_but_masked() -> None:
    last = "\n".join(stages(DEAD_LETTERS, "batch")[-1])
    assert "payload_base64" not in last
    assert "_text" not in last
    assert "regexp_replace" in next(e for e in stages(DEAD_LETTERS, "batch")[-1] if e.endswith(f"AS {RAW}"))


def test_other_records_are_kept_whole() -> None:
    raw = next(expression for expression in stages(VERDICTS, "batch")[-1] if expression.endswith(f"AS {RAW}"))
    assert raw == f"coalesce(_text, base64(value)) AS {RAW}"
