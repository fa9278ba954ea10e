"""Days of requests made of the real trace, with incidents: the replay's own service model, in memory.

Real are tokens and the arrivals within the hour that the trace covers, of which every second request is taken, the
other half in each second repetition. Made up are all that `infra/replay/service_model.yaml` says, a day's swing of the
rate, and a slow random wander of it: without them a threshold could be set once for all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from infra.quiet.incidents import DAY_SECONDS, Incident, schedule
from infra.quiet.score import Span
from infra.replay.request_block import Arrivals, RequestBlock
from infra.replay.service_model import ServiceModel, load_constants
from infra.replay.trace import Trace, read_trace

Floats = NDArray[np.float64]
BEGIN_MS = 1_767_571_200_000  # Monday, 2026-01-05T00:00:00Z
SERVICE = "vllm-chat"
FIELDS = (
    "input_tokens",
    "output_tokens",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "end_to_end_seconds",
    "queue_seconds",
    "kv_cache_hit_ratio",
    "prompt_entropy",
)


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """One stream: `quiet_days` without incident, then `incident_days` with eight each.

    `load` is how many times the trace's rate requests come on average: less than the service can take at its busiest.
    `swing` and `wander` are the amplitude of the day's swing and the standard deviation of the logarithm of the wander,
    which forgets itself in `wander_seconds`.
    """

    name: str
    seed: int
    quiet_days: int = 2
    incident_days: int = 2
    one_in: int = 2
    load: float = 0.65
    swing: float = 0.5
    wander: float = 0.08
    wander_seconds: float = 7200.0
    error_share: float = 0.01
    null_share: float = 0.002

    @property
    def days(self) -> int:
        """All its days."""
        return self.quiet_days + self.incident_days

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """What is injected: of the seed alone."""
        return schedule(np.random.default_rng([self.seed, 1]), self.quiet_days, self.incident_days)

    @property
    def spans(self) -> tuple[Span, ...]:
        """The labels of its incidents."""
        return tuple(
            Span(self.name, i.kind, BEGIN_MS + round(i.start_seconds * 1000), BEGIN_MS + round(i.end_seconds * 1000))
            for i in self.incidents
        )


def requests_of(plan: StreamPlan) -> Iterator[bytes]:
    """Yield the values of topic `requests`, in order of event time. About 20 microseconds a request."""
    rng = np.random.default_rng([plan.seed, 2])
    arrivals = _arrivals(plan, read_trace(), rng)
    at_seconds = arrivals.arrival_ns / 1e9
    for incident in _of_kind(plan, "token_length_drift"):
        hit = _during(incident, at_seconds)
        arrivals.input_tokens[hit] = np.rint(arrivals.input_tokens[hit] * incident.size).astype(np.int64)
    block = _served(plan, arrivals, at_seconds, rng)
    return _bodies(plan, block, at_seconds, rng)


def _arrivals(plan: StreamPlan, trace: Trace, rng: np.random.Generator) -> Arrivals:
    """The trace over and over, its clock run faster and slower so that requests come at the plan's rate."""
    seconds = np.arange(0, plan.days * DAY_SECONDS + 1, 60.0)
    clock = np.concatenate([[0.0], np.cumsum(_rate(plan, seconds, rng)[:-1] * 60.0)])
    lap_ns = trace.duration_ns + trace.duration_ns // len(trace)
    laps = range(int(clock[-1] * 1e9 // lap_ns) + 1)
    rows = [np.arange(lap % plan.one_in, len(trace), plan.one_in) for lap in laps]
    on_clock = np.concatenate([trace.arrival_ns[row] + lap * lap_ns for lap, row in zip(laps, rows, strict=True)]) / 1e9
    row = np.concatenate(rows)[on_clock < clock[-1]]
    arrival_ns = np.interp(on_clock[on_clock < clock[-1]], clock, seconds) * 1e9
    return Arrivals(np.rint(arrival_ns).astype(np.int64), trace.input_tokens[row], trace.output_tokens[row])


def _rate(plan: StreamPlan, seconds: Floats, rng: np.random.Generator) -> Floats:
    """How many times the trace's rate, by the minute."""
    phase = seconds / DAY_SECONDS - 0.375  # least at 3, most at 15 o'clock
    rate: Floats = plan.load * (1 + plan.swing * np.sin(2 * np.pi * phase))
    keep = np.exp(-60.0 / plan.wander_seconds)
    wander, steps = 0.0, rng.normal(0.0, plan.wander * np.sqrt(1 - keep**2), seconds.size)
    for minute, step in enumerate(steps.tolist()):
        wander = keep * wander + step
        rate[minute] *= np.exp(wander)
    for incident in _of_kind(plan, "traffic_drop"):
        rate[_during(incident, seconds)] *= incident.size
    return rate


def _served(plan: StreamPlan, arrivals: Arrivals, at_seconds: Floats, rng: np.random.Generator) -> RequestBlock:
    """All requests in one queue; while it builds up, there are fewer slots than the load needs."""
    model, factor = ServiceModel(load_constants(), rng, 1 / plan.one_in), _slowdown(plan, at_seconds)
    whole, blocks, low = model.slots, [], 0
    for incident in sorted(_of_kind(plan, "queue_build_up"), key=lambda incident: incident.start_seconds):
        first, last = np.searchsorted(at_seconds, (incident.start_seconds, incident.end_seconds)).tolist()
        blocks.append(model.serve(_part(arrivals, low, first), factor[low:first]))
        came_per_second = (last - first) / (incident.end_seconds - incident.start_seconds)
        model.slots = max(1, round(incident.size * came_per_second * _busy_seconds(blocks[-1])))
        blocks.append(model.serve(_part(arrivals, first, last), factor[first:last]))
        model.slots, low = whole, last
    blocks.append(model.serve(_part(arrivals, low, len(arrivals)), factor[low:]))
    fields = {name: np.concatenate([block.fields[name] for block in blocks]) for name in blocks[0].fields}
    starts, ends = (np.concatenate([getattr(block, name) for block in blocks]) for name in ("start_ns", "end_ns"))
    return RequestBlock(starts, ends, fields)


def _part(arrivals: Arrivals, low: int, high: int) -> Arrivals:
    part = slice(low, high)
    return Arrivals(arrivals.arrival_ns[part], arrivals.input_tokens[part], arrivals.output_tokens[part])


def _busy_seconds(block: RequestBlock) -> float:
    """How long a request holds its slot, on average."""
    return float(np.mean(block.fields["end_to_end_seconds"] - block.fields["queue_seconds"]))


def _slowdown(plan: StreamPlan, at_seconds: Floats) -> Floats:
    factor = np.ones(at_seconds.size)
    for incident in _of_kind(plan, "latency_step"):
        factor[_during(incident, at_seconds)] = incident.size
    for incident in _of_kind(plan, "latency_creep"):
        hit = _during(incident, at_seconds)
        gone = (at_seconds[hit] - incident.start_seconds) / (incident.end_seconds - incident.start_seconds)
        factor[hit] = 1 + (incident.size - 1) * gone
    return factor


def _bodies(plan: StreamPlan, block: RequestBlock, at_seconds: Floats, rng: np.random.Generator) -> Iterator[bytes]:
    n, fields = len(block), block.fields
    for incident in _of_kind(plan, "cache_hit_collapse"):
        _lose_cache(fields, _during(incident, at_seconds), incident.size)
    error = rng.random(n) < _share(plan, "error_burst", plan.error_share, at_seconds)
    has_no_count = rng.random(n) < _share(plan, "null_burst", plan.null_share, at_seconds)
    columns: dict[str, list[Any]] = {name: fields[name].tolist() for name in FIELDS}
    for row in np.flatnonzero(has_no_count).tolist():
        columns["output_tokens"][row] = None
    ends_ms, errors = (BEGIN_MS + block.end_ns // 1_000_000).tolist(), error.astype(np.float64).tolist()
    values = list(zip(*columns.values(), strict=True))
    for row in np.argsort(block.end_ns, kind="stable").tolist():
        body = dict(zip(columns, values[row], strict=True))
        yield orjson.dumps(
            {"event_time_ms": ends_ms[row], "service_name": SERVICE, **body, "attributes": {"error": errors[row]}}
        )


def _lose_cache(fields: dict[str, Any], hit: NDArray[np.bool_], left: float) -> None:
    """Fewer hits, and the prefill of what is no longer found."""
    per_token = load_constants()["latency"]["prefill_seconds_per_token"]
    lost = fields["kv_cache_hit_ratio"][hit] * (1 - left)
    fields["kv_cache_hit_ratio"][hit] -= lost
    for name in ("time_to_first_token_seconds", "end_to_end_seconds"):
        fields[name][hit] += per_token * fields["input_tokens"][hit] * lost


def _share(plan: StreamPlan, kind: str, usual: float, at_seconds: Floats) -> Floats:
    share = np.full(at_seconds.size, usual)
    for incident in _of_kind(plan, kind):
        share[_during(incident, at_seconds)] = incident.size
    return share


def _of_kind(plan: StreamPlan, kind: str) -> Iterator[Incident]:
    return (incident for incident in plan.incidents if incident.kind == kind)


def _during(incident: Incident, at_seconds: Floats) -> NDArray[np.bool_]:
    return (at_seconds >= incident.start_seconds) & (at_seconds < incident.end_seconds)
