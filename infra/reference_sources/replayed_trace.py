"""Reference values from a recorded trace, served by the replay's service model, without Kafka."""

import numpy as np
from numpy.typing import NDArray

from infra.reference_sources.wanted import ATTRIBUTES, CATEGORIES, Columns, Wanted, as_categories, as_text
from infra.replay.plan import ReplayPlan
from infra.replay.request_block import RequestBlock
from infra.replay.resolve import resolve
from infra.replay.served import served_blocks
from infra.replay.span_attributes import ATTRIBUTE_KEYS
from jobs.kafka_client import ConfigurationError


def columns_of_trace(plan: ReplayPlan, wanted: Wanted) -> Columns:
    """Return the wanted fields of the requests that `plan` would replay, before any fault: float64, or texts, in the
    order of event time.

    Give `plan` another seed than the replay that is judged: reference and windows are then different draws of one
    model, as two days of one service are. Tokens are the trace's own and come from no draw.
    """
    for name in (*(wanted.features or ()), *wanted.where):
        if name not in ATTRIBUTE_KEYS or name.startswith(ATTRIBUTES):
            remedy = f"Use {', '.join(ATTRIBUTE_KEYS)}"
            raise ConfigurationError(plan.trace.name, name, "is no field of a replayed request", remedy)
    features = [name for name in wanted.candidates if name in ATTRIBUTE_KEYS]
    parts = [_kept(block, wanted, features) for _, block in served_blocks(resolve(plan))]
    order = np.argsort(np.concatenate([ends_ns for ends_ns, _ in parts]), kind="stable")
    columns = {name: np.concatenate([part[name] for _, part in parts])[order] for name in features}
    return wanted.kept(plan.trace.name, columns)


def _kept(block: RequestBlock, wanted: Wanted, features: list[str]) -> tuple[NDArray[np.int64], Columns]:
    keep = np.ones(len(block), dtype=bool)
    for field, value in wanted.where.items():
        keep &= np.array([as_text(found) == value for found in block.fields[field].tolist()], dtype=bool)
    kept: Columns = {}
    for name in features:
        values = block.fields[name][keep]
        kept[name] = as_categories(values.tolist()) if name in CATEGORIES else values.astype(np.float64)
    return block.end_ns[keep], kept
