"""Eight kinds of incident, seeded: what happens, how large it is, when it begins and ends."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS
BLOCK_SECONDS = 3 * HOUR_SECONDS  # one incident in each, so eight a day


@dataclass(frozen=True, slots=True)
class Kind:
    """What an incident does; its size is drawn evenly from `smallest` to `largest`."""

    smallest: float
    largest: float
    does: str


# Ours, by judgement: from what a person would just want to know to what nobody would miss.
KINDS: Mapping[str, Kind] = {
    "latency_step": Kind(1.3, 2.0, "prefill and decode take so many times as long"),
    "latency_creep": Kind(1.5, 2.0, "the same, growing evenly from 1 to so many times"),
    "error_burst": Kind(0.04, 0.20, "so large a share of requests fails; 1 % do otherwise"),
    "traffic_drop": Kind(0.25, 0.55, "requests come at so many times the usual rate"),
    "token_length_drift": Kind(1.35, 2.0, "prompts are so many times as long"),
    "cache_hit_collapse": Kind(0.1, 0.6, "KV-cache hits fall to so much of what they were"),
    "null_burst": Kind(0.05, 0.30, "so large a share of requests has no output_tokens; 0.2 % have none otherwise"),
    "queue_build_up": Kind(0.7, 0.95, "so many times the slots are left that the usual load needs"),
}
SHORTEST_SECONDS, LONGEST_SECONDS = 1200.0, 3600.0
FIRST_BEGIN_SECONDS = 1200.0  # into its block, at the earliest


@dataclass(frozen=True, slots=True)
class Incident:
    """One incident: seconds after the begin of its stream."""

    kind: str
    size: float
    start_seconds: float
    end_seconds: float


def schedule(rng: np.random.Generator, first_day: int, days: int) -> tuple[Incident, ...]:
    """Draw one incident of each kind for each of `days` days from `first_day` on, in random order, one a block.

    >>> drawn = schedule(np.random.default_rng(0), 1, 2)
    >>> len(drawn), drawn[0].start_seconds >= DAY_SECONDS, len({incident.kind for incident in drawn[:8]})
    (16, True, 8)
    """
    drawn = []
    for day in range(first_day, first_day + days):
        for block, kind in enumerate(rng.permutation(list(KINDS)).tolist()):
            lasts = rng.uniform(SHORTEST_SECONDS, LONGEST_SECONDS)
            begin = day * DAY_SECONDS + block * BLOCK_SECONDS
            start = begin + rng.uniform(FIRST_BEGIN_SECONDS, BLOCK_SECONDS - LONGEST_SECONDS - FIRST_BEGIN_SECONDS)
            size = rng.uniform(KINDS[kind].smallest, KINDS[kind].largest)
            drawn.append(Incident(kind, float(size), float(start), float(start + lasts)))
    return tuple(drawn)
