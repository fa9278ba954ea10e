"""A Spark session for queries on the embedded stack's tables."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from infra.paths import jars
from jobs.audit_session import open_session


def open_query_session(state: Path, log: Path) -> SparkSession:
    """Start a session for queries; whatever its JVM writes to stderr goes to `log`, not between a user's results."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with _standard_error_to(log):
        return open_session("slacktide-sql", jars=jars("spark", state))


@contextlib.contextmanager
def _standard_error_to(log: Path) -> Iterator[None]:
    """Lend `log` as file descriptor 2 to the processes started meanwhile."""
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
