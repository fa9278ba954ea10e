"""What a monitor will compute, what it keeps, and how often it alarms by chance: told before anything runs."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jobs.monitors import Monitor
from udfs.budget.binned import BinnedThreshold
from udfs.budget.pairs import PairBudget
from udfs.budget.threshold import ThresholdCurve, source_for, threshold_curve
from udfs.judging.embedding import EmbeddingJudge
from udfs.judging.reference_categories import ReferenceCategories
from udfs.judging.reference_distance import ReferenceDistance
from udfs.judging.reference_divergence import ReferenceDivergence
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.slice_machine import CountWindows, EarlierHour, SliceMachine
from udfs.judging.two_streams import TwoStreams
from udfs.judging.window_judge import Input, InputKind, Values, WindowJudge
from udfs.judging.with_findings import WithFindings
from udfs.sketches.log import LogSketch
from udfs.slicing.packets import pack
from udfs.statistics.ks import ks_p_value

DAY_MS = 86_400_000
BYTES_OF_A_VALUE = 8
DECADE_DAYS = 3652.5
GOVERNED = (ReferenceKs, ReferenceCategories, ReferenceDivergence, ReferenceDistance, TwoStreams)
RARE_ENOUGH = 1e-3  # the onset rate that the shipped curve is asked for; its levels hold the others


@dataclass(frozen=True)
class JudgeExplained:
    """One judge: what it speaks of, what it collects, bytes of a closed slice, and its false alarms in words."""

    features: tuple[str, ...]
    collects: str
    slice_bytes: int
    false_alarms: str


@dataclass(frozen=True)
class MonitorExplained:
    """One monitor, for windows of `samples` requests. Bytes are those of one series."""

    monitor: Monitor
    judges: tuple[JudgeExplained, ...]
    open_slice_bytes: int
    closed_bytes: int


def explained(monitor: Monitor, samples: int) -> MonitorExplained:
    """Work a window of made-up requests through the monitor's own code and say what came of it."""
    overlap = monitor.window_ms // monitor.slide_ms
    n = max(1, samples // overlap)
    judges = tuple(_judge_explained(monitor, judge, n, overlap, samples) for judge in monitor.judges)
    columns = [_made_up(judge, given.kind, n) for judge in monitor.judges for given in judge.inputs]
    inputs = [given for judge in monitor.judges for given in judge.inputs]
    seen: dict[Input, Values] = dict(zip(inputs, columns, strict=True))
    remembered = [given for machine in monitor.machines for given in machine.inputs]
    seen |= {given: _of_kind(given.kind, n) for given in remembered if given not in seen}
    packet = pack(tuple(seen), list(seen.values()))
    machines = tuple(_machine_explained(monitor, machine, samples) for machine in monitor.machines)
    closed = sum(judge.slice_bytes for judge in judges) * overlap + sum(machine.slice_bytes for machine in machines)
    return MonitorExplained(monitor, judges + machines, len(packet), closed)


def _machine_explained(monitor: Monitor, machine: SliceMachine, samples: int) -> JudgeExplained:
    """What remembers slices; its bytes are those of all that it keeps."""
    if isinstance(machine, CountWindows):
        by_count = replace(monitor, slide_ms=0)
        told = _judge_explained(by_count, machine.judge, machine.count, 1, machine.count)
        return replace(told, slice_bytes=BYTES_OF_A_VALUE * machine.count)
    assert isinstance(machine, EarlierHour)  # there are no others
    hour, field = machine.compare, machine.compare.field
    sketch = LogSketch.from_values(np.arange(1.0, samples + 1), hour.relative_accuracy).to_bytes()
    alarms = f"alpha {hour.policy.alpha:g} an hour, D >= {hour.policy.min_effect:g}"
    if hour.budget is not None:
        alarms = _of_pair(monitor, hour.budget, samples, hour.policy.min_effect)
    return JudgeExplained((hour.feature,), field, len(sketch) * hour.lag_hours, alarms)


def _judge_explained(monitor: Monitor, judge: WindowJudge, n: int, overlap: int, samples: int) -> JudgeExplained:
    sketch = judge.sketch(*(_made_up(judge, given.kind, n) for given in judge.inputs))
    verdicts = judge.judge([""] * len(monitor.group_by), monitor.window_ms, [sketch] * overlap)
    return JudgeExplained(
        features=tuple(verdict.feature for verdict in verdicts) or _of_labels(judge),
        collects=", ".join(given.field for given in judge.inputs),
        slice_bytes=len(sketch),
        false_alarms=_false_alarms(monitor, judge, overlap, samples),
    )


def _of_labels(judge: WindowJudge) -> tuple[str, ...]:
    """What a test speaks of that has a verdict for each label: made-up requests have but one."""
    if not isinstance(judge, TwoStreams):
        return ()
    return (f"two_stream_ks({judge.field}:LABEL|{judge.baseline or 'BASELINE'})",)


def _made_up(judge: WindowJudge, kind: InputKind, n: int) -> Values:
    """Values as the judge's own reference has them, where it has one: so that the sketch is as large as in earnest."""
    if kind is not InputKind.NUMBER:
        return _of_kind(kind, n)
    main = judge.main if isinstance(judge, WithFindings) else judge
    points = main.reference.points if isinstance(main, ReferenceKs) else None
    return _of_kind(kind, n) if points is None else np.random.default_rng(0).choice(points, n)


def _of_kind(kind: InputKind, n: int) -> Values:
    if kind is InputKind.TEXT:
        return ["a"] * n
    return np.arange(1.0, n + 1) if kind is InputKind.NUMBER else [np.ones(8)] * n


def _false_alarms(monitor: Monitor, judge: WindowJudge, overlap: int, samples: int) -> str:
    main = judge.main if isinstance(judge, WithFindings) else judge
    beside = _beside_the_budget(monitor, judge)
    if isinstance(main, EmbeddingJudge) and main.budget is not None:
        told = _false_alarms(monitor, main.distribution, overlap, samples)
        return f"distribution of cosines: {told}; the mean cosine keeps its own limit, NOT under the false-alarm budget"
    if isinstance(main, ReferenceCategories | ReferenceDivergence | ReferenceDistance) and main.budget is not None:
        return f"{_by_level(monitor, main, main.budget.at(samples), samples)}{beside}"
    if isinstance(main, TwoStreams) and main.budget is not None:
        return _of_pair(monitor, main.budget, max(1, samples // 2), main.policy.min_effect)
    if not isinstance(main, ReferenceKs):
        return f"by its limit, not by chance{beside}"
    return f"{_of_ks(monitor, main, overlap, samples)}{beside}"


def _of_ks(monitor: Monitor, main: ReferenceKs, overlap: int, samples: int) -> str:
    if main.budget is not None:
        threshold = main.budget.at(samples)
        told = f"{_often(threshold.onset_rate, monitor)} promised: D > {threshold.critical_statistic:.3f}"
        return told if threshold.kept else f"{told}; NOT KEPT: {threshold.reason}"
    curve = _plain_curve(main, overlap, samples)
    if curve is None:
        return f"alpha {main.alpha:g} a window; how often that alarms is not known for such windows"
    level = max(_critical(main, samples), main.min_effect)
    rate = curve.answers[int(np.argmin(np.abs(np.array(curve.ns) - samples)))].rate_of(level)
    return f"{_often(rate, monitor)} if requests are independent: alpha {main.alpha:g}, D > {level:.3f}"


def _by_level(
    monitor: Monitor,
    main: ReferenceCategories | ReferenceDivergence[Any] | ReferenceDistance,
    found: BinnedThreshold,
    samples: int,
) -> str:
    if isinstance(main, ReferenceDivergence):
        limit = f"{main.policy.test} > {max(found.level**2, main.policy.threshold):.3g}"
    elif isinstance(main, ReferenceDistance):
        limit = f"{main.test} > {main.level(samples):.3g}"
    else:
        limit = f"p < {math.exp(-0.5 * found.level**2):.3g}"
    told = f"{_often(found.onset_rate, monitor)} promised: {limit}"
    return told if found.kept else f"{told}; NOT KEPT: {found.reason}"


def _of_pair(monitor: Monitor, budget: PairBudget, n: int, min_effect: float) -> str:
    """What is promised of each pair of windows of n values."""
    found = budget.at(n, n)
    told = f"{_often(found.onset_rate, monitor)} promised: D > {max(found.level, min_effect):.3f}"
    return told if found.kept else f"{told}; NOT KEPT: {found.reason}"


def _beside_the_budget(monitor: Monitor, judge: WindowJudge) -> str:
    """What the monitor's budget doesn't govern, said plainly: nothing where it has none."""
    if monitor.budget is None:
        return ""
    main = judge.main if isinstance(judge, WithFindings) else judge
    if not isinstance(main, GOVERNED):
        return "; NOT under the false-alarm budget"
    has_findings = isinstance(judge, WithFindings)
    return "; its findings keep their own limits, NOT under the false-alarm budget" if has_findings else ""


def _plain_curve(main: ReferenceKs, overlap: int, samples: int) -> ThresholdCurve | None:
    """The shipped curve of a reference of this size; None where there is none, rather than minutes of simulation."""
    points = main.reference.points
    if points is None:
        return None
    try:
        return threshold_curve(
            n_reference=main.reference.n,
            n_points=main.reference.n,
            n=samples,
            overlap=overlap,
            source=source_for(points, 0.0),
            rate=RARE_ENOUGH,
            shipped_only=True,
        )
    except (ValueError, LookupError):
        return None


def _critical(main: ReferenceKs, samples: int) -> float:
    """The least D with p below alpha, to 0.001."""
    size = main.reference.n, samples
    levels = (step / 1000 for step in range(1, 1001))
    return next((d for d in levels if ks_p_value(d, *size, method="asymptotic")[0] < main.alpha), 1.0)


def _often(rate: float, monitor: Monitor) -> str:
    """An onset rate a window in words; windows by count come in no fixed time."""
    if not monitor.slide_ms:
        return f"one in {1 / rate:,.0f} windows" if rate > 0 else "none"
    days = monitor.slide_ms / rate / DAY_MS if rate > 0 else DECADE_DAYS
    if days >= DECADE_DAYS:
        return "less than one in 10 years"
    return f"one in {days:,.1f} days" if days >= 1 else f"{1 / days:,.1f} a day"
