"""From a Kafka row to a row of its Delta table, or to the faults that keep it out: Spark SQL text, no engine.

No expression may raise on any bytes: one such record would stop the stream for good. Dead letters carry raw bytes, so
of them nothing but a masked prefix leaves the last stage, faulty or not.
"""

from schemas.delta import Column, DeltaTable, Wire, literal
from schemas.delta_tables import masked_prefix_sql

FAULTS, RAW, RAW_ENCODING, LENGTH = "_faults", "_raw", "_raw_encoding", "_length"
_KAFKA = ["topic", "partition", "offset", "timestamp", "value"]
_INSTANT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|(\+|-)[0-9]{2}:[0-9]{2})\z"
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999: beyond them Spark raises


def stages(table: DeltaTable, batch_key: str) -> list[list[str]]:
    """Return the column lists for successive `selectExpr` calls over rows of a Kafka source.

    After the last, a row has the columns of `table` (null where unreadable) and `FAULTS` (ARRAY<STRING>: column and
    what belongs there, empty where the row is good), and what quarantine would keep of it: `LENGTH` of the value in
    bytes, `RAW` and `RAW_ENCODING`. They are stages so that each parse happens once, and is then referred to by name.
    """
    return [
        [*_KAFKA, "CAST(value AS STRING) AS _bytes_as_text"],
        [*_KAFKA, "IF(is_valid_utf8(_bytes_as_text), _bytes_as_text, NULL) AS _text"],
        [*_KAFKA, "_text", "try_parse_json(_text) AS _body", f"{_from_json(table)} AS _parsed"],
        [*_KAFKA, "_text", "_body", "array_size(_parsed) AS _records", "get(_parsed, 0) AS _record"],
        [*_KAFKA, "_text", "_body", "_records", "_record", *_columns(table, batch_key)],
        ["*", f"{_shape_faults(table)} AS _shape_faults"],
        ["*", f"IF(size(_shape_faults) > 0, _shape_faults, {_content_faults(table)}) AS {FAULTS}"],
        [
            *(f"`{column.name}`" for column in table.columns),
            FAULTS,
            f"coalesce(octet_length(value), 0) AS {LENGTH}",
            f"{_raw(table)} AS {RAW}",
            f"{_raw_encoding(table)} AS {RAW_ENCODING}",
        ],
    ]


def _from_json(table: DeltaTable) -> str:
    """In brackets, because `from_json` of an object would leave out whatever follows it without a word."""
    fields = [(column.field, column.wire) for column in table.columns if column.field and column.wire]
    struct = ", ".join(f"`{name}`: {wire.json_type}" for name, wire in [*fields, *table.unstored])
    options = "map('allowSingleQuotes', 'false')"
    return f"from_json(concat('[', _text, ']'), 'ARRAY<STRUCT<{struct}>>', {options})"


def _columns(table: DeltaTable, batch_key: str) -> list[str]:
    time = next(column for column in table.columns if column.name == table.time)
    day = f"CAST({_value(time, batch_key)} AS DATE)"
    return [f"{day if c.name == 'day' else _value(c, batch_key)} AS `{c.name}`" for c in table.columns]


def _value(column: Column, batch_key: str) -> str:
    if column.field is None:
        return str(column.sql).replace("{record}", "_record").replace("{batch_key}", literal(batch_key))
    read = f"_record.`{column.field}`"
    if column.otherwise is not None:
        read = f"coalesce({read}, {column.otherwise})"
    if column.wire is Wire.INSTANT:
        return f"IF({read} RLIKE {literal(_INSTANT)}, try_cast({read} AS TIMESTAMP), NULL)"
    if column.wire is Wire.EPOCH_MS:
        return f"IF({read} BETWEEN {_FIRST_MS} AND {_LAST_MS}, timestamp_millis({read}), NULL)"
    return read


def _shape_faults(table: DeltaTable) -> str:
    """Faults of the record as such, else of its fields: the wrong kind, or missing."""
    whole = [
        _fault("_text IS NULL", "value: must not be empty, and must be UTF-8"),
        _fault("_text IS NOT NULL", "value: must be one JSON object"),
    ]
    missing = [
        _fault(f"`{column.name}` IS NULL AND _record.`{column.field}` IS NULL", f"{column.field}: must not be missing")
        for column in table.columns
        if column.field and not column.nullable and not column.otherwise
    ]
    return f"IF(_record IS NULL OR _records <> 1, {_array(whole)}, {_array([*_kind_faults(table), *missing])})"


def _content_faults(table: DeltaTable) -> str:
    """Constraints broken, and what no single field shows."""
    made = [
        _fault(f"`{column.name}` IS NULL", f"{column.name}: can't be made from the record")
        for column in table.columns
        if not column.field and not column.nullable
    ]
    checks = [_fault(f"NOT coalesce({check.sql}, false)", f"{check.column}: {check.must}") for check in table.checks]
    strict = _fault("_body IS NULL", "value: must be strict JSON, without NaN and without a name twice")
    return _array([*made, *checks, strict])


def _array(faults: list[str]) -> str:
    return "array_compact(array(\n  " + ",\n  ".join(faults) + "\n))"


def _kind_faults(table: DeltaTable) -> list[str]:
    fields = [(column.field, column.wire, column.name) for column in table.columns]
    faults = []
    for field, wire, name in [*fields, *((field, wire, None) for field, wire in table.unstored)]:
        if field is None or wire is None:
            continue
        kind = f"schema_of_variant(variant_get(_body, '$.{field}', 'variant'))"
        unread = f"_record.`{field}` IS NOT NULL AND `{name}` IS NULL" if name else "false"
        fault = f"coalesce(NOT {kind} RLIKE {literal(f'^({wire.json_kind}|VOID)$')}, false) OR ({unread})"
        faults.append(_fault(fault, f"{field}: must be {wire.words}"))
    return faults


def _fault(condition: str, message: str) -> str:
    return f"IF({condition}, {literal(message)}, NULL)"


def _raw(table: DeltaTable) -> str:
    if _is_masked(table):
        return masked_prefix_sql("value")
    return "coalesce(_text, base64(value))"


def _raw_encoding(table: DeltaTable) -> str:
    return "'masked'" if _is_masked(table) else "IF(_text IS NOT NULL OR value IS NULL, 'utf-8', 'base64')"


def _is_masked(table: DeltaTable) -> bool:
    """A table that leaves fields out of Delta must not let them in by way of quarantine."""
    return bool(table.unstored)
