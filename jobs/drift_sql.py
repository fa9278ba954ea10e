"""The drift job's SQL: the templates of `jobs/sql/drift*.sql` filled in from the monitors."""

from jobs.monitors import ATTRIBUTE, Monitor, Monitors
from jobs.settings import JobSettings, sink_options, source_options, sql_text
from jobs.sql_script import sql_statements
from schemas.books import DriftKind
from schemas.dead_letters import Reason
from schemas.requests import flink_columns
from udfs.judging.window_judge import Input
from udfs.lost_requests import JOB, NONE_SEEN

# The ingest job refuses these as clock_skew; should one come from elsewhere, it must not move the watermark.
MAX_SKEW_MINUTES = 5

_USABLE_MS = (
    "CASE WHEN event_time_ms >= 0 AND TO_TIMESTAMP_LTZ(event_time_ms, 3)"
    f" <= `timestamp` + INTERVAL '{MAX_SKEW_MINUTES}' MINUTE THEN event_time_ms END"
)
_BOOKS = {"value.format": "json", "value.fields-include": "ALL"}
_WINDOW_END_MS = "UNIX_TIMESTAMP(CAST(window_end AS STRING)) * 1000"


def drift_statements(settings: JobSettings, monitors: Monitors, until_now: bool = False) -> list[str]:
    """Return the job's statements in order: tables, views, then one INSERT a sink. `until_now` bounds the source."""
    bounded = {"scan.bounded.mode": "latest-offset"} if until_now else {}
    reading = {
        "format": "json",
        "json.ignore-parse-errors": "true",
        "scan.watermark.idle-timeout": f"{monitors.idle_timeout_ms} ms",
        **bounded,
    }
    bound_ms, slides = monitors.watermark_bound_ms, _slides(monitors)
    statements = sql_statements(
        "drift.sql",
        columns=flink_columns(["event_time_ms", *monitors.columns]),
        kept=", ".join(_kept(monitors)),
        usable_ms=_USABLE_MS,
        watermark_bound=_interval(bound_ms),
        late_for_any="(" + " OR ".join(_late(slide, bound_ms) for slide in slides) + ")",
        late_names=", ".join(
            f"CASE WHEN {_late(m.slide_ms, bound_ms)} THEN {sql_text(m.name)} END" for m in monitors.monitors
        ),
        max_skew_minutes=str(MAX_SKEW_MINUTES),
        none_seen=str(NONE_SEEN),
        clock_skew=Reason.CLOCK_SKEW,
        bad_time=Reason.BAD_TIME,
        late=Reason.LATE,
        requests=source_options(settings, JOB, "requests", reading),
        verdicts=sink_options(settings, JOB, "verdicts", _keyed("series_key")),
        dead_letters=sink_options(settings, JOB, "dead_letters", _keyed("topic")),
        books=sink_options(settings, JOB, "books", _keyed("job") | _BOOKS),
    )
    for number, monitor in enumerate(monitors.monitors):
        statements += _monitor_statements(number, monitor, bound_ms)
    return statements + _sink_statements(settings, monitors)


def _keyed(field: str) -> dict[str, str]:
    return {"key.format": "raw", "key.fields": field, "value.format": "raw", "value.fields-include": "EXCEPT_KEY"}


def _late(slide_ms: int, watermark_bound_ms: int) -> str:
    """Whether the slice of a request had closed; Flink's own rule is: last millisecond <= watermark."""
    last_ms = f"usable_ms - MOD(usable_ms, {slide_ms}) + {slide_ms - 1}"
    return (
        f"(COALESCE({last_ms} <= newest_ms - {watermark_bound_ms}, FALSE)"
        f" OR COALESCE(TO_TIMESTAMP_LTZ({last_ms}, 3) <= CURRENT_WATERMARK(event_time), FALSE))"
    )


def _slides(monitors: Monitors) -> list[int]:
    """The slides that monitors cut time by, each once: lateness is a matter of the slide alone."""
    return sorted({monitor.slide_ms for monitor in monitors.monitors})


def _monitor_statements(number: int, monitor: Monitor, watermark_bound_ms: int) -> list[str]:
    """The views of one monitor: requests on time, slices, sketches, windows, verdicts, books."""
    labels = "".join(f"`{label}`, " for label in monitor.group_by)
    judges = range(len(monitor.judges))
    column = {given: f"v{position}" for position, given in enumerate(_inputs(monitor))}
    return sql_statements(
        "drift_monitor.sql",
        number=str(number),
        shards=str(monitor.shards),
        is_late=_late(monitor.slide_ms, watermark_bound_ms),
        slide=_interval(monitor.slide_ms),
        window=_interval(monitor.window_ms),
        labels=labels,
        # A series without a label is one of its own: the empty label.
        label_values="".join(f"COALESCE(`{label}`, '') AS `{label}`, " for label in monitor.group_by),
        feature_values=", ".join(
            f"CAST({_quoted(given.field)} AS {given.kind.value}) AS {name}" for given, name in column.items()
        ),
        collected=", ".join(f"ARRAY_AGG({name}) AS {name}" for name in column.values()),
        sketched=", ".join(
            f"sketch_{number}_{j}({', '.join(column[given] for given in judge.inputs)}) AS s{j}"
            for j, judge in enumerate(monitor.judges)
        ),
        merged=", ".join(f"ARRAY_AGG(s{j}) AS s{j}" for j in judges),
        judged=labels + ", ".join(f"s{j}" for j in judges),
    )


def _inputs(monitor: Monitor) -> list[Input]:
    """What the slices of a monitor collect, each once however many judges want it."""
    return list(dict.fromkeys(given for judge in monitor.judges for given in judge.inputs))


def _sink_statements(settings: JobSettings, monitors: Monitors) -> list[str]:
    """The views over all monitors, and one INSERT a sink: verdicts, dead letters, books."""
    counted, skipped, sliced = [], [], []
    for number, monitor in enumerate(monitors.monitors):
        name, late = sql_text(monitor.name), f"n_late_{monitor.slide_ms}"
        kinds = {DriftKind.READ: "n_read", DriftKind.DEAD: "n_dead", DriftKind.LATE: late}
        counted += [f"ROW('{kind}', {name}, {count})" for kind, count in kinds.items()]
        skipped += [f"ROW('{kind}', {name}, n_skipped)" for kind in (DriftKind.READ, DriftKind.DEAD)]
        columns = f"{sql_text(JOB)}, '{DriftKind.SLICED}', {name}, n, {_WINDOW_END_MS}"
        sliced.append(f"SELECT {columns} FROM sliced_{number}")
    return sql_statements(
        "drift_sinks.sql",
        job=sql_text(JOB),
        topic=sql_text(settings.topic("requests")),
        late_columns=", ".join(f"{_late(s, monitors.watermark_bound_ms)} AS is_late_{s}" for s in _slides(monitors)),
        late_counts=", ".join(f"COUNT(*) FILTER (WHERE is_late_{s}) AS n_late_{s}" for s in _slides(monitors)),
        counted_entries=", ".join(counted),
        skipped_entries=", ".join(skipped),
        window_end_ms=_WINDOW_END_MS,
        all_verdicts=" UNION ALL ".join(f"SELECT verdict FROM verdicts_{n}" for n in range(len(monitors.monitors))),
        all_sliced="\nUNION ALL\n".join(sliced),
    )


def _kept(monitors: Monitors) -> list[str]:
    """The labels and features, each once; of the attributes only those that are watched."""
    labels = [label for monitor in monitors.monitors for label in monitor.group_by]
    fields = [name for monitor in monitors.monitors for name in monitor.fields]
    return [_column(name) for name in dict.fromkeys(labels + fields)]


def _column(name: str) -> str:
    if name.startswith(ATTRIBUTE):
        return f"attributes[{sql_text(name.removeprefix(ATTRIBUTE))}] AS {_quoted(name)}"
    return _quoted(name)


def _quoted(name: str) -> str:
    """Return a name as a SQL identifier; an attribute's name may hold anything."""
    return "`" + name.replace("`", "``") + "`"


def _interval(milliseconds: int) -> str:
    """Return a duration as a SQL literal.

    >>> _interval(90_061_500)
    "INTERVAL '1 01:01:01.500' DAY TO SECOND(3)"
    """
    seconds, millis = divmod(milliseconds, 1000)
    days, rest = divmod(seconds, 86_400)
    hours, minutes = divmod(rest // 60, 60)
    return f"INTERVAL '{days} {hours:02}:{minutes:02}:{rest % 60:02}.{millis:03}' DAY TO SECOND(3)"
