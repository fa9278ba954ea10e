"""The SLO file: OpenSLO v1 to validated SLOs, or a ConfigurationError before anything is submitted.

docs/slos.md describes the dialect. Paths in the file are relative to it.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.openslo.alerting import burn_rules_of
from jobs.openslo.annotations import annotations_of, check_labels
from jobs.openslo.documents import Document, Documents, mapping, read_documents
from jobs.openslo.indicator import indicator_of
from jobs.openslo.metric_sources import Source
from jobs.openslo.record_fields import SCORES
from jobs.openslo.time_window import period_of
from jobs.openslo.values import above_0_up_to_1, percent, ratio, whole_minutes
from jobs.yaml_fields import REQUIRED, Place, fields_of, finite_number, one_of, optional, some_list, text
from schemas.ids import content_digest
from schemas.model_card import ModelCardError, load_model_card
from schemas.verdicts import VerdictKind
from udfs.judging.frame import Frame
from udfs.slo.budgeting import Budgeting, Method
from udfs.slo.burn_rules import BurnRule, workbook_rules
from udfs.slo.identity import identity
from udfs.slo.periods import MINUTE_MS, Period
from udfs.slo.slo import AlertText, Judge, Slo, WindowRule

_SPEC = {
    "description": (optional(text), None),
    "service": (text, REQUIRED),
    "indicator": (optional(mapping), None),
    "indicatorRef": (optional(text), None),
    "timeWindow": (lambda value: value, None),
    "budgetingMethod": (one_of([method.value for method in Method]), REQUIRED),
    "objectives": (some_list, REQUIRED),
    "alertPolicies": (some_list, []),
}
_OBJECTIVE = {
    "displayName": (optional(text), None),
    "op": (optional(one_of(("lt", "lte", "gt", "gte"))), None),
    "value": (optional(finite_number), None),
    "target": (optional(ratio), None),
    "targetPercent": (optional(percent), None),
    "timeSliceTarget": (optional(above_0_up_to_1), None),
    "timeSliceWindow": (optional(whole_minutes), None),
}
_SERVICE = {"description": (optional(text), None)}


@dataclass(frozen=True)
class Slos:
    """A whole SLO file. Slices of `slice_ms` are what every window and every minute is made of."""

    slos: tuple[Slo, ...]

    @property
    def slice_ms(self) -> int:
        """The longest that divides a minute and every window and slide."""
        lengths = [MINUTE_MS]
        for slo in self.slos:
            if slo.window is not None:
                lengths += [slo.window.window_ms, slo.window.slide_ms]
        return math.gcd(*lengths)

    @property
    def by_name(self) -> dict[str, Slo]:
        """The SLOs by their names."""
        return {slo.name: slo for slo in self.slos}


def load_slos(path: str | Path, model_card: str | Path | None = None) -> Slos:
    """Read and check an OpenSLO file and the model cards it points to.

    `model_card` is the card of SLOs that name none. Raises ConfigurationError naming file, field, problem and remedy of
    the first thing that is wrong.
    """
    documents = read_documents(Place(str(path)))
    for service in documents.of("Service"):
        service.check_annotations(("model-card",))
        fields_of(service.spec_place, service.spec or {"description": None}, _SERVICE)
    default_card = None if model_card is None else _card_digest(Place("command line", "--model-card"), Path(model_card))
    found = [slo for document in documents.of("SLO") for slo in _objectives(document, documents, default_card)]
    if not found:
        documents.place.refuse("holds no document of kind SLO", "Add at least one")
    return Slos(tuple(found))


def _objectives(document: Document, documents: Documents, default_card: str | None) -> list[Slo]:
    place = document.spec_place
    spec = fields_of(place, document.spec, _SPEC)
    own = annotations_of(document)
    card = _card_of(document, own["model-card"], documents, spec["service"], default_card)
    measured = indicator_of(place, spec, documents, judged=own["judged"] == "true")
    source = measured.threshold
    check_labels(document, own["group-by"], measured.records.labels)
    objectives = spec["objectives"]
    if not objectives or (source is not None and len(objectives) > 1):
        allowed = "exactly one objective" if source is not None else "at least one objective"
        place.field("objectives").refuse(f"has {len(objectives)}", f"Give {allowed}")
    period = period_of(place, spec["timeWindow"])
    own_rules = burn_rules_of(place, spec["alertPolicies"], documents)
    found = []
    for number, body in enumerate(objectives):
        at = place.field(f"objectives[{number}]")
        objective = fields_of(at, body, _OBJECTIVE)
        target = _target(at, objective)
        name = document.name if len(objectives) == 1 else f"{document.name}-{number + 1}"
        made = {
            "name": name,
            "service": spec["service"],
            "indicator": measured.indicator,
            "target": target,
            "period": period,
            "budgeting": _budgeting(at, Method(spec["budgetingMethod"]), objective, own["min-slice-events"]),
            "burn_rules": own_rules or _workbook(period, own),
            "window": _window(document, at, objective, source, own),
            "min_events": own["min-events"],
            "judge": _judge(own, measured.records.topic),
            "source": measured.records.topic,
            "alert": _alert(own),
        }
        frame = _frame(name, own["group-by"], made, card)
        try:
            found.append(Slo(frame=frame, **made))
        except ValueError as error:
            remedy = (
                "Raise the target, or declare alertPolicies with a lower threshold; "
                "annotation slacktide.dev/burn-rates: none alerts on no burn rate"
            )
            at.refuse(str(error), remedy)
    return found


def _target(place: Place, objective: dict[str, Any]) -> float:
    given = [objective[name] for name in ("target", "targetPercent") if objective[name] is not None]
    if len(given) != 1:
        problem = "is missing" if not given else "stands beside targetPercent"
        place.field("target").refuse(problem, "Give exactly one of target (0.99) and targetPercent (99)")
    return float(given[0])


def _budgeting(place: Place, method: Method, objective: dict[str, Any], min_slice_events: int) -> Budgeting:
    """Check that what belongs to the method is there, and nothing else."""
    needed = {
        Method.OCCURRENCES: (),
        Method.TIMESLICES: ("timeSliceTarget", "timeSliceWindow"),
        Method.RATIO_TIMESLICES: ("timeSliceWindow",),
    }[method]
    for name in ("timeSliceTarget", "timeSliceWindow"):
        if name in needed and objective[name] is None:
            place.field(name).refuse("is missing", f"{method} needs it")
        if name not in needed and objective[name] is not None:
            place.field(name).refuse(f"has no meaning for {method}", "Leave it out, or choose another budgetingMethod")
    if method is Method.OCCURRENCES:
        return Budgeting()
    slice_target = 1.0 if objective["timeSliceTarget"] is None else objective["timeSliceTarget"]
    return Budgeting(method, objective["timeSliceWindow"], slice_target, min_slice_events)


def _workbook(period: Period, own: dict[str, Any]) -> tuple[BurnRule, ...]:
    return () if own["burn-rates"] == "none" else workbook_rules(period.length_ms, own["burn-rate-scaling"])


def _window(
    document: Document, place: Place, objective: dict[str, Any], source: Source | None, own: dict[str, Any]
) -> WindowRule | None:
    """The rule on a window's figure: a thresholdMetric's objective, or what annotations ask of a ratio."""
    if source is None:
        for name in ("op", "value"):
            if objective[name] is not None:
                place.field(name).refuse("belongs to a thresholdMetric", "Leave it out: a ratio has only its target")
        return _ratio_window(document, own)
    for name in ("op", "value"):
        if objective[name] is None:
            place.field(name).refuse(
                "is missing", "A thresholdMetric is held against it, such as `op: lt`, `value: 0.8`"
            )
    for name in ("window", "slide", "window-limit"):
        if own[name] is not None:
            document.annotation_place(name).refuse("belongs to a ratio", "Write window and slide into the metricSource")
    assert source.window_ms is not None  # jobs.openslo.indicator asked for it
    slide_ms = source.slide_ms or source.window_ms
    _check_slide(source.place.field("slide"), source.window_ms, slide_ms)
    return WindowRule(
        limit=objective["value"],
        wrong_side="above" if objective["op"] in ("lt", "lte") else "below",
        window_ms=source.window_ms,
        slide_ms=slide_ms,
        min_events=own["window-min-events"],
        is_point=True,
        equal_breaches=objective["op"] in ("lt", "gt"),
    )


def _ratio_window(document: Document, own: dict[str, Any]) -> WindowRule | None:
    if own["window"] is None and own["window-limit"] is None:
        if own["slide"] is not None:
            document.annotation_place("slide").refuse("has no window", "Set window and window-limit too")
        return None
    for name in ("window", "window-limit"):
        if own[name] is None:
            document.annotation_place(name).refuse("is missing", "Set window and window-limit together")
    if not 0 < own["window-limit"] < 1:
        document.annotation_place("window-limit").refuse("is no share", "Give the most that may be bad, such as 0.05")
    slide_ms = own["slide"] or own["window"]
    _check_slide(document.annotation_place("slide"), own["window"], slide_ms)
    return WindowRule(own["window-limit"], "above", own["window"], slide_ms, own["window-min-events"])


def _check_slide(place: Place, window_ms: int, slide_ms: int) -> None:
    if window_ms % slide_ms:
        place.refuse("does not divide the window", "Give a slide that does, such as 30s of a window of 1m")


def _judge(own: dict[str, Any], topic: str) -> Judge | None:
    """What the file says of the judge; scores say it themselves, one by one."""
    if own["judge-f1"] is not None:
        return Judge(own["judge-f1"])
    return Judge(None) if own["judged"] == "true" and topic != SCORES else None


def _alert(own: dict[str, Any]) -> AlertText:
    return AlertText(
        owner=own["owner"],
        runbook_url=own["runbook-url"],
        severity=own["window-severity"],
        firing_after_windows=own["alert-after-windows"],
        resolved_after_windows=own["resolve-after-windows"],
    )


def _frame(name: str, group_by: tuple[str, ...], made: dict[str, Any], card_digest: str) -> Frame:
    """What a verdict depends on makes the digest, and nothing else: texts of alerts leave the ids as they are."""
    effective = {key: value for key, value in made.items() if key != "alert"} | {"group_by": group_by}
    digest = content_digest(identity(effective))
    return Frame(name, "", group_by, MINUTE_MS, MINUTE_MS, digest, None, card_digest, VerdictKind.SLO)


def _card_of(document: Document, path: str | None, documents: Documents, service: str, default_card: str | None) -> str:
    """The card of the SLO, else of its service, else the one for all."""
    if path is not None:
        place = document.annotation_place("model-card")
        return _card_digest(place, place.relative(path))
    of_service = documents.by_name.get(("Service", service))
    if of_service is not None and "model-card" in of_service.annotations:
        place = of_service.annotation_place("model-card")
        return _card_digest(place, place.relative(of_service.annotations["model-card"]))
    if default_card is None:
        remedy = "Set it on the SLO or its Service to the path of a model card, or give --model-card"
        document.annotation_place("model-card").refuse("is missing", remedy)
    return default_card


def _card_digest(place: Place, path: Path) -> str:
    try:
        return load_model_card(path).digest
    except ModelCardError as error:
        place.refuse(f"{path}: {error.field}: {error.problem}", error.remedy)
