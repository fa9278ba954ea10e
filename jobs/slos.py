"""The SLO file: OpenSLO v1 to validated SLOs, or a ConfigurationError before anything is submitted.

docs/slos.md describes the dialect. Paths in the file are relative to it.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.openslo.alerting import burn_rules_of, check_alerting
from jobs.openslo.annotations import annotations_of, check_labels
from jobs.openslo.documents import Document, Documents, mapping, read_documents
from jobs.openslo.indicator import Measured, check_indicators, indicator_of
from jobs.openslo.metric_sources import Source, check_data_sources
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
_TARGET = {"description": (optional(text), None), "target": (text, REQUIRED)}


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
    the first thing that is wrong, also in objects that no SLO refers to.
    """
    documents = read_documents(Place(str(path)))
    _check_others(documents)
    default_card = None if model_card is None else _card_digest(Place("command line", "--model-card"), Path(model_card))
    found: dict[str, Slo] = {}
    for document in documents.of("SLO"):
        for slo in _Written.of(document, documents, default_card).slos():
            if slo.name in found:
                document.place.field("metadata.name").refuse(f"two SLOs would be called {slo.name}", "Rename one")
            found[slo.name] = slo
    if not found:
        documents.place.refuse("holds no document of kind SLO", "Add at least one")
    return Slos(tuple(found.values()))


def _check_others(documents: Documents) -> None:
    for service in documents.of("Service"):
        service.check_annotations(("model-card",))
        fields_of(service.spec_place, service.spec, _SERVICE)
    for target in documents.of("AlertNotificationTarget"):
        fields_of(target.spec_place, target.spec, _TARGET)
    check_data_sources(documents)
    check_indicators(documents)
    check_alerting(documents)


@dataclass(frozen=True)
class _Written:
    """One document of kind SLO, read as far as its objectives have in common."""

    document: Document
    spec: dict[str, Any]
    own: dict[str, Any]
    card_digest: str
    measured: Measured
    period: Period
    burn_rules: tuple[BurnRule, ...]

    @classmethod
    def of(cls, document: Document, documents: Documents, default_card: str | None) -> "_Written":
        """Read what stands around the objectives."""
        place = document.spec_place
        spec = fields_of(place, document.spec, _SPEC)
        own = annotations_of(document)
        card_digest = _card_of(document, own["model-card"], documents, spec["service"], default_card)
        measured = indicator_of(place, spec, documents, judged=own["judged"] == "true")
        check_labels(document, own["group-by"], measured.records.labels)
        period = period_of(place, spec["timeWindow"])
        rules = burn_rules_of(place, spec["alertPolicies"], documents)
        if not rules and own["burn-rates"] != "none":
            rules = workbook_rules(period.length_ms, own["burn-rate-scaling"])
        return cls(document, spec, own, card_digest, measured, period, rules)

    def slos(self) -> list[Slo]:
        """Return one SLO an objective."""
        objectives, place = self.spec["objectives"], self.document.spec_place
        is_threshold = self.measured.threshold is not None
        if not objectives or (is_threshold and len(objectives) > 1):
            allowed = "exactly one objective" if is_threshold else "at least one objective"
            place.field("objectives").refuse(f"has {len(objectives)}", f"Give {allowed}")
        name = self.document.name
        names = [name] if len(objectives) == 1 else [f"{name}-{number}" for number, _ in enumerate(objectives, 1)]
        places = [place.field(f"objectives[{number}]") for number, _ in enumerate(objectives)]
        return [self._slo(*one) for one in zip(names, places, objectives, strict=True)]

    def _slo(self, name: str, place: Place, body: Any) -> Slo:
        objective, own = fields_of(place, body, _OBJECTIVE), self.own
        made = {
            "name": name,
            "service": self.spec["service"],
            "indicator": self.measured.indicator,
            "target": _target(place, objective),
            "period": self.period,
            "budgeting": _budgeting(place, Method(self.spec["budgetingMethod"]), objective, own["min-slice-events"]),
            "burn_rules": self.burn_rules,
            "window": _window(self.document, place, objective, self.measured.threshold, own),
            "min_events": own["min-events"],
            "judge": _judge(own, self.measured.records.topic),
            "source": self.measured.records.topic,
        }
        try:
            return Slo(frame=_frame(own["group-by"], made, self.card_digest), alert=_alert(own), **made)
        except ValueError as error:
            remedy = (
                "Raise the target, or declare alertPolicies with a lower threshold; "
                "annotation slacktide.dev/burn-rates: none alerts on no burn rate"
            )
            place.refuse(str(error), remedy)


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


def _frame(group_by: tuple[str, ...], made: dict[str, Any], card_digest: str) -> Frame:
    """What a verdict depends on makes the digest, and nothing else: texts of alerts leave the ids as they are."""
    digest = content_digest(identity(made | {"group_by": group_by}))
    return Frame(made["name"], "", group_by, MINUTE_MS, MINUTE_MS, digest, None, card_digest, VerdictKind.SLO)


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
