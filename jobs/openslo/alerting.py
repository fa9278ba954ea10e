"""AlertPolicy and AlertCondition: which burn rates alert whom.

`alertAfter`, for how long the burn must hold, is taken as the short window: the burn rate of the last 5 minutes, say,
must be as high. It fires no later, and stops when the burn does. Without it the short window is a twelfth of the
long one. `op` is read as "at least", whatever it says: the standard's own example writes lte for "exceeds".
"""

from typing import Any

from jobs.openslo.documents import Document, Documents, document_of, mapping
from jobs.openslo.values import duration_ms, flag
from jobs.yaml_fields import (
    REQUIRED,
    Place,
    WrongValueError,
    fields_of,
    finite_number,
    one_of,
    optional,
    some_list,
    text,
)
from udfs.alerts.rule_overrides import SEVERITIES
from udfs.slo.burn_rules import BurnRule
from udfs.slo.periods import MINUTE_MS

SHORT_WINDOW = "short-window"
# The workbook's ratio of long to short window: 1 h to 5 min, 6 h to 30 min.
_LONG_TO_SHORT = 12


def _short_window(value: Any) -> int:
    """OpenSLO's alertAfter: 0 where it asks for no time."""
    return 0 if value in ("0m", 0) else duration_ms(value)


_POLICY = {
    "description": (optional(text), None),
    "alertWhenNoData": (flag, False),
    "alertWhenResolved": (flag, True),
    "alertWhenBreaching": (flag, True),
    "conditions": (some_list, REQUIRED),
    "notificationTargets": (some_list, []),
}
_CONDITION = {
    "description": (optional(text), None),
    "severity": (one_of(SEVERITIES), REQUIRED),
    "condition": (mapping, REQUIRED),
}
_BURN_RATE = {
    "kind": (one_of(("burnrate",)), "burnrate"),
    "op": (one_of(("gt", "gte", "lt", "lte")), "gte"),
    "threshold": (finite_number, REQUIRED),
    "lookbackWindow": (duration_ms, REQUIRED),
    "alertAfter": (_short_window, "0m"),
}


def burn_rules_of(place: Place, policies: list[Any], documents: Documents) -> tuple[BurnRule, ...]:
    """Return the rules of an SLO's `alertPolicies`, inline or by name."""
    rules = []
    for number, body in enumerate(policies):
        at = place.field(f"alertPolicies[{number}]")
        policy = _resolved(at, body, "AlertPolicy", "alertPolicyRef", documents)
        policy.check_annotations(())
        values = fields_of(policy.spec_place, policy.spec, _POLICY)
        if values["alertWhenNoData"]:
            remedy = (
                "Leave it out: a window without data is a verdict of its own, and the dead man's alert is for silence"
            )
            policy.spec_place.field("alertWhenNoData").refuse("Slacktide does not alert on it", remedy)
        if len(values["conditions"]) != 1:
            problem = f"has {len(values['conditions'])} conditions"
            policy.spec_place.field("conditions").refuse(problem, "OpenSLO v1 allows exactly one a policy")
        if values["alertWhenBreaching"]:
            rules.append(_rule(policy.spec_place.field("conditions[0]"), values["conditions"][0], documents))
    return tuple(rules)


def check_alerting(documents: Documents) -> None:
    """Check the policies and conditions of the file, those that no SLO names too."""
    for policy in documents.of("AlertPolicy"):
        burn_rules_of(policy.place, [{"alertPolicyRef": policy.name}], documents)
    for condition in documents.of("AlertCondition"):
        _rule(condition.place, {"conditionRef": condition.name}, documents)


def _rule(place: Place, body: Any, documents: Documents) -> BurnRule:
    condition = _resolved(place, body, "AlertCondition", "conditionRef", documents)
    condition.check_annotations((SHORT_WINDOW,))
    values = fields_of(condition.spec_place, condition.spec, _CONDITION)
    at = condition.spec_place.field("condition")
    burn = fields_of(at, values["condition"], _BURN_RATE)
    if burn["threshold"] <= 0:
        at.field("threshold").refuse(f"{burn['threshold']} is not above 0", "Give a burn rate such as 14.4")
    long_ms = burn["lookbackWindow"]
    if long_ms % MINUTE_MS:
        at.field("lookbackWindow").refuse("is no whole number of minutes", "Give minutes, hours or days")
    short_ms = burn["alertAfter"] or max(MINUTE_MS, long_ms // _LONG_TO_SHORT // MINUTE_MS * MINUTE_MS)
    short_place = at.field("alertAfter")
    if SHORT_WINDOW in condition.annotations:
        short_place = condition.annotation_place(SHORT_WINDOW)
        short_ms = _duration(short_place, condition.annotations[SHORT_WINDOW])
    if short_ms % MINUTE_MS or short_ms > long_ms:
        short_place.refuse("is no whole number of minutes within the lookback window", "Give one such as 5m")
    return BurnRule(values["severity"], burn["threshold"], long_ms, short_ms)


def _duration(place: Place, value: str) -> int:
    try:
        return duration_ms(value)
    except WrongValueError as wrong:
        place.refuse(wrong.problem, wrong.remedy)


def _resolved(place: Place, body: Any, kind: str, reference: str, documents: Documents) -> Document:
    """Return the object that stands here, or the one that is named here."""
    if isinstance(body, dict) and reference in body:
        name = fields_of(place, body, {reference: (text, REQUIRED)})[reference]
        return documents.get(kind, name, place.field(reference))
    if not isinstance(body, dict):
        place.refuse("is no mapping", f"Write `{reference}: NAME`, or a whole {kind}")
    if body.get("kind", kind) != kind:
        place.field("kind").refuse(f"{body['kind']!r} does not stand here", f"Write a {kind}")
    return document_of(place, {"apiVersion": "openslo/v1", "kind": kind} | body)
