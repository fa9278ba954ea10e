"""One judged window, as topic `verdicts` carries it.

The value is JSON. Nothing in it depends on when or where it was computed: a job that judges the same window again
writes the same bytes.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from operator import attrgetter
from typing import Any

import orjson

from schemas.ids import record_id
from schemas.times import epoch_ms, rfc3339


class VerdictKind(StrEnum):
    """What a verdict speaks of."""

    DRIFT = "drift"  # a distribution against a reference or another stream
    FINDING = "finding"  # nulls, categories, ranges, fields: what the values themselves can't show
    SIGNAL = "signal"  # made of several windows or several verdicts
    SPLIT = "split"  # traffic against its plan
    SLO = "slo"  # a service level against its objective, and its error budget


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of one monitor on one feature of one series over one window.

    `series` are the group-by labels, `feature` says what was judged: a field of a request by its name where a window's
    values are held against its reference, else test and field, as in `null_rate(input_tokens)`. `kind` says what it
    speaks of (`VerdictKind`).

    Figures and `drifted` are None where `status` is not `ok`: unknown, never a pass. Where it is `ok` there are always
    `statistic` and `drifted`; the others only where the test has them. A window drifted by p below `alpha` with an
    effect of at least `min_effect`, or by a `statistic` on the wrong side of `threshold`; what a test has no use for
    is None. `reference_digest` is None where nothing stored was compared with.

    Times are epoch milliseconds here and RFC 3339 on the wire; the window is [start, end).
    """

    monitor: str
    series: dict[str, str]
    feature: str
    window_start_ms: int
    window_end_ms: int
    slide_seconds: float
    test: str
    method: str
    status: str
    statistic: float | None
    p_value: float | None
    log10_p_value: float | None
    effect: float | None
    published_score: float | None
    alpha: float | None
    min_effect: float | None
    drifted: bool | None
    n_reference: int
    n_reference_null: int
    n_window: int
    n_window_null: int
    n_infinite: int
    config_digest: str
    reference_digest: str | None
    model_card_digest: str
    evidence: dict[str, Any] = field(default_factory=dict)
    threshold: float | None = None
    kind: str = VerdictKind.DRIFT

    @property
    def series_key(self) -> str:
        """The series' identity: monitor, feature and labels as canonical JSON; the Kafka key."""
        return series_key(self.monitor, self.feature, self.series)

    @property
    def verdict_id(self) -> str:
        """Deterministic over monitor, series, feature, window end, configuration and reference.

        Windows by count have a number in their evidence, and it counts too: two of them may end in one millisecond.
        """
        return self._id(self.series_key)

    def _id(self, series_key: str) -> str:
        number = (self.evidence["window_number"],) if "window_number" in self.evidence else ()
        parts = (series_key, self.window_end_ms, self.config_digest, self.reference_digest or "", *number)
        return record_id(*parts)

    def to_json(self) -> bytes:
        """The Kafka value: ids first, times as RFC 3339, keys in a fixed order."""
        key = self.series_key
        head = {
            "schema_version": 1,
            "verdict_id": self._id(key),
            "series_key": key,
            "window_start": rfc3339(self.window_start_ms),
            "window_end": rfc3339(self.window_end_ms),
        }
        # asdict would copy all evidence, slowly
        return orjson.dumps(head | dict(zip(_BODY_FIELDS, _body_of(self), strict=True)))

    @classmethod
    def from_json(cls, data: bytes) -> "Verdict":
        """Read back what `to_json` wrote, of this or an earlier build: its bytes again where nothing was added since.

        For verdicts of our own. Bytes from a topic are checked field by field by `udfs.alerts.verdict_event`. Raises
        ValueError on anything that is no verdict, and where the id isn't of what is there.
        """
        try:
            body = orjson.loads(data)
            body["window_start_ms"] = epoch_ms(body["window_start"])
            body["window_end_ms"] = epoch_ms(body["window_end"])
            verdict = cls(**{name: body[name] for name in (known.name for known in fields(cls)) if name in body})
            verdict_id = body["verdict_id"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a verdict: {error!r}") from error
        if verdict_id != verdict.verdict_id:
            raise ValueError("not a verdict: its id is not of its series, window, configuration and reference")
        return verdict


_BODY_FIELDS = [each.name for each in fields(Verdict) if each.name not in ("window_start_ms", "window_end_ms")]
_body_of = attrgetter(*_BODY_FIELDS)


def series_key(monitor: str, feature: str, labels: dict[str, str]) -> str:
    """Return the canonical JSON text naming a series.

    >>> series_key("chat", "input_tokens", {"b": "2", "a": "1"})
    '["chat","input_tokens",{"a":"1","b":"2"}]'
    """
    return orjson.dumps([monitor, feature, labels], option=orjson.OPT_SORT_KEYS).decode()
