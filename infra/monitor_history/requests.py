"""Past requests as values of topic `requests`: from the topic itself, a Parquet file or folder, or a Delta table."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from infra.follow import follow
from jobs.kafka_client import ConfigurationError, KafkaClient, load_kafka_client
from udfs.slicing.body import decoder
from udfs.slicing.fields import vector

ROWS_A_BATCH = 10_000


def requests_of(topic: str | None, parquet: Path | None, kafka: Mapping[str, Any]) -> Iterator[bytes | None]:
    """Return the values of the one source that is given; `kafka` has the options of `infra.commands.kafka_options`.

    Raises ConfigurationError as `requests_of_parquet`, and on a bad Kafka file.
    """
    if parquet is not None:
        return requests_of_parquet(parquet)
    return requests_of_topic(load_kafka_client(kafka["bootstrap_servers"], kafka["kafka_config"]), str(topic))


def requests_of_topic(kafka: KafkaClient, topic: str) -> Iterator[bytes | None]:
    """Yield the values of a topic from its beginning to its end of now, committed ones only."""
    for message in follow(kafka, topic, to_end=True):
        yield message.value()


def requests_of_parquet(path: Path) -> Iterator[bytes]:
    """Yield the rows of a Parquet file, or of all files of a folder, whose columns are named like request fields.

    A Delta table is such a folder: of it only the files that its newest version holds. Raises ConfigurationError where
    there is no Parquet, or no column `event_time_ms`.
    """
    files = _files_of_delta(path) if (path / "_delta_log").is_dir() else path
    try:
        dataset = ds.dataset(files, format="parquet")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            str(path), "--from-parquet", f"can't be read: {error}", "Give a Parquet file"
        ) from None
    if "event_time_ms" not in dataset.schema.names:
        problem = f"has no column event_time_ms but {', '.join(dataset.schema.names)}"
        raise ConfigurationError(str(path), "--from-parquet", problem, "Name columns like fields of a request")
    for batch in dataset.to_batches(batch_size=ROWS_A_BATCH):
        for row in batch.to_pylist():
            yield orjson.dumps({name: _plain(value) for name, value in row.items() if value is not None})


def vectors_of(requests: Iterable[bytes | None], field: str) -> Iterator[NDArray[np.float64] | None]:
    """Yield the vector each readable request has in `field`; None where it has none."""
    decode = decoder((field,)).decode
    for request in requests:
        with suppress(msgspec.DecodeError):
            yield vector(getattr(decode(request or b""), field))


def _plain(value: object) -> object:
    """A map column comes as pairs."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


def _files_of_delta(table: Path) -> list[str]:
    """The data files of the newest version, from the log: its newest checkpoint, then the commits behind it."""
    log = table / "_delta_log"
    living: set[str] = set()
    first = 0
    checkpoints = sorted(log.glob("*.checkpoint*.parquet"))
    if checkpoints:
        newest = checkpoints[-1].name.split(".")[0]
        first = int(newest) + 1
        for part in log.glob(f"{newest}.checkpoint*.parquet"):
            living |= {add["path"] for add in pq.read_table(part, columns=["add"])["add"].to_pylist() if add}
    for commit in sorted(log.glob("*.json")):
        if int(commit.stem) < first:
            continue
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            living |= {action["add"]["path"]} if "add" in action else set()
            living -= {action["remove"]["path"]} if "remove" in action else set()
    return [str(table / path) for path in sorted(living)]
