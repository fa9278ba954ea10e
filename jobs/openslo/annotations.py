"""What the standard has no field for: annotations of an SLO under `slacktide.dev/`."""

from collections.abc import Callable
from typing import Any

from jobs.openslo.documents import Document
from jobs.openslo.values import part_of_a_minute
from jobs.yaml_fields import (
    WrongValueError,
    at_least_one,
    finite_number,
    nearest,
    one_of,
    strictly_between_0_and_1,
    text,
)
from udfs.alerts.rule_overrides import MAX_WINDOWS, SEVERITIES, is_window_count


def _labels(value: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    if len(set(names)) < len(names):
        raise WrongValueError("names a field twice", "Name each once")
    return names


def check_labels(document: Document, labels: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse labels that the counted records don't have."""
    for name in labels:
        if name not in known:
            problem = f"{name!r} is no text field to tell series apart by"
            document.annotation_place("group-by").refuse(problem, nearest(name, known))


def _number(check: Callable[[Any], Any], kind: type) -> Callable[[str], Any]:
    def checked(value: str) -> Any:
        try:
            return check(kind(value))
        except ValueError as error:
            if isinstance(error, WrongValueError):
                raise
            raise WrongValueError(f"{value!r} is no number", "Give a number") from None

    return checked


_share = _number(strictly_between_0_and_1, float)
_count = _number(at_least_one, int)


def _windows(value: str) -> int:
    number: int = _count(value)
    if not is_window_count(number):
        raise WrongValueError(f"{number} windows in a row are too many", f"Give at most {MAX_WINDOWS}")
    return number


# name -> (check, default); docs/slos.md says what each means.
ANNOTATIONS: dict[str, tuple[Callable[[str], Any], Any]] = {
    "group-by": (_labels, ("service_name",)),
    "model-card": (text, None),
    "owner": (text, ""),
    "runbook-url": (text, ""),
    "window": (part_of_a_minute, None),
    "slide": (part_of_a_minute, None),
    "window-limit": (_number(finite_number, float), None),
    "window-min-events": (_count, 1),
    "window-severity": (one_of(SEVERITIES), "page"),
    "alert-after-windows": (_windows, 1),
    "resolve-after-windows": (_windows, 3),
    "burn-rates": (one_of(("workbook", "none")), None),
    "burn-rate-scaling": (one_of(("factors", "windows")), None),
    "min-events": (_count, 1),
    "min-slice-events": (_count, 1),
    "judge-f1": (_share, None),
    "judged": (one_of(("true", "false")), "false"),
}


def annotations_of(document: Document) -> dict[str, Any]:
    """Return every annotation's value, defaults filled in. Raises ConfigurationError for a wrong or unknown one."""
    document.check_annotations(tuple(ANNOTATIONS))
    found = {}
    for name, (check, default) in ANNOTATIONS.items():
        if name not in document.annotations:
            found[name] = default
            continue
        try:
            found[name] = check(document.annotations[name])
        except WrongValueError as wrong:
            document.annotation_place(name).refuse(wrong.problem, wrong.remedy)
    return found
