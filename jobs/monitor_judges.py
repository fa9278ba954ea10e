"""From a monitor's fields to what judges its windows: its features with their findings, then its further tests.

docs/monitors.md describes every field. A test's own parameters are part of the configuration digest of its verdicts,
and of no other's.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, get_args

import numpy as np
import orjson
from numpy.typing import NDArray

from jobs.kafka_client import ConfigurationError
from jobs.monitor_budget import COMPARED, DividedBudget, divided_budget
from jobs.yaml_fields import (
    REQUIRED,
    Check,
    Place,
    at_least_one,
    fields_of,
    finite_number,
    list_of_texts,
    nearest,
    one_of,
    optional,
    strictly_between_0_and_1,
    text,
    zero_up_to_1,
)
from schemas.field_types import FieldType
from schemas.ids import content_digest
from schemas.requests import request_fields
from udfs.budget.binned import BinnedBudget, BinnedTest, binned_budget
from udfs.budget.cache import AnswerCache
from udfs.budget.distances import distance_budget, unit_of
from udfs.budget.false_alarms import FalseAlarmBudget
from udfs.budget.pairs import PairBudget, bin_edges, pair_budget
from udfs.budget.threshold import ThresholdCurve, source_for, threshold_curve
from udfs.judging.binned import BinnedCategories, BinnedNumbers
from udfs.judging.embedding import EmbeddingJudge, EmbeddingPolicy
from udfs.judging.fixed_limit import Figure, FixedLimit, Limit, reference_figure
from udfs.judging.frame import Frame
from udfs.judging.new_category import NewCategory
from udfs.judging.null_rate import NullRate
from udfs.judging.range import Range
from udfs.judging.reference_categories import TESTS as CATEGORY_TESTS
from udfs.judging.reference_categories import ReferenceCategories
from udfs.judging.reference_categories import budgeted as category_test
from udfs.judging.reference_distance import ReferenceDistance
from udfs.judging.reference_distance import Test as Distance
from udfs.judging.reference_divergence import DivergencePolicy, ReferenceDivergence
from udfs.judging.reference_divergence import Test as Divergence
from udfs.judging.reference_divergence import budgeted as divergence_test
from udfs.judging.reference_ks import ReferenceKs
from udfs.judging.same_hour import SameHour
from udfs.judging.slice_machine import CountWindows, EarlierHour, SliceMachine
from udfs.judging.stream_pair import PairPolicy
from udfs.judging.transform_mismatch import MismatchPolicy, TransformMismatch
from udfs.judging.two_streams import TwoStreams
from udfs.judging.unmonitored import Unmonitored
from udfs.judging.version_semantics import VersionSemantics
from udfs.judging.window_judge import WindowJudge
from udfs.judging.with_findings import WithFindings
from udfs.references.bins import ReferenceBins
from udfs.references.category_feature import CategoryReference
from udfs.references.embedding_reference import EmbeddingReference
from udfs.references.errors import ReferenceProfileError
from udfs.references.figures import ReferenceFigures
from udfs.references.profile import ReferenceProfile
from udfs.slicing.fields import ATTRIBUTE, ATTRIBUTE_NAMES
from udfs.statistics.ks import Method
from udfs.versions.version_limits import ConfidenceShiftLimit, ConsistencyLimit, DivergenceLimit

FINDINGS: Mapping[str, Mapping[str, tuple[Check, Any]]] = {
    "null_rate": {"alpha": (strictly_between_0_and_1, 0.01), "min_effect": (zero_up_to_1, 0.02)},
    "range": {"max_share": (zero_up_to_1, 0.01)},
    "new_category": {"max_share": (zero_up_to_1, 0.01)},
    "transform_mismatch": {},
    "unmonitored_feature": {"max_share": (zero_up_to_1, 0.05), "known": (list_of_texts, [])},
}
_SAMPLES = {"min_samples": (at_least_one, 100)}
_KS_PAIR = {"alpha": (strictly_between_0_and_1, 0.01), "min_effect": (zero_up_to_1, 0.05)}
_FIELD = {"field": (text, REQUIRED)}
_DIVERGENCE = _FIELD | {"threshold": (optional(finite_number), None), "min_samples": (at_least_one, 200)}
TESTS: Mapping[str, Mapping[str, tuple[Check, Any]]] = {
    **dict.fromkeys((*get_args(Divergence), *get_args(Distance)), _DIVERGENCE),
    "two_streams": _FIELD
    | _KS_PAIR
    | _SAMPLES
    | {"split_by": (text, REQUIRED), "baseline": (optional(text), None)}
    | {COMPARED["two_streams"][0]: (at_least_one, COMPARED["two_streams"][1])},
    "same_hour": _FIELD | _KS_PAIR | _SAMPLES | {"lag_hours": (at_least_one, 168)},
    "limit": _FIELD
    | _SAMPLES
    | {
        "figure": (one_of(get_args(Figure)), REQUIRED),
        "q": (strictly_between_0_and_1, 0.5),
        "below": (optional(finite_number), None),
        "above": (optional(finite_number), None),
        "change": (optional(finite_number), None),
    },
    "embedding": _FIELD
    | _SAMPLES
    | {
        "reference": (text, REQUIRED),
        "max_drop": (zero_up_to_1, 0.05),
        "alpha": (strictly_between_0_and_1, 0.01),
        "min_effect": (zero_up_to_1, 0.1),
    },
    "version_semantics": {
        "agreement": (optional(text), None),
        "kl_nats": (optional(text), None),
        "js_bits": (optional(text), None),
        "consistency_below": (strictly_between_0_and_1, 0.85),
        "consistency_every": (at_least_one, 1000),
        "confidence_shift_above": (finite_number, 0.32),
        "js_above": (optional(finite_number), None),
        "min_samples": (at_least_one, 100),
    },
}


def cache_folder() -> Path:
    """Where simulated thresholds are kept: `$XDG_CACHE_HOME/slacktide/thresholds`, by default under `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slacktide" / "thresholds"


@dataclass(frozen=True)
class MonitorContext:
    """What judges of one monitor are made of: its checked fields, its reference, and the frame of its verdicts.

    `effective` is what the ids of the monitor's verdicts depend on.
    """

    place: Place
    fields: Mapping[str, Any]
    profile: ReferenceProfile
    frame: Frame
    effective: Mapping[str, Any]

    def framed(self, feature: str, own: Mapping[str, Any], reference_digest: str | None) -> Frame:
        """Return the frame of a test with parameters of its own."""
        digest = content_digest(orjson.dumps({**self.effective, **own}, option=orjson.OPT_SORT_KEYS))
        return replace(self.frame, feature=feature, config_digest=digest, reference_digest=reference_digest)


def judges_of(context: MonitorContext) -> tuple[tuple[WindowJudge, ...], tuple[SliceMachine, ...]]:
    """Return every judge of a monitor's windows by time, and what judges its slices one after the other.

    Raises ConfigurationError naming file, field, problem and remedy.
    """
    given = context.fields
    findings = _findings(context.place.field("findings"), given["findings"])
    judges: list[WindowJudge] = [
        _feature_judge(context, context.place.field(f"features[{number}]"), feature, findings)
        for number, feature in enumerate(given["features"])
    ]
    if "unmonitored_feature" in findings:
        judges.append(_unmonitored(context, findings["unmonitored_feature"]))
    places = (context.place.field(f"tests[{number}]") for number in range(len(given["tests"])))
    found = [_test_judge(context, place, body) for place, body in zip(places, given["tests"], strict=True)]
    machines: list[SliceMachine] = [test for test in found if isinstance(test, EarlierHour)]
    judges += (test for test in found if not isinstance(test, EarlierHour))
    count = given["window_requests"]
    if not count:
        return tuple(judges), tuple(machines)
    try:
        return (), (*machines, *(CountWindows(judge, count) for judge in judges))
    except ValueError as error:
        remedy = "Put the others into a monitor with window_seconds"
        context.place.field("window_requests").refuse(str(error), remedy)


def is_category(field: str) -> bool:
    """Whether a field of a request is judged by its categories rather than as a number."""
    kinds = {found.name: found.type for found in request_fields()}
    return kinds.get(field) in {FieldType.STRING, FieldType.BOOL}


def _findings(place: Place, given: list[Any]) -> dict[str, dict[str, Any]]:
    """The findings asked for: a name each, or a mapping of one name to its parameters."""
    found: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(given):
        at = place.field(str(number))
        body = entry if isinstance(entry, dict) else {entry: {}}
        if len(body) != 1:
            at.refuse("is no finding", "Write a name, or `name: {parameter: value}`")
        ((name, parameters),) = body.items()
        if name not in FINDINGS:
            at.refuse(f"{name!r} is no finding", nearest(str(name), FINDINGS))
        if name in found:
            at.refuse(f"{name} stands twice", "Name it once")
        found[str(name)] = fields_of(at.field(str(name)), parameters or {}, FINDINGS[name])
    return found


def _feature_judge(context: MonitorContext, place: Place, field: str, findings: Mapping[str, Any]) -> WindowJudge:
    """The main test of one feature, with those findings that can be made of it."""
    given = context.fields
    common = {"field": field, "min_samples": given["min_samples"]}
    frame = replace(context.frame, feature=field)

    def own(name: str) -> dict[str, Any]:
        return {"frame": context.framed(field, {"finding": name} | findings[name], context.profile.digest)} | common

    beside: list[WindowJudge] = []
    nulls: dict[str, Any] = {}
    if is_category(field):
        categories = _asked(place, context, field, context.profile.categories)
        main: Any = ReferenceCategories(
            **common,
            frame=context.framed(field, {"test": given["category_test"]}, context.profile.digest),
            reference=categories,
            alpha=given["alpha"],
            min_effect=given["min_effect"],
            test=given["category_test"],
            budget=_category_budget(context, categories) if given["false_alarms"] else None,
        )
        nulls = {"reference_n": categories.n_raw, "reference_null": categories.n_null}
        if "new_category" in findings:
            beside.append(NewCategory(**own("new_category"), reference=categories, **findings["new_category"]))
    else:
        ranks = _asked(place, context, field, context.profile.feature)
        stored = context.profile.features[field]
        policy = {name: given[name] for name in ("alpha", "min_effect", "method")}
        budget = _budget(context, field) if given["false_alarms"] else None
        main = ReferenceKs(**common, frame=frame, reference=ranks, budget=budget, **policy)
        nulls = {"reference_n": stored.n_raw, "reference_null": stored.n_null}
        if "range" in findings:
            ends = {"minimum": stored.minimum, "maximum": stored.maximum, "n_reference": nulls["reference_n"]}
            beside.append(Range(**own("range"), **ends, **findings["range"]))
        if "transform_mismatch" in findings:
            mismatch = own("transform_mismatch")
            minimum = MismatchPolicy(min_samples=mismatch.pop("min_samples"))
            beside.append(TransformMismatch(**mismatch, points=stored.points, policy=minimum))
    looks = (NullRate(**own("null_rate"), **nulls, **findings["null_rate"]),) if "null_rate" in findings else ()
    return WithFindings(main, looks, tuple(beside)) if looks or beside else main


def _budget(context: MonitorContext, field: str) -> ThresholdCurve:
    """The thresholds that keep the monitor's false-alarm budget for one field: shipped, cached, or simulated now."""
    given, stored = context.fields, context.profile.features[field]
    return _threshold_curve(
        context,
        n_raw=stored.n_raw,
        points=stored.points,
        known=stored.autocorrelation,
        min_effect=given["min_effect"],
        method=given["method"],
    )


def _threshold_curve(
    context: MonitorContext,
    *,
    n_raw: int,
    points: NDArray[np.float64],
    known: float | None,
    min_effect: float,
    method: Method,
) -> ThresholdCurve:
    given = context.fields
    coefficient = given["autocorrelation"] if given["autocorrelation"] is not None else known
    try:
        return threshold_curve(
            n_reference=n_raw,
            n_points=points.size,
            n=given["window_requests"] or given["expected_samples"],
            overlap=context.frame.window_ms // context.frame.slide_ms,
            source=source_for(points, coefficient or 0.0),
            rate=_rate_of_one_test(context),
            min_effect=min_effect,
            method=method,
            order_known=coefficient is not None,
            cache=AnswerCache(cache_folder()),
        )
    except ValueError as error:
        _refuse_budget(context, error)


def _category_budget(context: MonitorContext, reference: CategoryReference) -> BinnedBudget:
    """The same for a category field; how its values depend on each other no reference tells yet."""
    test, counts = category_test(context.fields["category_test"], reference)
    return _binned_budget(context, test, ReferenceBins.of_counts(counts), None)


def _binned_budget(
    context: MonitorContext, test: BinnedTest, bins: ReferenceBins, autocorrelation: float | None
) -> BinnedBudget:
    given = context.fields
    try:
        return binned_budget(
            test,
            bins,
            n=given["window_requests"] or given["expected_samples"],
            overlap=context.frame.window_ms // context.frame.slide_ms,
            coefficient=given["autocorrelation"] if given["autocorrelation"] is not None else autocorrelation,
            rate=_rate_of_one_test(context),
            tests=_divided(context).shares,
            cache=AnswerCache(cache_folder()),
        )
    except ValueError as error:
        _refuse_budget(context, error)


def _rate_of_one_test(context: MonitorContext) -> float:
    """The onsets a window that one test of one series may have. Raises ValueError on what is no budget."""
    budget = FalseAlarmBudget.parse(context.fields["false_alarms"])
    if context.fields["window_requests"] and budget.windows is None:
        raise ValueError("windows by count come in no fixed time, so the budget must be of so many windows")
    return budget.onset_rate(slide_seconds=context.frame.slide_ms / 1000, tests=_divided(context).shares)


def _divided(context: MonitorContext) -> DividedBudget:
    divided = divided_budget(context.fields)
    assert divided is not None  # asked only where the monitor has a budget
    return divided


def _refuse_budget(context: MonitorContext, error: ValueError) -> NoReturn:
    remedy = "Write such as '1 per 30d', and see docs/monitors.md for what goes with it"
    context.place.field("false_alarms").refuse(str(error), remedy)


def _unmonitored(context: MonitorContext, parameters: Mapping[str, Any]) -> WindowJudge:
    watched = {f.removeprefix(ATTRIBUTE) for f in context.fields["features"] if f.startswith(ATTRIBUTE)}
    watched |= {
        str(body["field"]).removeprefix(ATTRIBUTE)
        for body in context.fields["tests"]
        if isinstance(body, dict) and str(body.get("field", "")).startswith(ATTRIBUTE)
    }
    return Unmonitored(
        frame=context.framed(ATTRIBUTE_NAMES, {"finding": "unmonitored_feature", **parameters}, None),
        field=ATTRIBUTE_NAMES,
        watched=frozenset(watched),
        known=frozenset(parameters["known"]),
        max_share=parameters["max_share"],
        min_samples=1,
    )


def _asked(place: Place, context: MonitorContext, field: str, ask: Callable[[str], Any]) -> Any:
    """What the reference profile has of a field."""
    try:
        return ask(field)
    except ReferenceProfileError as error:
        remedy = f"{error.remedy} Build one with `slacktide reference build`"
        place.refuse(f"reference {context.fields['reference']} has no {field}", remedy)


def _test_judge(context: MonitorContext, place: Place, body: Any) -> WindowJudge | EarlierHour:
    if not isinstance(body, dict) or body.get("test") not in TESTS:
        found = body.get("test") if isinstance(body, dict) else body
        place.field("test").refuse(f"{found!r} is no test", nearest(str(found), TESTS))
    name = str(body["test"])
    given = fields_of(place, {key: value for key, value in body.items() if key != "test"}, TESTS[name])
    for key in ("field", "split_by", "agreement", "kl_nats", "js_bits"):
        if given.get(key):
            _check_known(place.field(key), given[key])
    build = _BUILDERS.get(name, _divergence)
    try:
        return build(context, place, {"test": name} | given)
    except ConfigurationError:
        raise
    except ValueError as error:
        place.refuse(str(error), "See docs/monitors.md for what this test takes")


def _check_known(place: Place, field: str) -> None:
    names = [found.name for found in request_fields()]
    if field not in names and not (field.startswith(ATTRIBUTE) and field != ATTRIBUTE):
        place.refuse(f"{field!r} is no field of a request", nearest(field, names, f" and {ATTRIBUTE}NAME"))


def _divergence(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    field, at = given["field"], place.field("field")
    binned: Any
    if is_category(field):
        binned = BinnedCategories(_asked(at, context, field, context.profile.categories).counts)
        counts, autocorrelation = binned.counts(binned.reference)[0], None
        bins = ReferenceBins.of_counts(counts)
    else:
        binned = BinnedNumbers(_asked(at, context, field, context.profile.feature))
        stored, counts = context.profile.features[field], binned.bins.reference_counts
        bins, autocorrelation = ReferenceBins.of_quantiles(counts, stored.n_raw), stored.autocorrelation
    is_governed = bool(context.fields["false_alarms"])
    policy = DivergencePolicy(given["test"], _least_threshold(context, place, given), given["min_samples"])
    frame = context.framed(f"{given['test']}({field})", given, context.profile.digest)
    budget = _binned_budget(context, divergence_test(policy, counts), bins, autocorrelation) if is_governed else None
    return ReferenceDivergence(frame, field, binned, policy, budget)


def _distance(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    field, test, fields = given["field"], given["test"], context.fields
    ranks = _asked(place.field("field"), context, field, context.profile.feature)
    stored, budget = context.profile.features[field], None
    threshold, unit = _least_threshold(context, place, given), 1.0
    known = fields["autocorrelation"] if fields["autocorrelation"] is not None else stored.autocorrelation
    if fields["false_alarms"]:
        unit = unit_of(test, stored)
        try:
            budget = distance_budget(
                test,
                stored,
                n=fields["window_requests"] or fields["expected_samples"],
                overlap=context.frame.window_ms // context.frame.slide_ms,
                coefficient=known,
                rate=_rate_of_one_test(context),
                tests=_divided(context).shares,
                cache=AnswerCache(cache_folder()),
            )
        except ValueError as error:
            _refuse_budget(context, error)
    frame = context.framed(f"{test}({field})", given, context.profile.digest)
    return ReferenceDistance(frame, field, test, ranks, threshold, given["min_samples"], budget, unit)


def _least_threshold(context: MonitorContext, place: Place, given: Mapping[str, Any]) -> float:
    """The threshold of a distance; under a budget it may be left out."""
    if given["threshold"] is None and not context.fields["false_alarms"]:
        place.field("threshold").refuse("is missing", "Give a threshold, or false_alarms for the monitor")
    return float(given["threshold"] or 0.0)


def _two_streams(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    policy = PairPolicy(given["alpha"], given["min_effect"], given["min_samples"])
    labels = given.pop("expected_labels")
    budget = _pair_budget(context, given["field"])
    if budget is None:
        return TwoStreams(
            context.framed(given["field"], given, None), given["field"], given["split_by"], policy, given["baseline"]
        )
    frame = context.framed(given["field"], given | {"expected_labels": labels}, None)
    # The baseline is kept beside them where it has a name; where it hasn't, it is one of those kept.
    most = labels if given["baseline"] is not None else labels + 1
    found = TwoStreams(frame, given["field"], given["split_by"], policy, given["baseline"], max_labels=most)
    return replace(found, budget=budget)


def _same_hour(context: MonitorContext, place: Place, given: dict[str, Any]) -> EarlierHour:
    if context.frame.slide_ms != context.frame.window_ms or context.fields["slice_shards"] > 1:
        raise ValueError("same_hour needs window_seconds and slide_seconds of 3600, and no slice_shards")
    policy = PairPolicy(given["alpha"], given["min_effect"], given["min_samples"])
    frame, budget = context.framed(given["field"], given, None), _pair_budget(context, given["field"])
    return EarlierHour(SameHour(frame, given["field"], policy, given["lag_hours"], budget=budget))


def _pair_budget(context: MonitorContext, field: str) -> PairBudget | None:
    """The thresholds for two live streams of a field; the monitor's reference tells its log bins, where it has it."""
    given = context.fields
    if not given["false_alarms"]:
        return None
    stored = context.profile.features.get(field)
    known = None if stored is None else stored.autocorrelation
    try:
        return pair_budget(
            bin_edges(None if stored is None else stored.points),
            n=given["expected_samples"],
            overlap=context.frame.window_ms // context.frame.slide_ms,
            coefficient=given["autocorrelation"] if given["autocorrelation"] is not None else known,
            rate=_rate_of_one_test(context),
            cache=AnswerCache(cache_folder()),
        )
    except ValueError as error:
        _refuse_budget(context, error)


def _limit(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    field, figure = given["field"], given["figure"]
    kind = {found.name: found.type for found in request_fields()}.get(field)
    if kind is FieldType.STRING:
        place.field("field").refuse(f"{field} is a text: it has no {figure}", "Watch its values by test psi")
    measured = FixedLimit(context.frame, field, figure, None, given["min_samples"], given["q"])
    measured = replace(measured, is_boolean=kind is FieldType.BOOL)
    sides = [side for side in ("below", "above", "change") if given[side] is not None]
    if not sides and _is_followed(context, f"{measured.name}({field})"):
        return replace(measured, frame=context.framed(field, given, None))
    if len(sides) != 1:
        remedy = (
            "Write the one that is wrong: `below: 0.85`; none where a dynamic_threshold or baseline_drop follows it"
        )
        place.refuse("needs one of below, above, change", remedy)
    reference_digest = None
    if given["change"] is None:
        limit = Limit(given[sides[0]], sides[0])  # type: ignore[arg-type]  # below or above
    else:
        _asked(place.field("field"), context, field, context.profile.feature)
        points = context.profile.features[field].points
        limit = Limit.changed_by(reference_figure(points, figure, given["q"]), given["change"])
        limit = replace(limit, reference=ReferenceFigures.of_points(points))
        reference_digest = context.profile.digest
    return replace(measured, frame=context.framed(field, given, reference_digest), limit=limit)


def _is_followed(context: MonitorContext, feature: str) -> bool:
    """Whether a signal of the monitor judges the verdicts on `feature`, so that they need no limit."""
    judging = {"dynamic_threshold", "baseline_drop"}
    signals = [body for body in context.fields["signals"] if isinstance(body, dict)]
    return any(body.get("signal") in judging and body.get("feature") == feature for body in signals)


def _embedding(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    try:
        reference = EmbeddingReference.load(place.relative(given["reference"]))
    except ReferenceProfileError as error:
        place.field("reference").refuse(f"{given['reference']}: {error.field}: {error.problem}", error.remedy)
    own = {key: value for key, value in given.items() if key != "reference"}
    policy = EmbeddingPolicy(
        max_drop=given["max_drop"],
        min_samples=given["min_samples"],
        alpha=given["alpha"],
        min_effect=given["min_effect"],
    )
    frame = context.framed(f"mean_cosine({given['field']})", own, reference.digest)
    return EmbeddingJudge(frame, given["field"], reference, policy, _cosine_budget(context, reference, policy))


def _cosine_budget(
    context: MonitorContext, reference: EmbeddingReference, policy: EmbeddingPolicy
) -> ThresholdCurve | None:
    """The thresholds for the distribution of cosines; no reference tells how those depend on each other."""
    given = context.fields
    if not given["false_alarms"]:
        return None
    points = reference.similarity_points
    return _threshold_curve(
        context, n_raw=reference.n, points=points, known=None, min_effect=policy.min_effect, method=policy.method
    )


def _version_semantics(context: MonitorContext, place: Place, given: dict[str, Any]) -> WindowJudge:
    divergence = None if given["js_above"] is None else DivergenceLimit(given["js_above"], given["min_samples"])
    return VersionSemantics(
        context.framed("version_semantics", given, None),
        agreement=given["agreement"],
        kl_nats=given["kl_nats"],
        js_bits=given["js_bits"],
        consistency=ConsistencyLimit(given["consistency_below"], given["consistency_every"]),
        confidence_shift=ConfidenceShiftLimit(given["confidence_shift_above"], min_samples=given["min_samples"]),
        divergence=divergence,
    )


_BUILDERS: Mapping[str, Callable[[MonitorContext, Place, dict[str, Any]], WindowJudge | EarlierHour]] = {
    **dict.fromkeys(get_args(Distance), _distance),
    "same_hour": _same_hour,
    "two_streams": _two_streams,
    "limit": _limit,
    "embedding": _embedding,
    "version_semantics": _version_semantics,
}
CATEGORY_TEST_NAMES = tuple(CATEGORY_TESTS)
