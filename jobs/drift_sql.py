"""The drift job's SQL: the templates of `jobs/sql/drift*.sql` filled in from the monitors."""

from jobs.monitors import Monitor, Monitors
from jobs.request_slices import MAX_SKEW_MINUTES, WINDOW_END_MS, interval, request_statements
from jobs.settings import JobSettings, sql_text
from jobs.sql_script import sql_statements
from schemas.books import DriftKind
from udfs.slicing.slicer import RequestSlicer, SlicePlan

JOB = "drift"
FOLLOWED = "followed"


def view_statements(monitors: Monitors) -> list[str]:
    """Return the views over view `taken`, in order."""
    return [s for number, monitor in enumerate(monitors.monitors) for s in _monitor_statements(number, monitor)]


def all_verdicts(monitors: Monitors) -> str:
    """Return the query for the verdicts of all monitors, signals apart.

    Views `machine_verdicts_N` must be registered for monitors that have slice machines.
    """
    found = []
    for number, monitor in enumerate(monitors.monitors):
        found += [f"SELECT verdict FROM verdicts_{number}"] if monitor.judges else []
        found += [f"SELECT verdict FROM machine_verdicts_{number}"] if monitor.machines else []
    return " UNION ALL ".join(found)


def front_statements(settings: JobSettings, monitors: Monitors, until_now: bool = False) -> list[str]:
    """Return the statements before view `taken`. `until_now` bounds the source."""
    return request_statements(
        settings,
        JOB,
        watermark_bound_ms=monitors.watermark_bound_ms,
        idle_timeout_ms=monitors.idle_timeout_ms,
        until_now=until_now,
    )


def plan_of(monitor: Monitor) -> SlicePlan:
    """Return how one monitor cuts requests."""
    return SlicePlan(monitor.name, monitor.group_by, monitor.slide_ms, monitor.shards, monitor.inputs)


def slicer_of(settings: JobSettings, monitors: Monitors) -> RequestSlicer:
    """Return what takes records apart; its lateness and skew are those of the SQL."""
    plans = tuple(map(plan_of, monitors.monitors))
    return RequestSlicer(JOB, plans, settings.topic("requests"), monitors.watermark_bound_ms, MAX_SKEW_MINUTES * 60_000)


def _monitor_statements(number: int, monitor: Monitor) -> list[str]:
    """The views of one monitor: packets, slices, sketches, windows, verdicts, books."""
    return sql_statements(
        "drift_monitor.sql",
        number=str(number),
        index=str(number + 1),
        shards=str(monitor.shards),
        slide=interval(monitor.slide_ms),
        window=interval(monitor.window_ms),
    )


def sink_statements(settings: JobSettings, monitors: Monitors) -> list[str]:
    """Return the view of the counts, then one INSERT a sink: verdicts, dead letters, books.

    Where monitors have signals, view `FOLLOWED` must be registered before.
    """
    summed, entries, sliced = ["SUM(counts[1]) AS n_read", "SUM(counts[2]) AS n_dead"], [], []
    for number, monitor in enumerate(monitors.monitors):
        name = sql_text(monitor.name)
        summed.append(f"SUM(counts[{number + 3}]) AS n_late_{number}")
        counted = {DriftKind.READ: "n_read", DriftKind.DEAD: "n_dead", DriftKind.LATE: f"n_late_{number}"}
        entries += [f"ROW('{kind}', {name}, {count})" for kind, count in counted.items()]
        columns = f"{sql_text(JOB)}, '{DriftKind.SLICED}', {name}, n, {WINDOW_END_MS}"
        sliced.append(f"SELECT {columns} FROM sliced_{number}")
    return sql_statements(
        "drift_sinks.sql",
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
        summed=", ".join(summed),
        entries=", ".join(entries),
        window_end_ms=WINDOW_END_MS,
        all_verdicts=f"SELECT verdict FROM {FOLLOWED}" if monitors.followers else all_verdicts(monitors),
        all_sliced="\nUNION ALL\n".join(sliced),
    )
