"""How many series of a monitor may live: beyond it, requests of further series are pooled in one series, `other`.

Each live series costs state: its open slice and the sketches of a window. A label with a value for each user would
otherwise fill the memory of a job that watches all the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from udfs.slicing.series_names import series_name

OTHER_LABEL = "(other)"


def other_series(n_labels: int) -> str:
    """Return the name of the pooled series, whose every label is `OTHER_LABEL`.

    >>> other_series(2)
    '["(other)","(other)"]'
    """
    return series_name([OTHER_LABEL] * n_labels)


@dataclass
class SeriesCap:
    """Admits series first come, first served; one without a request for `forget_ms` of event time gives its place up.

    It lives in the worker, not in Flink's state, so that it costs nothing: after a restart it fills anew, and may admit
    other series than before. A job of n parallel tasks admits up to n times `max_series`. Below the cap, which is where
    a monitor should be, it changes nothing, so results don't depend on the order of requests.
    """

    max_series: int
    other: str
    forget_ms: int
    last_seen_ms: dict[str, int] = field(default_factory=dict)

    def admit(self, names: Sequence[str], newest_ms: int) -> list[str]:
        """Return for each name itself or `other`. O(names); O(max_series) where it is full, once a call.

        >>> cap = SeriesCap(2, "other", forget_ms=1000)
        >>> cap.admit(["a", "b", "c"], 5000), cap.admit(["c", "b"], 5500), cap.admit(["c", "b"], 6200)
        (['a', 'b', 'other'], ['other', 'b'], ['c', 'b'])
        """
        if len(self.last_seen_ms) >= self.max_series and not self.last_seen_ms.keys() >= set(names):
            kept = {name: seen for name, seen in self.last_seen_ms.items() if seen > newest_ms - self.forget_ms}
            self.last_seen_ms = kept
        return [self._admitted(name, newest_ms) for name in names]

    def _admitted(self, name: str, newest_ms: int) -> str:
        seen_ms = self.last_seen_ms.get(name)
        if seen_ms is None and len(self.last_seen_ms) >= self.max_series:
            return self.other
        self.last_seen_ms[name] = max(newest_ms, seen_ms or 0)
        return name
