"""Replay of a real LLM trace as OTLP messages on Kafka, with faults on request. `docs/replay.md` tells the whole.

`replay(ReplayPlan(...), KafkaClient(...))` sends and returns a `ReplayReport`.
"""

from infra.replay.faults import Drift, FaultShares, Sent, Slowdown
from infra.replay.plan import ReplayPlan
from infra.replay.position import Position
from infra.replay.report import ReplayReport
from infra.replay.sender import Snapshot, replay

__all__ = ["Drift", "FaultShares", "Position", "ReplayPlan", "ReplayReport", "Sent", "Slowdown", "Snapshot", "replay"]
