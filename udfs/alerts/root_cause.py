"""Root cause of an alert: a confidence of three weighted signals, and a ranked list of signals and changes (spec A6).

    confidence = sum of w_i level_i / sum of w_i       over the signals that were observed

with prompt entropy (0.35), attention-head variance (0.40) and GPU memory fragmentation (0.25); `cause_signals` has
their levels. `coverage` is the share of the weights that were observed; with none there is no confidence and the status
is `insufficient_data`. Two of the three levels are 0.5 at the reference's own mean, so a quiet service has a confidence
near 0.3: read it against that.

The list holds these three, prompt-embedding similarity, cache hits and retrieval recall, by how far each is from the
reference's mean (`unusual`), and the changes:

    score = 2^(-age / half_life) * dependency_decay^steps * weight of the kind

where age is how long before the onset the change ended (0 while it went on), and steps how many declared calls lead
from the service to the changed one. A change after the onset is no candidate. All scores go from 0 to 1; of equals,
signals come first, then in the policy's order, changes by time. It is advice: correlation in time, never proof.

Pure and deterministic: any order of observations and changes gives the same list.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from schemas.status import Status
from udfs.alerts.cause_signals import STANDARD, CauseSignal, Level, Observation, level_of
from udfs.alerts.dependencies import Dependencies
from udfs.references.figures import ReferenceFigures

EVERY_SERVICE = "*"


@dataclass(frozen=True, slots=True)
class CausePolicy:
    """Which signals count and how much. Source of signals, weights and normalisations: spec A6; the rest is ours.

    `lookback_seconds` is how old an observation or a change may be at most. A change of a service on which the alerting
    one does not depend counts `unrelated`; of `*`, as its own. `kind_weights` weigh kinds of change, 1 where not named.
    At most `max_causes` are listed, and none with a score below `min_score`. In the alert's own words only those from
    `named_from` on are named: below it is what a quiet signal has, and naming it would accuse the innocent.
    """

    signals: tuple[CauseSignal, ...] = (
        CauseSignal("prompt_entropy", "reference_range", "above", 0.35),
        CauseSignal("attention_head_variance", "z_score", "both", 0.40),
        CauseSignal("gpu_memory_fragmentation", "logistic", "above", 0.25),
        CauseSignal("prompt_embedding_similarity", "z_score", "below"),
        CauseSignal("kv_cache_hit_ratio", "z_score", "below"),
        CauseSignal("retrieval_recall", "z_score", "below"),
    )
    observation_lookback_seconds: float = 900.0
    change_lookback_seconds: float = 7200.0
    half_life_seconds: float = 900.0
    dependency_decay: float = 0.5
    unrelated: float = 0.05
    kind_weights: Mapping[str, float] = field(default_factory=dict)
    max_causes: int = 10
    min_score: float = 0.01
    named_from: float = 0.25


@dataclass(frozen=True, slots=True)
class CandidateChange:
    """One change that may have caused an alert. `ended_ms` is None for what happened at once, at `started_ms`."""

    change_id: str
    kind: str
    service: str
    started_ms: int
    ended_ms: int | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of the ranked list: `score` from 0 to 1, and every number that made it."""

    rank: int
    kind: Literal["signal", "change"]
    name: str
    score: float
    evidence: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RootCause:
    """`confidence` is None where `status` is not `ok`; `causes` are best first."""

    status: Status
    confidence: float | None
    coverage: float
    causes: tuple[Cause, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, all finite."""
        return {**asdict(self), "status": self.status.value, "causes": [asdict(cause) for cause in self.causes]}


def rank_causes(
    observations: Iterable[Observation],
    changes: Iterable[CandidateChange],
    *,
    service: str,
    onset_ms: int,
    at_ms: int,
    dependencies: Dependencies | None = None,
    references: Mapping[str, ReferenceFigures] | None = None,
    policy: CausePolicy | None = None,
) -> RootCause:
    """Return the ranked causes of an alert of `service` that began at `onset_ms` and is looked at at `at_ms`.

    `onset_ms` is the end of the first drifted window of the row that fired (`Alert.active_at_ms`): what happened up to
    it may be a cause. `at_ms` is the end of the window that fired; later observations don't count. `references` serve
    values whose verdict brought no figures. O((n + changes) log n).

    >>> seen = Observation("prompt_entropy", "s", "v1", 60_000, True, value=6.0,
    ...                    reference=ReferenceFigures(5.0, 0.5, 4.0, 6.0))
    >>> deploy = CandidateChange("c1", "deploy", "chat", started_ms=0)
    >>> found = rank_causes([seen], [deploy], service="chat", onset_ms=60_000, at_ms=120_000)
    >>> found.confidence, found.coverage, [(cause.name, round(cause.score, 3)) for cause in found.causes]
    (1.0, 0.35, [('prompt_entropy', 1.0), ('c1', 0.955)])
    """
    policy = policy or CausePolicy()
    found = _levels(observations, at_ms, references or {}, policy)
    entries = [*_signal_causes(found, policy), *_change_causes(changes, service, onset_ms, dependencies, policy)]
    entries = sorted((e for e in entries if e[0] >= policy.min_score), key=lambda e: (-e[0], e[1]))
    causes = tuple(
        Cause(number, "change" if order[0] else "signal", name, score, evidence)
        for number, (score, order, name, evidence) in enumerate(entries[: policy.max_causes], start=1)
    )
    total = sum(signal.weight for signal in policy.signals)
    weight = sum(signal.weight for signal in policy.signals if signal.field in found)
    if not weight:
        return RootCause(Status.INSUFFICIENT_DATA, None, 0.0, causes)
    weighted = sum(s.weight * found[s.field].level.level for s in policy.signals if s.field in found)
    return RootCause(Status.OK, min(1.0, weighted / weight), min(1.0, weight / total), causes)


@dataclass(frozen=True, slots=True)
class _Found:
    observation: Observation
    level: Level
    reference: ReferenceFigures


_Entry = tuple[float, tuple[Any, ...], str, dict[str, Any]]


def _levels(
    observations: Iterable[Observation], at_ms: int, references: Mapping[str, ReferenceFigures], policy: CausePolicy
) -> dict[str, _Found]:
    """Each signal's most unusual series: of every series the newest window, a value before a shift from KS."""
    oldest_ms = at_ms - policy.observation_lookback_seconds * 1000
    signals = {signal.field: signal for signal in policy.signals}
    newest: dict[tuple[str, str], tuple[tuple[int, str], _Found]] = {}
    for seen in observations:
        if seen.field not in signals or not oldest_ms <= seen.window_end_ms <= at_ms:
            continue
        reference = STANDARD if seen.shift is not None else seen.reference or references.get(seen.field)
        measured = seen.value if seen.shift is None else seen.shift
        if reference is None or measured is None:
            continue
        found = _Found(seen, level_of(signals[seen.field], measured, reference), reference)
        place, age = (seen.field, seen.series_key), (seen.window_end_ms, seen.verdict_id)
        if place not in newest or age > newest[place][0]:
            newest[place] = age, found
    worst: dict[str, tuple[tuple[bool, float, str], _Found]] = {}
    for (name, _), (_, found) in newest.items():
        seen = found.observation
        order = (seen.value is not None, found.level.unusual, seen.verdict_id)
        if name not in worst or order > worst[name][0]:
            worst[name] = order, found
    return {name: found for name, (_, found) in worst.items()}


def _signal_causes(found: Mapping[str, _Found], policy: CausePolicy) -> Iterator[_Entry]:
    weight = sum(signal.weight for signal in policy.signals if signal.field in found)
    for number, signal in enumerate(policy.signals):
        if signal.field not in found:
            continue
        one = found[signal.field]
        share = signal.weight / weight if signal.weight else 0.0
        seen = one.observation
        evidence = {
            "normalisation": signal.normalisation,
            "wrong_side": signal.wrong_side,
            "level": one.level.level,
            "unusual": one.level.unusual,
            "z": one.level.z,
            "value": seen.value,
            "shift": seen.shift,
            "reference": asdict(one.reference),
            "weight": signal.weight,
            "weight_used": share,
            "contribution": share * one.level.level,
            "drifted": seen.drifted,
            "verdict_id": seen.verdict_id,
            "window_end_ms": seen.window_end_ms,
        }
        yield one.level.unusual, (0, number), signal.field, evidence


def _change_causes(
    changes: Iterable[CandidateChange],
    service: str,
    onset_ms: int,
    dependencies: Dependencies | None,
    policy: CausePolicy,
) -> Iterator[_Entry]:
    declared = dependencies or Dependencies()
    for change in {found.change_id: found for found in sorted(changes, key=_order)}.values():
        ended_ms = change.started_ms if change.ended_ms is None else max(change.started_ms, change.ended_ms)
        age_seconds = max(0, onset_ms - ended_ms) / 1000
        if change.started_ms > onset_ms or age_seconds > policy.change_lookback_seconds:
            continue
        steps = 0 if change.service == EVERY_SERVICE else declared.distance(service, change.service)
        by_time = 2.0 ** (-age_seconds / policy.half_life_seconds)
        by_dependency = policy.unrelated if steps is None else policy.dependency_decay**steps
        by_kind = min(1.0, max(0.0, policy.kind_weights.get(change.kind, 1.0)))
        evidence = {
            "kind": change.kind,
            "service": change.service,
            "summary": change.summary,
            "started_ms": change.started_ms,
            "ended_ms": change.ended_ms,
            "age_seconds": age_seconds,
            "dependency_steps": steps,
            "time_score": by_time,
            "dependency_score": by_dependency,
            "kind_weight": by_kind,
        }
        yield by_time * by_dependency * by_kind, (1, age_seconds, change.change_id), change.change_id, evidence


def _order(change: CandidateChange) -> tuple[Any, ...]:
    """So that of one id said twice, the one that counts never depends on the order in which they came."""
    ended_ms = -1 if change.ended_ms is None else change.ended_ms
    return change.change_id, change.started_ms, ended_ms, change.kind, change.service, change.summary
