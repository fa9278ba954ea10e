"""A latency limit that grows with the prompt and falls with the KV cache: slow for its size is bad, slow is not.

    limit = base * (1 + per_token * prompt tokens) * (most - hit_weight * KV-cache hit ratio)

Published: 1200 ms * (1 + 0.002 * tokens) * (1.5 - 0.8 * hit ratio), 2.4 ms a token at the base. Source: spec A1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class AdaptiveLatency:
    """The numbers of the rule; the defaults are the published ones. Raises ValueError where a limit could be 0 or less.

    >>> AdaptiveLatency().limit_ms(500, 0.5)
    2640.0
    """

    base_ms: float = 1200.0
    per_token: float = 0.002
    most: float = 1.5
    hit_weight: float = 0.8

    def __post_init__(self) -> None:
        numbers = (self.base_ms, self.per_token, self.most, self.hit_weight)
        if not all(map(math.isfinite, numbers)) or self.base_ms <= 0 or self.per_token < 0 or self.hit_weight < 0:
            raise ValueError(f"an adaptive limit needs a base above 0 and weights of at least 0, not {numbers}")
        if self.most - self.hit_weight <= 0:
            raise ValueError(f"with every token cached the limit would be {self.most - self.hit_weight:g} of the base")

    def limit_ms(self, prompt_tokens: float, hit_ratio: float) -> float | None:
        """Return the limit of one request in milliseconds; None where tokens or ratio are unknown or impossible."""
        (limit,) = self.limits_ms(np.array([prompt_tokens], dtype=float), np.array([hit_ratio], dtype=float)).tolist()
        return None if math.isnan(limit) else float(limit)

    def limits_ms(self, prompt_tokens: NDArray[np.float64], hit_ratios: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the limits of many requests, float64 milliseconds; NaN as a null where tokens or ratio can't be. O(n).

        Impossible are tokens below 0 or infinite, and ratios outside 0..1.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            limits = self.base_ms * (1.0 + self.per_token * prompt_tokens) * (self.most - self.hit_weight * hit_ratios)
            known = (prompt_tokens >= 0) & (hit_ratios >= 0) & (hit_ratios <= 1) & np.isfinite(limits)
        return np.where(known, limits, np.nan)
