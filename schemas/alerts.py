"""One transition of an alert, as topic `alerts` carries it.

The value is JSON: the fields of Alertmanager's v2 `gettableAlert` under their own camelCase names, so that a forwarder
can post it as it is, and ours in snake_case beside them. `alerts.schema.json` describes it. Nothing in it depends on
when or where it was computed: a job that judges the same verdicts again writes the same bytes.

Source: Alertmanager api/v2/openapi.yaml, definitions `alert`, `gettableAlert` and `alertStatus`.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum

import orjson

from schemas.ids import record_id
from schemas.times import rfc3339

SCHEMA_VERSION = 1


class AlertState(StrEnum):
    """What a transition says: from now on the alert is firing, or it is over."""

    FIRING = "firing"
    RESOLVED = "resolved"


# What Alertmanager reports for an alert it routes, and for one it does not hold (any more).
_ALERTMANAGER_STATES = {AlertState.FIRING: "active", AlertState.RESOLVED: "unprocessed"}


@dataclass(frozen=True, slots=True)
class EvidenceWindow:
    """One judged window that argued for a transition; `verdict_id` joins it to topic `verdicts`.

    The window counts as drifted when `p_value` is below `alpha` and the effect at least `min_effect`, or by the side of
    `threshold` that `statistic` is on; what the verdict's test has no use for is None.
    """

    verdict_id: str
    window_end_ms: int
    statistic: float | None
    p_value: float | None
    n_window: int
    alpha: float | None
    min_effect: float | None
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Alert:
    """One transition. Times are epoch milliseconds of event time here and RFC 3339 on the wire.

    `active_at_ms` is the end of the first window of the streak that fired, `starts_at_ms` the end of its last (both as
    Prometheus has them), `updated_at_ms` the end of the window that made this transition. While firing, `ends_at_ms`
    lies ahead; once resolved it is the time of resolution. `evidence` holds the windows that made the transition,
    oldest first. `labels` are valid Prometheus labels, `series` the group-by labels as configured.
    """

    state: AlertState
    fingerprint: str
    labels: dict[str, str]
    annotations: dict[str, str]
    active_at_ms: int
    starts_at_ms: int
    ends_at_ms: int
    updated_at_ms: int
    generator_url: str
    monitor: str
    feature: str
    series: dict[str, str]
    model_card_digest: str
    evidence: tuple[EvidenceWindow, ...]

    @property
    def alert_id(self) -> str:
        """Deterministic over fingerprint, startsAt and state."""
        return record_id(self.fingerprint, rfc3339(self.starts_at_ms), self.state)

    def to_json(self) -> bytes:
        """The Kafka value: ids first, keys in a fixed order, labels sorted by name."""
        return orjson.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "alert_id": self.alert_id,
                "state": self.state,
                "fingerprint": self.fingerprint,
                "labels": _sorted(self.labels),
                "annotations": _sorted(self.annotations),
                "startsAt": rfc3339(self.starts_at_ms),
                "endsAt": rfc3339(self.ends_at_ms),
                "updatedAt": rfc3339(self.updated_at_ms),
                "generatorURL": self.generator_url,
                "status": {
                    "state": _ALERTMANAGER_STATES[self.state],
                    "silencedBy": [],
                    "inhibitedBy": [],
                    "mutedBy": [],
                },
                "receivers": [],
                "active_at": rfc3339(self.active_at_ms),
                "monitor": self.monitor,
                "feature": self.feature,
                "series": _sorted(self.series),
                "model_card_digest": self.model_card_digest,
                "evidence": [_evidence_json(window) for window in self.evidence],
            }
        )


def _sorted(labels: dict[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


def _evidence_json(window: EvidenceWindow) -> dict[str, object]:
    """The window with its end as RFC 3339."""
    body = asdict(window)
    return {"verdict_id": body.pop("verdict_id"), "window_end": rfc3339(body.pop("window_end_ms")), **body}
