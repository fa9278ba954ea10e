"""One transition of an alert, as topic `alerts` carries it.

The value is JSON: the fields of Alertmanager's v2 `gettableAlert` under their own camelCase names, so that a forwarder
can post it as it is, and ours in snake_case beside them. `alerts.schema.json` describes it. Nothing in it depends on
when or where it was computed: a job that judges the same verdicts again writes the same bytes.

Source: Alertmanager api/v2/openapi.yaml, definitions `alert`, `gettableAlert` and `alertStatus`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import orjson

from schemas.ids import record_id
from schemas.times import epoch_ms, rfc3339

SCHEMA_VERSION = 1


class AlertState(StrEnum):
    """What a transition says.

    From now on the alert is pending (a row of breaching windows began), firing, kept from people, or over.
    """

    PENDING = "pending"
    FIRING = "firing"
    SUPPRESSED = "suppressed"
    RESOLVED = "resolved"


# What Alertmanager reports for an alert it routes, for one it mutes, and for one it does not hold (yet, or any more).
_ALERTMANAGER_STATES = {
    AlertState.PENDING: "unprocessed",
    AlertState.FIRING: "active",
    AlertState.SUPPRESSED: "suppressed",
    AlertState.RESOLVED: "unprocessed",
}


class SuppressionReason(StrEnum):
    """Why an alert is kept from people."""

    SILENCE = "silence"  # a person said so
    CHANGE = "change"  # a change explains it
    INHIBITION = "inhibition"  # a graver alert on the same thing fires
    DUPLICATE = "duplicate"  # an alert that is the same by the de-duplication rules fires


# Where Alertmanager names what mutes an alert.
_MUTED_UNDER = {
    SuppressionReason.SILENCE: "silencedBy",
    SuppressionReason.CHANGE: "mutedBy",
    SuppressionReason.INHIBITION: "inhibitedBy",
    SuppressionReason.DUPLICATE: "inhibitedBy",
}


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why an alert is suppressed: by what (id of a silence or change, fingerprint of an alert), and until when.

    `until_ms` is None where it lasts as long as the other alert fires. `detail` says it in a sentence.
    """

    reason: SuppressionReason
    by: str
    detail: str
    until_ms: int | None = None


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

    The rest is what the second stage of the alert job adds, on the wire only where it is set: the incident, why it is
    suppressed, the root cause as `udfs.alerts.root_cause.RootCause.to_dict` has it. `never_suppress` keeps changes
    from suppressing it. `episode` counts how often this alert came into this state before: taken back by a silence,
    it may fire again.
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
    never_suppress: bool = False
    incident_id: str = ""
    suppression: Suppression | None = None
    root_cause: Mapping[str, Any] | None = None
    episode: int = 0

    @property
    def alert_id(self) -> str:
        """Deterministic over fingerprint, startsAt and state, and over the episode from the second one on."""
        again = (self.episode,) if self.episode else ()
        return record_id(self.fingerprint, rfc3339(self.starts_at_ms), self.state, *again)

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
                    **{name: self._muted_by(name) for name in ("silencedBy", "inhibitedBy", "mutedBy")},
                },
                "receivers": [],
                "active_at": rfc3339(self.active_at_ms),
                "monitor": self.monitor,
                "feature": self.feature,
                "series": _sorted(self.series),
                "model_card_digest": self.model_card_digest,
                "evidence": [_evidence_json(window) for window in self.evidence],
                **self._added(),
            }
        )

    def _muted_by(self, name: str) -> list[str]:
        muting = self.suppression
        return (
            [muting.by]
            if muting and self.state is AlertState.SUPPRESSED and _MUTED_UNDER[muting.reason] == name
            else []
        )

    def _added(self) -> dict[str, Any]:
        """The fields that stand on the wire only where they are set."""
        added = {
            "never_suppress": self.never_suppress,
            "incident_id": self.incident_id,
            "suppression": None if self.suppression is None else suppression_json(self.suppression),
            "root_cause": self.root_cause,
            "episode": self.episode,
        }
        return {name: value for name, value in added.items() if value}

    @classmethod
    def from_json(cls, data: bytes) -> "Alert":
        """Read back what `to_json` wrote, of this or an earlier build. Raises ValueError on anything else.

        For alerts of our own; about 20 microseconds.
        """
        try:
            return alert_of(orjson.loads(data))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not an alert: {error!r}") from error


def alert_of(body: Mapping[str, Any]) -> Alert:
    """Return the alert of a decoded record of our own. Raises KeyError, TypeError or ValueError on anything else."""
    muting = body.get("suppression")
    return Alert(
        state=AlertState(body["state"]),
        fingerprint=body["fingerprint"],
        labels=body["labels"],
        annotations=body["annotations"],
        active_at_ms=epoch_ms(body["active_at"]),
        starts_at_ms=epoch_ms(body["startsAt"]),
        ends_at_ms=epoch_ms(body["endsAt"]),
        updated_at_ms=epoch_ms(body["updatedAt"]),
        generator_url=body["generatorURL"],
        monitor=body["monitor"],
        feature=body["feature"],
        series=body["series"],
        model_card_digest=body["model_card_digest"],
        evidence=tuple(_evidence_of(window) for window in body["evidence"]),
        never_suppress=body.get("never_suppress", False),
        incident_id=body.get("incident_id", ""),
        suppression=None if muting is None else suppression_of(muting),
        root_cause=body.get("root_cause"),
        episode=body.get("episode", 0),
    )


def suppression_of(body: Mapping[str, Any]) -> Suppression:
    """Return what `suppression_json` wrote."""
    until = body["until"]
    reason = SuppressionReason(body["reason"])
    return Suppression(reason, body["by"], body["detail"], None if until is None else epoch_ms(until))


def _evidence_of(body: Mapping[str, Any]) -> EvidenceWindow:
    rest = {name: value for name, value in body.items() if name != "window_end"}
    return EvidenceWindow(window_end_ms=epoch_ms(body["window_end"]), **rest)


def suppression_json(suppression: Suppression) -> dict[str, Any]:
    """The suppression with its end as RFC 3339, or null."""
    body = asdict(suppression)
    until_ms = body.pop("until_ms")
    return {**body, "until": None if until_ms is None else rfc3339(until_ms)}


def _sorted(labels: dict[str, str]) -> dict[str, str]:
    return dict(sorted(labels.items()))


def _evidence_json(window: EvidenceWindow) -> dict[str, object]:
    """The window with its end as RFC 3339. Written out: `asdict` is six times slower, and storms have many."""
    return {
        "verdict_id": window.verdict_id,
        "window_end": rfc3339(window.window_end_ms),
        "statistic": window.statistic,
        "p_value": window.p_value,
        "n_window": window.n_window,
        "alpha": window.alpha,
        "min_effect": window.min_effect,
        "threshold": window.threshold,
    }
