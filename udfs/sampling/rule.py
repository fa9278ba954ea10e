"""How many requests a scorer sees: a share of all by the hash of the trace id, and a floor where traffic is low.

A request is chosen when

    hash_fraction(trace id) < rate(k),    rate(k) = max(rate, min(1, at_least_per_minute / k))

k is its place in its minute: the how manieth request it is, in the order of its Kafka partition, of its series
(service, provider, model) whose event time lies in that minute. So the first `at_least_per_minute` are certain, later
ones ever less so, and above `at_least_per_minute / rate` requests a minute the share alone decides.

What that guarantees:

- **Deterministic under replay**: nothing counts but the id, the order within a partition and the event time.
- **By the share alone, the same id is always in or always out**, whatever the place: the floor only ever adds.
- **Nested**: in at a smaller rate or floor is in at a larger one, so scorers of other rates score the same requests.
- **Unbiased**: a request's chance is `rate(k)`, known before its hash is, and goes into its scores as `sampling_rate`:
  a sum of 1 / sampling_rate over what was chosen estimates the sum over all (Horvitz & Thompson 1952,
  doi:10.1080/01621459.1952.10483446).
- **A floor**: of n requests of a series in a minute at least min(n, at_least_per_minute) are chosen.

Each partition counts for itself, which is what makes it deterministic. So the floor costs up to
`at_least_per_minute * (1 + ln(1 / rate))` requests more a minute and series, in each partition.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SampleRule:
    """The sampling of one scorer; the default is that of spec M1 (1 %), with a floor of 5 a minute.

    Raises ValueError, naming the field, unless `rate` is from 0 to 1 and `at_least_per_minute` is 0 or more.

    >>> SampleRule(0.01, 5).rate_at(1), SampleRule(0.01, 5).rate_at(50), SampleRule(0.01, 5).rate_at(50_000)
    (1.0, 0.1, 0.01)
    """

    rate: float = 0.01
    at_least_per_minute: int = 5

    def __post_init__(self) -> None:
        """Refuse what is no share and no number of requests."""
        if isinstance(self.rate, bool) or not 0 <= self.rate <= 1:
            raise ValueError(f"rate must be from 0 to 1, not {self.rate!r}")
        if isinstance(self.at_least_per_minute, bool) or self.at_least_per_minute < 0:
            raise ValueError(f"at_least_per_minute must be 0 or more, not {self.at_least_per_minute!r}")

    def rate_at(self, place: int) -> float:
        """The chance of the `place`-th request (from 1) of its series in its minute."""
        return max(self.rate, min(1.0, self.at_least_per_minute / place))

    def includes(self, fraction: float, place: int) -> bool:
        """Whether a request with this `hash_fraction` is chosen."""
        return fraction < self.rate_at(place)


def widest(rules: Iterable[SampleRule]) -> SampleRule:
    """Return the rule that chooses what any of `rules` would choose, and nothing else.

    >>> widest([SampleRule(0.01, 5), SampleRule(0.1, 0)])
    SampleRule(rate=0.1, at_least_per_minute=5)
    """
    each = list(rules)
    floor = max((rule.at_least_per_minute for rule in each), default=0)
    return SampleRule(max((rule.rate for rule in each), default=0.0), floor)
