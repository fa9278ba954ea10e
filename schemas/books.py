"""The books: what each job counted, written to topic `books` in the same transaction as the records themselves.

A book entry is {"job", "kind", "count", "window_end_ms"}: `count` records of `kind` since the entry before. Sums over
the topic (read committed) are exact through restarts, which metrics are not. Ingest balances when

    spans = requests + child + duplicate + late + dead + waiting

where a message that can't be read counts as one span in and one dead letter out, and `waiting` counts spans up as they
begin to wait for others of their trace and down as they stop: its sum is how many wait now. Drift balances when

    read = sliced + late + dead + (still in open slices)

for each monitor (its name is in "monitor"), and so for all together; dead letters count as there. The experiment job
and the SLO job keep the same books, of all their records together ("monitor" is null). The score job balances when

    read = unsampled + no_text + scored + dead

at once, because no request waits in it.
"""

from enum import StrEnum


class IngestKind(StrEnum):
    """Kinds of the ingest job's books."""

    SPANS = "spans"
    REQUESTS = "requests"
    CHILD = "child"
    DUPLICATE = "duplicate"
    LATE = "late"
    DEAD = "dead"
    WAITING = "waiting"


class DriftKind(StrEnum):
    """Kinds of the drift job's books, each counted per monitor, the experiment job's and the SLO job's."""

    READ = "read"
    SLICED = "sliced"
    LATE = "late"
    DEAD = "dead"


class ScoreKind(StrEnum):
    """Kinds of the score job's books."""

    READ = "read"
    UNSAMPLED = "unsampled"  # by no scorer
    NO_TEXT = "no_text"  # neither prompt nor response
    SCORED = "scored"  # every scorer that sampled it answered
    DEAD = "dead"  # it could not be read, or a scorer failed on it


class MetricKind(StrEnum):
    """Kinds of the metrics job's books."""

    POINTS = "points"
    MEASUREMENTS = "measurements"
    BASELINE = "baseline"  # a counter's first report: where it stands, not what was added
    EMPTY = "empty"  # says that there is no value
    DUPLICATE = "duplicate"
    LATE = "late"
    DEAD = "dead"


def metric_balance(counts: dict[str, int]) -> int:
    """Return points in less all that came of them: 0 when the books balance.

    >>> metric_balance({"points": 5, "measurements": 3, "baseline": 1, "dead": 1})
    0
    """
    return counts.get(MetricKind.POINTS, 0) - sum(counts.get(kind, 0) for kind in set(MetricKind) - {MetricKind.POINTS})


def ingest_balance(counts: dict[str, int]) -> int:
    """Return spans in less all that came out or still waits: 0 when the books balance.

    >>> ingest_balance({"spans": 10, "requests": 5, "child": 2, "duplicate": 1, "late": 0, "dead": 1, "waiting": 1})
    0
    """
    accounted = set(IngestKind) - {IngestKind.SPANS}
    return counts.get(IngestKind.SPANS, 0) - sum(counts.get(kind, 0) for kind in accounted)


def drift_open(counts: dict[str, int]) -> int:
    """Return how many requests must still be in open slices: never below 0, and 0 once event time has passed them all.

    >>> drift_open({"read": 10, "sliced": 6, "late": 1, "dead": 1})
    2
    """
    out = (DriftKind.SLICED, DriftKind.LATE, DriftKind.DEAD)
    return counts.get(DriftKind.READ, 0) - sum(counts.get(kind, 0) for kind in out)
