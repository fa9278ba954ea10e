"""Verdict and alert records, from a file or from topics; None for each that can't be read."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet

from infra.errors import StackError
from infra.follow import follow
from jobs.kafka_client import KafkaClient
from schemas.topics import ALERTS, VERDICTS

Record = dict[str, Any]


def records_of_topics(kafka: KafkaClient, prefix: str, since_ms: int | None) -> Iterator[Record | None]:
    """Yield the committed verdicts, then the committed alerts, published from `since_ms` on. Raises StackError."""
    for topic in (VERDICTS, ALERTS):
        for message in follow(kafka, prefix + topic.name, since_ms=since_ms, to_end=True):
            yield _record(message.value())


def records_of_verdicts(kafka: KafkaClient, prefix: str, since_ms: int | None) -> Iterator[Record | None]:
    """Yield the committed verdicts published from `since_ms` on. Raises StackError."""
    for message in follow(kafka, prefix + VERDICTS.name, since_ms=since_ms, to_end=True):
        yield _record(message.value())


def records_of_file(path: Path) -> Iterator[Record | None]:
    """Yield the records of a Parquet file (by its name), or of one with a JSON object a line. Raises StackError."""
    return _of_parquet(path) if path.suffix.lower() == ".parquet" else _of_lines(path)


def sorted_in(records: Iterable[Record | None], take: Callable[[Record], None]) -> int:
    """Hand every record to `take`, and return how many were skipped: unreadable ones, and those it can't make use of.

    >>> found = []
    >>> sorted_in([{"a": 1}, None, {"b": 2}], lambda record: found.append(record["a"])), found
    (2, [1])
    """
    n_skipped = 0
    for record in records:
        try:
            if record is None:
                raise ValueError("unreadable")
            take(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            n_skipped += 1
    return n_skipped


def none_in_file(path: Path, what: str) -> StackError:
    """Return the error of a file that holds nothing of what is asked for."""
    written = '`slacktide sql -e "TABLE verdicts" --format json` or `slacktide monitors backtest --write FILE`'
    return StackError(f"{path} holds no {what}", f"Give a file that {written} wrote, or a Parquet file of verdicts")


def _of_parquet(path: Path) -> Iterator[Record | None]:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise StackError(
            f"{path} can't be read as Parquet: {str(error).splitlines()[0]}", "Give another file"
        ) from None


def _of_lines(path: Path) -> Iterator[Record | None]:
    try:
        with path.open("rb") as file:
            yield from (_record(line) for line in file if line.strip())
    except OSError as error:
        raise StackError(f"{path} can't be read ({error.strerror})", "Give another file") from None


def _record(value: bytes | None) -> Record | None:
    try:
        record = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
