"""SLI: what is measured, from `ratioMetric` or `thresholdMetric`."""

from dataclasses import dataclass
from typing import Any

from jobs.openslo.documents import Documents, mapping, metadata_of
from jobs.openslo.metric_sources import Source, source_of
from jobs.openslo.record_fields import JUDGE_F1, MEASUREMENTS, REQUESTS, SAMPLING_RATE, SCORES, RecordFields
from jobs.openslo.values import flag
from jobs.yaml_fields import REQUIRED, Place, fields_of, optional, text
from udfs.slo.conditions import Condition
from udfs.slo.indicators import Indicator, Quantile, Ratio, Throughput
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.metric_ratio import MetricRatio

_INLINE = {"metadata": (optional(mapping), None), "spec": (mapping, REQUIRED)}
_SLI = {
    "description": (optional(text), None),
    "thresholdMetric": (optional(mapping), None),
    "ratioMetric": (optional(mapping), None),
}
_RATIO = {
    "counter": (flag, True),
    "good": (optional(mapping), None),
    "bad": (optional(mapping), None),
    "total": (optional(mapping), None),
    "rawType": (optional(text), None),
    "raw": (optional(mapping), None),
}


@dataclass(frozen=True)
class Measured:
    """An indicator, the records it counts, and the source of a thresholdMetric, which names its window."""

    indicator: Indicator
    records: RecordFields
    threshold: Source | None = None


def indicator_of(place: Place, spec: dict[str, Any], documents: Documents, *, judged: bool) -> Measured:
    """Return what an SLO measures, inline or by name. `judged`: of scores, only those of a qualified judge count."""
    inline, reference = spec["indicator"], spec["indicatorRef"]
    if (inline is None) == (reference is None):
        problem = "is missing" if inline is None else "stands beside indicatorRef"
        place.field("indicator").refuse(problem, "Give exactly one of indicator and indicatorRef")
    if reference is not None:
        document = documents.get("SLI", reference, place.field("indicatorRef"))
        document.check_annotations(())
        return _read(document.spec_place, document.spec, documents, judged)
    at = place.field("indicator")
    values = fields_of(at, inline, _INLINE)
    if values["metadata"] is not None:
        metadata_of(at.field("metadata"), values["metadata"])
    return _read(at.field("spec"), values["spec"], documents, judged)


def check_indicators(documents: Documents) -> None:
    """Check the SLIs of the file, those that no SLO names too."""
    for document in documents.of("SLI"):
        document.check_annotations(())
        _read(document.spec_place, document.spec, documents, judged=False)


def _read(place: Place, body: dict[str, Any], documents: Documents, judged: bool) -> Measured:
    values = fields_of(place, body, _SLI)
    threshold, ratio = values["thresholdMetric"], values["ratioMetric"]
    if (threshold is None) == (ratio is None):
        place.refuse("needs exactly one of thresholdMetric and ratioMetric", "Give one of them")
    if ratio is not None:
        return _ratio(place.field("ratioMetric"), ratio, documents, judged)
    source = source_of(place.field("thresholdMetric"), threshold, documents)
    return Measured(_threshold(source), source.records, source)


def _ratio(place: Place, body: dict[str, Any], documents: Documents, judged: bool) -> Measured:
    values = fields_of(place, body, _RATIO)
    if values["raw"] is not None or values["rawType"] is not None:
        remedy = "Give good (or bad) and total: a budget needs counts, and a ratio made elsewhere has none"
        place.field("raw").refuse("is a ratio without its counts", remedy)
    if (values["good"] is None) == (values["bad"] is None):
        place.refuse("needs exactly one of good and bad", "Give the part that is easier to say")
    if values["total"] is None:
        place.field("total").refuse("is missing", "Say what is counted; `spec: {from: requests}` is every request")
    name = "bad" if values["good"] is None else "good"
    total, part = (source_of(place.field(of), values[of], documents) for of in ("total", name))
    if part.records != total.records:
        place.field(name).refuse(
            f"counts {part.records.topic}, total {total.records.topic}", "Count both from one topic"
        )
    is_good, judge = name == "good", JUDGE_F1 if judged and total.records.topic == SCORES else None
    conditions = _conditions(total), _conditions(part)
    if total.records.topic == MEASUREMENTS:
        if total.at_most is not None:
            total.place.field("at_most").refuse(
                "belongs to good or bad", "Leave it out: all observations are the total"
            )
        return Measured(MetricRatio(*conditions, is_good, part.at_most), total.records)
    _refuse_at_most(total, part)
    if len(conditions[1]) == (total.records.named_by is not None):
        place.field(name).refuse("has no condition", "Say under `where` which of the total it is")
    chance = SAMPLING_RATE if total.records.topic == SCORES else None
    return Measured(Ratio(*conditions, is_good, judge, chance), total.records)


def _conditions(source: Source) -> tuple[Condition, ...]:
    for name in ("field", "quantile", "window_ms", "slide_ms"):
        if getattr(source, name) is not None:
            source.place.field(name.removesuffix("_ms")).refuse("does not belong in a ratio", "Use `where`")
    if source.per_second:
        source.place.field("per_second").refuse("does not belong in a ratio", "Use a thresholdMetric")
    return source.where


def _refuse_at_most(*sources: Source) -> None:
    for source in sources:
        if source.at_most is not None and source.records.topic == MEASUREMENTS:
            remedy = "Leave it out: a thresholdMetric's limit is its objective's value"
            source.place.field("at_most").refuse("belongs to good or bad of a ratio", remedy)
        if source.at_most is not None:
            remedy = "Use `where: [{field: ..., op: lte, value: ...}]`"
            source.place.field("at_most").refuse(f"is for histograms, not for {source.records.topic}", remedy)


def _threshold(source: Source) -> Indicator:
    if source.window_ms is None:
        remedy = "Say over which time the figure is, such as `window: 1m`, and where it slides, `slide: 30s`"
        source.place.field("window").refuse("is missing", remedy)
    _refuse_at_most(source)
    if source.per_second:
        if source.records.topic != REQUESTS:
            source.place.field("per_second").refuse(f"is not of {source.records.topic}", "Count requests a second")
        if source.field is not None or source.quantile is not None:
            source.place.refuse("asks for two figures", "Give field and quantile, or per_second")
        return Throughput(source.where)
    if source.records.topic == MEASUREMENTS and source.field is None and source.quantile is not None:
        return MetricQuantile(source.where, source.quantile)
    if source.field is None or source.quantile is None:
        remedy = "Give field and quantile, such as 0.95, or `per_second: true` for a throughput"
        source.place.refuse("names no figure", remedy)
    if not source.records.is_number(source.place.field("field"), source.field):
        source.place.field("field").refuse(f"{source.field} is no number", "Name a field that is one")
    return Quantile(source.field, source.quantile, source.where)
