"""The requests of a replay as the service model served them, before faults and encoding."""

from collections.abc import Iterator

import numpy as np

from infra.replay.faults import slowdown_factors
from infra.replay.request_block import Arrivals, RequestBlock
from infra.replay.resolved import ResolvedReplay
from infra.replay.service_model import ServiceModel

MODEL, FAULTS, IDS, USERS, ARMS, TEXTS = range(6)  # the streams of random numbers


def served_blocks(resolved: ResolvedReplay) -> Iterator[tuple[Arrivals, RequestBlock]]:
    """Yield blocks of requests as the service model served them, before any fault but slow episodes."""
    model = ServiceModel(resolved.constants, random_stream(resolved, MODEL), resolved.rate_ratio)
    for arrivals in resolved.source.blocks():
        block = model.serve(arrivals, slowdown_factors(resolved.slowdowns, arrivals.arrival_ns))
        if resolved.source.rate_per_second is not None:
            # At a steady rate it is the ends, the event times, that come at that rate.
            block.start_ns, block.end_ns = block.start_ns + arrivals.arrival_ns - block.end_ns, arrivals.arrival_ns
        yield arrivals, block


def last_end_ns(resolved: ResolvedReplay) -> int:
    """Return when the last request ends, nanoseconds after the begin."""
    return max(int(block.end_ns.max()) for _, block in served_blocks(resolved))


def random_stream(resolved: ResolvedReplay, purpose: int, *more: int) -> np.random.Generator:
    """Return the random numbers of one purpose, so that a fault more changes nothing else."""
    return np.random.default_rng(np.random.SeedSequence([resolved.plan.seed, purpose, *more]))
