"""Reference values from a CSV or Parquet file whose columns are named like the fields of a request."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

from infra.reference_sources.wanted import ATTRIBUTES, CATEGORIES, Columns, Wanted, as_categories
from jobs.kafka_client import ConfigurationError

EVENT_TIME = "event_time_ms"


def columns_of_file(path: Path, wanted: Wanted, *, is_parquet: bool) -> tuple[Columns, bool]:
    """Return the wanted columns (numbers as float64, nulls as NaN, and categories as texts), and whether their rows are
    known to be in the order of time: where the file has a column `event_time_ms` without nulls, by which they are then
    ordered. O(file) memory.

    `attributes.NAME` is a column of that name, else it reaches into a column `attributes` (map or struct). Raises
    ConfigurationError naming file, column and remedy.
    """
    table = _read(path, is_parquet)
    for field, value in wanted.where.items():
        column = _required(table, path, field)
        table = table.filter(pc.fill_null(pc.equal(_texts(column), value), False))
    has_times = _has_times(table)
    if has_times:
        table = table.sort_by(EVENT_TIME)
    columns: Columns = {}
    for feature in wanted.candidates:
        found = _column(table, feature)
        if found is None and wanted.features is None:
            continue
        column = _required(table, path, feature)
        if feature in CATEGORIES:
            columns[feature] = as_categories(_texts(column).to_pylist())
        else:
            columns[feature] = _numbers(path, feature, column)
    return wanted.kept(str(path), columns), has_times


def _has_times(table: pa.Table) -> bool:
    if EVENT_TIME not in table.column_names:
        return False
    times = table.column(EVENT_TIME)
    return pa.types.is_integer(times.type) and not times.null_count


def _read(path: Path, is_parquet: bool) -> pa.Table:
    try:
        return pyarrow.parquet.read_table(path) if is_parquet else pyarrow.csv.read_csv(path)
    except FileNotFoundError:
        raise ConfigurationError(str(path), "(file)", "no such file", "Give a path that exists") from None
    except (pa.ArrowInvalid, OSError) as error:
        kind = "Parquet" if is_parquet else "CSV"
        problem = f"can't be read as {kind}: {str(error).splitlines()[0]}"
        raise ConfigurationError(str(path), "(file)", problem, f"Give a {kind} file") from None


def _column(table: pa.Table, name: str) -> pa.ChunkedArray | None:
    if name in table.column_names:
        return table.column(name)
    holder = ATTRIBUTES.rstrip(".")
    if not name.startswith(ATTRIBUTES) or holder not in table.column_names:
        return None
    attributes, key = table.column(holder), name.removeprefix(ATTRIBUTES)
    if pa.types.is_map(attributes.type):
        return pc.map_lookup(attributes, key, "first")
    if pa.types.is_struct(attributes.type) and attributes.type.get_field_index(key) >= 0:
        return pc.struct_field(attributes, key)
    return None


def _required(table: pa.Table, path: Path, name: str) -> pa.ChunkedArray:
    column = _column(table, name)
    if column is None:
        remedy = f"Its columns are {', '.join(table.column_names)}"
        raise ConfigurationError(str(path), name, "there is no such column", remedy)
    return column


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string())


def _numbers(path: Path, feature: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    try:
        if pa.types.is_boolean(column.type):
            raise pa.ArrowInvalid("true and false")
        numbers: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        problem = f"is of type {column.type} and holds no numbers ({str(error).splitlines()[0]})"
        raise ConfigurationError(str(path), feature, problem, "Leave it out of --features, or write numbers") from None
    return numbers
