"""The parts of the alert rules file that make incidents: grouping, inhibition, duplicates, changes, root cause.

Checked field by field; a section that a file leaves out is the committed default's. `incidents`, `root_cause` and each
kind under `changes` are laid over the default field by field, the lists are taken whole.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jobs.yaml_fields import (
    REQUIRED,
    Check,
    Place,
    WrongValueError,
    at_least_one,
    fields_of,
    finite_number,
    list_of_texts,
    nearest,
    one_of,
    strictly_between_0_and_1,
    text,
    zero_up_to_1,
)
from schemas.changes import ChangeKind
from schemas.matchers import Matcher, MatcherError, parse_matcher
from udfs.alerts.cause_signals import CauseSignal
from udfs.alerts.incident_policy import ChangeRule, DeduplicationRule, IncidentPolicy, InhibitionRule
from udfs.alerts.root_cause import CausePolicy

SECTIONS = ("incidents", "inhibition", "deduplication", "changes", "root_cause")
MAX_OPEN_ALERTS = 100_000  # about 2 kB each


def incident_policy(file: str, root: Mapping[str, Any], default: IncidentPolicy | None = None) -> IncidentPolicy:
    """Return the policy that the sections of `root` describe, over `default`. Raises ConfigurationError."""
    policy = default or IncidentPolicy()
    readers: Mapping[str, Callable[[Place, Any, IncidentPolicy], IncidentPolicy]] = {
        "incidents": _incidents,
        "inhibition": lambda place, body, over: replace(over, inhibition=_inhibition(place, body)),
        "deduplication": lambda place, body, over: replace(over, deduplication=_deduplication(place, body)),
        "changes": lambda place, body, over: replace(over, changes=_changes(place, body, over.changes)),
        "root_cause": lambda place, body, over: replace(over, causes=_causes(place, body, over.causes)),
    }
    for name, read in readers.items():
        if root.get(name) is not None:
            policy = read(Place(file, name), root[name], policy)
    return policy


def _incidents(place: Place, body: Any, over: IncidentPolicy) -> IncidentPolicy:
    found = fields_of(
        place,
        body,
        {
            "labels": (_labels, list(over.incident_labels)),
            "hold_seconds": (_seconds, over.hold_seconds),
            "update_interval_seconds": (_seconds, over.update_interval_seconds),
            "quiet_seconds": (_seconds, over.quiet_seconds),
            "top_alerts": (at_least_one, over.top_alerts),
            "max_open_alerts": (_bounded_count, over.max_open_alerts),
            "max_suppressed_seconds": (_seconds, over.max_suppressed_seconds),
        },
    )
    return replace(over, incident_labels=found.pop("labels"), **found)


def _inhibition(place: Place, body: Any) -> tuple[InhibitionRule, ...]:
    fields = {"source": (_matchers, REQUIRED), "target": (_matchers, REQUIRED), "equal": (_texts, REQUIRED)}
    return tuple(InhibitionRule(**found) for found in _each(place, body, fields))


def _deduplication(place: Place, body: Any) -> tuple[DeduplicationRule, ...]:
    fields = {"matchers": (_any_matchers, []), "fingerprint_fields": (_labels, REQUIRED)}
    return tuple(DeduplicationRule(**found) for found in _each(place, body, fields))


def _changes(place: Place, body: Any, over: Mapping[ChangeKind, ChangeRule]) -> dict[ChangeKind, ChangeRule]:
    kinds = dict(over)
    for name, rule in _mapping(place, body).items():
        at = place.field(str(name))
        if name not in tuple(ChangeKind):
            at.refuse("is no kind of change", nearest(str(name), tuple(ChangeKind)))
        kind = ChangeKind(name)
        if rule is None or rule is False:
            kinds.pop(kind, None)
        else:
            kinds[kind] = _change(at, rule, kinds.get(kind))
    return kinds


def _change(place: Place, body: Any, over: ChangeRule | None) -> ChangeRule:
    fields: dict[str, tuple[Check, Any]] = {
        "action": (one_of(("suppress", "raise_bar")), over.action if over else REQUIRED),
        "window_seconds": (_seconds, over.window_seconds if over else REQUIRED),
        "max_window_seconds": (_seconds, over.max_window_seconds if over else REQUIRED),
        "bar_factor": (_above_one, over.bar_factor if over else 2.0),
        "explains": (_any_matchers, [str(matcher) for matcher in over.explains] if over else []),
    }
    rule = ChangeRule(**fields_of(place, body, fields))
    if rule.max_window_seconds < rule.window_seconds:
        place.field("max_window_seconds").refuse("is below window_seconds", "Give at least window_seconds")
    return rule


def _causes(place: Place, body: Any, over: CausePolicy) -> CausePolicy:
    fields: dict[str, tuple[Check, Any]] = {
        "signals": (_same, None),
        "observation_lookback_seconds": (_seconds, over.observation_lookback_seconds),
        "change_lookback_seconds": (_seconds, over.change_lookback_seconds),
        "half_life_seconds": (_seconds, over.half_life_seconds),
        "dependency_decay": (strictly_between_0_and_1, over.dependency_decay),
        "unrelated": (zero_up_to_1, over.unrelated),
        "kind_weights": (_kind_weights, dict(over.kind_weights)),
        "max_causes": (at_least_one, over.max_causes),
        "min_score": (zero_up_to_1, over.min_score),
        "named_from": (zero_up_to_1, over.named_from),
    }
    found = fields_of(place, body, fields)
    signals = found.pop("signals")
    if signals is None:
        return replace(over, **found)
    known: dict[str, tuple[Check, Any]] = {
        "field": (text, REQUIRED),
        "normalisation": (one_of(("reference_range", "z_score", "logistic")), REQUIRED),
        "wrong_side": (one_of(("above", "below", "both")), REQUIRED),
        "weight": (_from_zero, 0.0),
    }
    return replace(
        over, signals=tuple(CauseSignal(**s) for s in _each(place.field("signals"), signals, known)), **found
    )


def _same(value: Any) -> Any:
    return value


def _from_zero(value: Any) -> float:
    number = finite_number(value)
    if not 0 <= number <= 1e6:
        raise WrongValueError(f"{value} is below 0", "Give 0 or more; only the weights' proportions count")
    return float(number)


def _kind_weights(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise WrongValueError("is not a mapping", "Write `kind: weight`, one a line")
    for kind in value:
        if kind not in tuple(ChangeKind):
            raise WrongValueError(f"{kind!r} is no kind of change", nearest(str(kind), tuple(ChangeKind)))
    return {str(kind): _from_zero(weight) for kind, weight in value.items()}


def _each(place: Place, body: Any, fields: Mapping[str, tuple[Check, Any]]) -> list[dict[str, Any]]:
    if not isinstance(body, list):
        place.refuse("is no list", "Write one `- ...` a line below it")
    return [fields_of(Place(place.file, f"{place.path}[{i}]"), entry, fields) for i, entry in enumerate(body)]


def _mapping(place: Place, body: Any) -> dict[Any, Any]:
    if not isinstance(body, dict):
        place.refuse("is not a mapping", "Write `name: value`, one a line")
    return body


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(list_of_texts(value))


def _labels(value: Any) -> tuple[str, ...]:
    """Names of labels, at least one."""
    names = _texts(value)
    if not names:
        raise WrongValueError("names no label", "Name at least one, such as service_name")
    for name in names:
        try:
            Matcher(name, "")
        except MatcherError:
            remedy = "Write it as in an alert: letters, digits and _"
            raise WrongValueError(f"{name!r} is no name of a label", remedy) from None
    return names


def _any_matchers(value: Any) -> tuple[Matcher, ...]:
    found = []
    for written in list_of_texts(value):
        try:
            found.append(parse_matcher(written))
        except MatcherError as error:
            raise WrongValueError(
                f"{written!r}: {error}", "Write name=value, name!=value, name=~regex or name!~regex"
            ) from None
    return tuple(found)


def _matchers(value: Any) -> tuple[Matcher, ...]:
    found = _any_matchers(value)
    if not found:
        raise WrongValueError("has no matcher", "Give at least one, such as severity=page")
    return found


def _seconds(value: Any) -> float:
    number = finite_number(value)
    if not 0 < number <= 1e9:
        raise WrongValueError(f"{value} is not above 0", "Give a number of seconds above 0")
    return float(number)


def _above_one(value: Any) -> float:
    number = finite_number(value)
    if not 1 < number <= 1e6:
        raise WrongValueError(f"{value} is not above 1", "Give a factor above 1, such as 2")
    return float(number)


def _bounded_count(value: Any) -> int:
    count = at_least_one(value)
    if count > MAX_OPEN_ALERTS:
        raise WrongValueError(f"{value} is too many", f"Give at most {MAX_OPEN_ALERTS}: each costs about 2 kB of state")
    return count
