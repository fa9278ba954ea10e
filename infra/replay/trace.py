"""A recorded LLM trace: when requests arrived and how many tokens went in and came out. Nothing else was recorded."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from jobs.kafka_client import ConfigurationError

AZURE_TRACE = Path(__file__).resolve().parent.parent / "data" / "azure_llm_conv_2023.csv.gz"
_COLUMNS = {"TIMESTAMP": pa.timestamp("ns"), "ContextTokens": pa.int64(), "GeneratedTokens": pa.int64()}


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrivals as int64 nanoseconds after the first one, never falling; tokens in and out as int64 of equal length."""

    arrival_ns: NDArray[np.int64]
    input_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.arrival_ns)

    @property
    def duration_ns(self) -> int:
        """From the first arrival to the last."""
        return int(self.arrival_ns[-1])

    def part(self, from_ns: int, until_ns: int) -> "Trace":
        """Return the requests that arrived in [from_ns, until_ns), the first of them at 0.

        >>> import numpy as np
        >>> whole = Trace(np.array([0, 5, 9]), np.array([1, 2, 3]), np.array([4, 5, 6]))
        >>> whole.part(4, 9).input_tokens.tolist()
        [2]
        """
        low, high = np.searchsorted(self.arrival_ns, [from_ns, until_ns])
        arrival_ns = self.arrival_ns[low:high]
        if len(arrival_ns):
            arrival_ns = arrival_ns - arrival_ns[0]
        return Trace(arrival_ns, self.input_tokens[low:high], self.output_tokens[low:high])


def read_trace(path: Path = AZURE_TRACE) -> Trace:
    """Read a trace in the format of the Azure LLM inference trace 2023: CSV, plain or gzip, one row a request.

    Columns: TIMESTAMP (UTC, `2023-11-16 18:15:46.6805900`), ContextTokens, GeneratedTokens. Raises ConfigurationError
    naming file, column and fault. O(rows) time and memory.
    """
    options = pyarrow.csv.ConvertOptions(column_types=_COLUMNS, include_columns=list(_COLUMNS))
    try:
        table = pyarrow.csv.read_csv(path, convert_options=options)
    except FileNotFoundError:
        raise ConfigurationError(str(path), "(file)", "no such file", "Give --trace a CSV that exists") from None
    except (pa.ArrowInvalid, KeyError) as error:
        raise ConfigurationError(
            str(path), ", ".join(_COLUMNS), str(error).splitlines()[0], "Write these three columns, one row a request"
        ) from None
    _check(str(path), table)
    instants, input_tokens, output_tokens = (table.column(name).to_numpy() for name in _COLUMNS)
    instants = instants.astype(np.int64)
    return Trace(instants - instants[0], input_tokens, output_tokens)


def _check(file: str, table: pa.Table) -> None:
    """Raise ConfigurationError unless there are rows, no nulls, no negative tokens, and time never falls."""
    if table.num_rows == 0:
        raise ConfigurationError(file, "(rows)", "there is none", "Give a trace of at least one request")
    for name in _COLUMNS:
        if table.column(name).null_count:
            raise ConfigurationError(file, name, "is empty in some row", "Fill it, or leave the row out")
    if (np.diff(table.column("TIMESTAMP").to_numpy().astype(np.int64)) < 0).any():
        raise ConfigurationError(file, "TIMESTAMP", "falls from one row to the next", "Sort the rows by it")
    for name in ("ContextTokens", "GeneratedTokens"):
        if (table.column(name).to_numpy() < 0).any():
            raise ConfigurationError(file, name, "is negative in some row", "Write a count of tokens")
