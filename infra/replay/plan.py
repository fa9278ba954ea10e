"""What to replay, as the user asked for it."""

from dataclasses import dataclass, field
from pathlib import Path

from infra.replay.faults import Drift, FaultShares, Slowdown
from infra.replay.labels import Arms, ModelVersion
from infra.replay.position import Position
from infra.replay.service_model import DEFAULT_MODEL
from infra.replay.trace import AZURE_TRACE
from schemas.topics import OTLP_METRICS, OTLP_SPANS

SECOND_NS = 1_000_000_000
NOW = "now"
BEGIN, END = Position(share=0.0), Position(share=1.0)
DEFAULT_SPEED_UP = 60.0


@dataclass(frozen=True)
class ReplayPlan:
    """One replay. Everything that is sent follows from it, from the instant it starts at, and from the trace.

    `start`: milliseconds since 1970 of the first arrival, or `now`; by default such that the last request ends now (at
    a steady rate without speed-up: now). `speed_up`: how many times faster than its own clock it is sent, `inf` for as
    fast as Kafka takes it; 60 by default, 1 for what starts now. `rate_per_second` sets the trace's arrivals aside.
    """

    trace: Path = AZURE_TRACE
    service_model: Path = DEFAULT_MODEL
    seed: int = 0
    start: int | str | None = None
    speed_up: float | None = None
    rate_per_second: float | None = None
    limit: int | None = None
    duration_seconds: float | None = None
    part_from: Position = BEGIN
    part_until: Position = END
    encoding: str = "otlp_proto"
    children: bool = False
    keyed: bool = False
    batch_spans: int = 16
    batch_seconds: float = 1.0
    topic: str = OTLP_SPANS.name
    arms: tuple[Arms, ...] = ()
    users: int = 10_000
    versions: tuple[ModelVersion, ...] = ()
    drifts: tuple[Drift, ...] = ()
    slowdowns: tuple[Slowdown, ...] = ()
    text: bool = False
    personal_share: float = 0.2
    shares: FaultShares = field(default_factory=FaultShares)
    late_by_seconds: float = 900.0
    flush_seconds: float | None = None
    metrics: bool = False
    metrics_topic: str = OTLP_METRICS.name
    scrape_seconds: float = 15.0

    @property
    def live(self) -> bool:
        """Whether event time is the time of sending."""
        return self.start == NOW or (self.start is None and self.rate_per_second is not None and self.pace == 1.0)

    @property
    def pace(self) -> float:
        """The speed-up that counts."""
        if self.speed_up is not None:
            return self.speed_up
        return 1.0 if self.start == NOW or self.rate_per_second is not None else DEFAULT_SPEED_UP
