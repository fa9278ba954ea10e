"""From which figure on two adjacent versions are too far apart: policy, with its source."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsistencyLimit:
    """Prediction consistency rate (PCR): the share of inputs to which both versions give the same label.

    `every` inferences are judged together. Source of both: spec D6. At 1,000 the standard error of a share of 0.85 is
    0.011: a true 0.86 is judged below 0.85 in 17 % of blocks.
    """

    alert_below: float = 0.85
    every: int = 1000

    def __post_init__(self) -> None:
        if not 0.0 < self.alert_below <= 1.0:
            raise ValueError(f"alert_below must be above 0 and at most 1, not {self.alert_below}")
        if self.every < 1:
            raise ValueError(f"every must be at least 1, not {self.every}")


@dataclass(frozen=True, slots=True)
class ConfidenceShiftLimit:
    """Confidence-shift entropy (CSE): the mean relative entropy of softmax outputs in nats, over a sliding window.

    Sources: `alert_above` and the window of a minute, spec D6; the slide is the 30 s of spec D1 halved so that a minute
    is seen in four slides, and `min_samples` that of the other monitors, both ours.
    """

    alert_above: float = 0.32
    window_seconds: float = 60.0
    slide_seconds: float = 15.0
    min_samples: int = 100

    def __post_init__(self) -> None:
        _require_limit(self.alert_above, self.min_samples)
        if not 0.0 < self.slide_seconds <= self.window_seconds or self.window_seconds % self.slide_seconds:
            raise ValueError(f"slide_seconds must divide window_seconds: {self.slide_seconds}, {self.window_seconds}")


@dataclass(frozen=True, slots=True)
class DivergenceLimit:
    """Mean Jensen-Shannon divergence of softmax outputs in bits.

    Spec D6 measures it and names no limit, so there is no default here. `min_samples` is that of the other monitors.
    """

    alert_above: float
    min_samples: int = 100

    def __post_init__(self) -> None:
        _require_limit(self.alert_above, self.min_samples)


def _require_limit(alert_above: float, min_samples: int) -> None:
    if not (math.isfinite(alert_above) and alert_above >= 0.0):
        raise ValueError(f"alert_above must be a finite number of at least 0, not {alert_above}")
    if min_samples < 1:
        raise ValueError(f"min_samples must be at least 1, not {min_samples}")
