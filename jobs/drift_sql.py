"""The drift job's SQL: the templates of `jobs/sql/drift*.sql` filled in from the monitors."""

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.monitors import Monitor, Monitors
from jobs.request_slices import MAX_SKEW_MINUTES, WINDOW_END_MS, interval, request_statements
from jobs.settings import JobSettings, source_options, sql_text
from jobs.sql_script import sql_statements
from schemas.books import DriftKind
from udfs.slicing.slicer import RequestSlicer, SlicePlan

JOB = "drift"
FOLLOWED = "followed"
DEAD_LABELS = "dead_labels"


@dataclass(frozen=True)
class Cut:
    """Monitors that cut time alike, by their numbers in the file: they share operators, whatever their windows.

    Every window operator of Flink takes managed memory, so a job of many monitors would soon have too little.
    """

    slide_ms: int
    members: Mapping[int, Monitor]

    @property
    def name(self) -> str:
        """Part of the views' names."""
        return str(self.slide_ms)

    @property
    def windows(self) -> dict[int, list[int]]:
        """The lengths of windows in milliseconds, each with the numbers of the monitors that judge such windows."""
        found: dict[int, list[int]] = {}
        for number, monitor in self.members.items():
            if monitor.judges:
                found.setdefault(monitor.window_ms, []).append(number)
        return found

    @property
    def machines(self) -> bool:
        """Whether any of them judges slices one after the other."""
        return any(monitor.machines for monitor in self.members.values())


def cuts_of(monitors: Monitors) -> list[Cut]:
    """Return the monitors by their slides, in the order in which the slides occur."""
    by_slide: dict[int, dict[int, Monitor]] = {}
    for number, monitor in enumerate(monitors.monitors):
        by_slide.setdefault(monitor.slide_ms, {})[number] = monitor
    return [Cut(slide_ms, members) for slide_ms, members in by_slide.items()]


def view_statements(monitors: Monitors) -> list[str]:
    """Return the views over view `taken`, in order."""
    return [statement for cut in cuts_of(monitors) for statement in _cut_statements(cut)]


def all_verdicts(monitors: Monitors) -> str:
    """Return the query for the verdicts of all monitors, signals apart.

    Views `machine_verdicts_CUT` must be registered for cuts that have slice machines.
    """
    found = []
    for cut in cuts_of(monitors):
        found += [f"SELECT verdict FROM verdicts_{cut.name}_{window_ms}" for window_ms in cut.windows]
        found += [f"SELECT verdict FROM machine_verdicts_{cut.name}"] if cut.machines else []
    return " UNION ALL ".join(found)


def front_statements(settings: JobSettings, monitors: Monitors, until_now: bool = False) -> list[str]:
    """Return the statements before view `taken`. `until_now` bounds the source."""
    return request_statements(
        settings,
        JOB,
        watermark_bound_ms=monitors.watermark_bound_ms,
        idle_timeout_ms=monitors.idle_timeout_ms,
        by_headers=slicer_of(settings, monitors).reads_headers,
        until_now=until_now,
    )


def plan_of(monitor: Monitor) -> SlicePlan:
    """Return how one monitor cuts requests."""
    return SlicePlan(
        monitor.name,
        monitor.group_by,
        monitor.slide_ms,
        monitor.shards,
        monitor.inputs,
        max_series=monitor.max_series,
        forget_ms=monitor.window_ms,
    )


def slicer_of(settings: JobSettings, monitors: Monitors) -> RequestSlicer:
    """Return what takes records apart; its lateness and skew are those of the SQL."""
    plans = tuple(map(plan_of, monitors.monitors))
    return RequestSlicer(JOB, plans, settings.topic("requests"), MAX_SKEW_MINUTES * 60_000)


def _cut_statements(cut: Cut) -> list[str]:
    """The views of one cut: packets, slices, sketches, books; then windows and verdicts for each length of window."""
    packets = [
        f"SELECT {number} AS monitor, series[{number + 1}] AS series, packets[{number + 1}] AS packet,"
        f" sizes[{number + 1}] AS n, MOD(`offset`, {monitor.shards}) AS shard, event_time\n"
        f"FROM taken WHERE sizes[{number + 1}] > 0"
        for number, monitor in cut.members.items()
    ]
    slide = interval(cut.slide_ms)
    statements = sql_statements("drift_slices.sql", cut=cut.name, slide=slide, packets="\nUNION ALL\n".join(packets))
    for window_ms, members in cut.windows.items():
        statements += sql_statements(
            "drift_windows.sql",
            cut=cut.name,
            windows=f"{cut.name}_{window_ms}",
            members=", ".join(map(str, members)),
            slide=slide,
            window=interval(window_ms),
        )
    return statements


def feedback_statements(settings: JobSettings, until_now: bool = False) -> list[str]:
    """Return the table of labels. `until_now` bounds it."""
    reading = {"format": "raw"} | ({"scan.bounded.mode": "latest-offset"} if until_now else {})
    options = source_options(settings, JOB, "feedback", reading)
    return sql_statements("raw_topic.sql", table="feedback", options=options)


def sink_statements(settings: JobSettings, monitors: Monitors) -> list[str]:
    """Return the view of the counts, then one INSERT a sink: verdicts, dead letters, books.

    Where monitors have signals, view `FOLLOWED` must be registered before; `DEAD_LABELS` too where they follow labels.
    """
    summed, entries = ["SUM(counts[1]) AS n_read", "SUM(counts[2]) AS n_dead"], []
    names = [sql_text(monitor.name) for monitor in monitors.monitors]
    for number, name in enumerate(names):
        summed.append(f"SUM(counts[{number + 3}]) AS n_late_{number}")
        counted = {DriftKind.READ: "n_read", DriftKind.DEAD: "n_dead", DriftKind.LATE: f"n_late_{number}"}
        entries += [f"ROW('{kind}', {name}, {count})" for kind, count in counted.items()]
    columns = f"{sql_text(JOB)}, '{DriftKind.SLICED}', ARRAY[{', '.join(names)}][monitor + 1], n, {WINDOW_END_MS}"
    sliced = [f"SELECT {columns} FROM sliced_{cut.name}" for cut in cuts_of(monitors)]
    return sql_statements(
        "drift_sinks.sql",
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
        summed=", ".join(summed),
        entries=", ".join(entries),
        window_end_ms=WINDOW_END_MS,
        all_verdicts=f"SELECT verdict FROM {FOLLOWED}"
        if monitors.followers or monitors.feedback
        else all_verdicts(monitors),
        dead_labels=f"\nUNION ALL\nSELECT topic, letter FROM {DEAD_LABELS}" if monitors.feedback else "",
        all_sliced="\nUNION ALL\n".join(sliced),
    )
