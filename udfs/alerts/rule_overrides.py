"""What a verdict itself says about its alert, checked: fields of `AlertRule` laid over the rule of its monitor.

An SLO's file names severity, owner and runbook; the SLO job puts them into `evidence.alert` of its verdicts.
"""

from collections.abc import Callable, Mapping
from typing import Any

SEVERITIES = ("critical", "warning", "info", "page", "ticket")
# Every window in a row is evidence in the state and in the alert; a hundred keeps both small.
MAX_WINDOWS = 100


class RuleOverrideError(ValueError):
    """A field that a verdict may not set so; says which and what belongs there, and quotes no value."""


def is_window_count(found: object) -> bool:
    """Whether it is a whole number from 1 to `MAX_WINDOWS`."""
    return isinstance(found, int) and not isinstance(found, bool) and 1 <= found <= MAX_WINDOWS


def is_severity(found: object) -> bool:
    """Whether it is one of `SEVERITIES`."""
    return isinstance(found, str) and found in SEVERITIES


def _is_name(found: object) -> bool:
    return isinstance(found, str) and bool(found.strip())


def _is_text(found: object) -> bool:
    return isinstance(found, str)


def _is_flag(found: object) -> bool:
    return isinstance(found, bool)


_FIELDS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "alertname": (_is_name, "a name"),
    "severity": (is_severity, f"one of {', '.join(SEVERITIES)}"),
    "owner": (_is_text, "a text"),
    "runbook_url": (_is_text, "a text"),
    "firing_after_windows": (is_window_count, f"a whole number from 1 to {MAX_WINDOWS}"),
    "resolved_after_windows": (is_window_count, f"a whole number from 1 to {MAX_WINDOWS}"),
    "never_suppress": (_is_flag, "true or false"),
}


def rule_overrides(found: object) -> dict[str, Any]:
    """Return the fields of `found` that a verdict may set; what is missing or null stays the rule's.

    A field of another name is none of the alert's and is left out. Raises RuleOverrideError.

    >>> rule_overrides({"severity": "page", "owner": None, "objective": "99 %"})
    {'severity': 'page'}
    """
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise RuleOverrideError("(root) is not an object")
    overrides = {name: found[name] for name in _FIELDS if found.get(name) is not None}
    for name, value in overrides.items():
        accepts, wanted = _FIELDS[name]
        if not accepts(value):
            raise RuleOverrideError(f"{name} is not {wanted}")
    return overrides
