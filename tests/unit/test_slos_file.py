"""The OpenSLO reader: the shipped matrix, files as other tools write them, and what is refused with which remedy."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.paths import CONF
from jobs.kafka_client import ConfigurationError
from jobs.slos import Slos, load_slos
from schemas.model_card import CARDS_FOLDER
from udfs.slo.budgeting import Method
from udfs.slo.conditions import NumberIs, TextIs, WithinAdaptiveLatency
from udfs.slo.indicators import Quantile, Ratio, Throughput
from udfs.slo.metric_quantile import MetricQuantile
from udfs.slo.metric_ratio import MetricRatio
from udfs.slo.periods import DAY_MS, HOUR_MS, Calendar, Rolling

CARD = CARDS_FOLDER / "azure_llm_conversation_2023.json"
SOURCE = {"type": "slacktide", "spec": {"where": [{"field": "is_error", "value": True}]}}
MINIMAL: dict[str, Any] = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "errors"},
    "spec": {
        "service": "chat",
        "indicator": {"spec": {"ratioMetric": {"bad": {"metricSource": SOURCE},
                                               "total": {"metricSource": {"type": "slacktide", "spec": {}}}}}},
        "budgetingMethod": "Occurrences",
        "objectives": [{"target": 0.99}],
    },
}  # fmt: skip
THRESHOLD = {"metricSource": {"type": "slacktide", "spec": {
    "field": "end_to_end_seconds", "quantile": 0.99, "window": "5m", "slide": "1m"}}}  # fmt: skip


def load(tmp_path: Path, *documents: Any, card: Path | None = CARD) -> Slos:
    file = tmp_path / "slos.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return load_slos(file, card)


def edited(edit: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    body = copy.deepcopy(MINIMAL)
    edit(body)
    return body


def put(path: str, value: Any) -> dict[str, Any]:
    """Return `MINIMAL` with a value at `a.b.0.c`; None takes the field away."""

    def edit(body: Any) -> None:
        *way, last = [int(part) if part.isdigit() else part for part in path.split("/")]
        for part in way:
            body = body[part]
        if value is None:
            del body[last]
        else:
            body[last] = value

    return edited(edit)


def annotated(**values: Any) -> dict[str, Any]:
    own = {f"slacktide.dev/{name.replace('_', '-')}": value for name, value in values.items()}
    return put("metadata/annotations", own | {"other.tool/x": "1"})


def test_the_published_matrix_is_shipped() -> None:
    slos = load_slos(CONF / "slos.yaml").by_name
    ttft, judged = slos["ttft-p95"], slos["hallucination-rate"]
    assert isinstance(ttft.indicator, Quantile)
    assert (ttft.indicator.name, ttft.indicator.where) == ("p95", (TextIs("is_streaming", ("true",)),))
    assert ttft.window is not None
    assert (ttft.window.limit, ttft.window.window_ms, ttft.window.slide_ms) == (0.8, 60_000, 30_000)
    assert (ttft.alert.firing_after_windows, ttft.window.equal_breaches, ttft.window.is_point) == (3, True, True)
    assert judged.window is not None
    assert (judged.window.limit, judged.window.min_events, judged.target) == (0.05, 1200, 0.965)
    assert (judged.window.window_ms, judged.window.slide_ms, judged.alert.firing_after_windows) == (300_000, 300_000, 1)
    assert judged.judge is not None
    assert not judged.judge.is_qualified
    assert load_slos(CONF / "slos.yaml").slice_ms == 30_000
    assert {slo.frame.model_card_digest for slo in slos.values()} == {ttft.frame.model_card_digest}
    assert isinstance(slos["availability"].period, Calendar)
    assert [rule.name for rule in slos["availability"].burn_rules] == ["1h&5m"]


def test_a_minimal_file_has_the_workbooks_rules_over_30_days(tmp_path: Path) -> None:
    (slo,) = load(tmp_path, MINIMAL).slos
    assert (slo.period, slo.target, slo.group_by) == (Rolling(30 * DAY_MS), 0.99, ("service_name",))
    assert slo.indicator == Ratio((), (TextIs("is_error", ("true",)),), part_is_good=False)
    assert [rule.factor for rule in slo.burn_rules] == pytest.approx([14.4, 6.0, 3.0, 1.0])


def test_objects_of_a_file_refer_to_each_other(tmp_path: Path) -> None:
    """As files of other tools are laid out: by reference, in any order, percentages, notification targets."""
    head = {"apiVersion": "openslo/v1"}
    slo = {**head, "kind": "SLO", "metadata": {"name": "web", "labels": {"team": ["a", "b"]}, "displayName": "Web"},
           "spec": {"description": "d", "service": "shop", "indicatorRef": "errors", "budgetingMethod": "Timeslices",
                    "timeWindow": [{"duration": "1Q", "isRolling": False, "calendar": {
                        "startTime": "2020-01-21 12:30:00", "timeZone": "America/New_York"}}],
                    "objectives": [{"displayName": "x", "targetPercent": 99.9, "timeSliceTarget": 0.95,
                                    "timeSliceWindow": 5},
                                   {"target": 0.99, "timeSliceTarget": 1.0, "timeSliceWindow": "10m"}],
                    "alertPolicies": [{"alertPolicyRef": "page-me"}]}}  # fmt: skip
    policy = {**head, "kind": "AlertPolicy", "metadata": {"name": "page-me"},
              "spec": {"alertWhenBreaching": True, "alertWhenResolved": False, "conditions": [{"conditionRef": "fast"}],
                       "notificationTargets": [{"targetRef": "mail"}]}}  # fmt: skip
    condition = {**head, "kind": "AlertCondition", "metadata": {"name": "fast"},
                 "spec": {"severity": "page", "condition": {"kind": "burnrate", "op": "lte", "threshold": 2,
                                                            "lookbackWindow": "1h", "alertAfter": "5m"}}}  # fmt: skip
    target = {**head, "kind": "AlertNotificationTarget", "metadata": {"name": "mail"}, "spec": {"target": "email"}}
    source = {**head, "kind": "DataSource", "metadata": {"name": "own"},
              "spec": {"type": "Slacktide", "connectionDetails": {"any": ["thing"]}}}  # fmt: skip
    metric = {"metricSource": {"metricSourceRef": "own", "spec": {"from": "requests", "where": [
        {"field": "finish_reason", "op": "in", "value": ["stop", "length"]},
        {"field": "attributes.cost", "op": "lte", "value": 3}]}}}  # fmt: skip
    total = {"metricSource": {"metricSourceRef": "own", "spec": {"from": "requests"}}}
    sli = {**head, "kind": "SLI", "metadata": {"name": "errors"},
           "spec": {"ratioMetric": {"counter": True, "good": metric, "total": total}}}  # fmt: skip
    service = {**head, "kind": "Service", "metadata": {"name": "shop"}, "spec": {"description": "Shop"}}
    first, second = load(tmp_path, slo, policy, condition, target, source, sli, service).slos
    assert (first.name, first.target, second.name, second.target) == ("web-1", 0.999, "web-2", 0.99)
    assert (first.budgeting.method, first.budgeting.slice_ms, second.budgeting.slice_ms) == (
        Method.TIMESLICES, 300_000, 600_000)  # fmt: skip
    assert first.period.name == "1Q America/New_York"
    assert isinstance(first.indicator, Ratio)
    assert first.indicator.part == (
        TextIs("finish_reason", ("stop", "length")),
        NumberIs("attributes.cost", "lte", 3.0),
    )
    assert [(r.severity, r.factor, r.long_ms, r.short_ms) for r in first.burn_rules] == [
        ("page", 2.0, HOUR_MS, 300_000)
    ]


def test_thresholds_and_throughput_and_adaptive_latency(tmp_path: Path) -> None:
    slow = put("spec/indicator", {"spec": {"thresholdMetric": THRESHOLD}})
    slow["spec"]["objectives"] = [{"op": "lte", "value": 30, "target": 0.9}]
    slow["metadata"] = {"name": "slow", "annotations": {"slacktide.dev/burn-rates": "none"}}
    source = {"type": "slacktide", "spec": {"per_second": True, "window": "1m"}}
    tps = put("spec/indicator", {"spec": {"thresholdMetric": {"metricSource": source}}})
    tps["spec"]["objectives"] = [{"op": "gt", "value": 2, "target": 0.95}]
    tps["metadata"] = {"name": "tps"}
    good = {"metricSource": {"type": "slacktide", "spec": {"adaptive_latency": {"base_ms": 900}}}}
    adaptive = put(f"{RATIO}/good", good)
    del adaptive["spec"]["indicator"]["spec"]["ratioMetric"]["bad"]
    loaded = load(tmp_path, slow, tps, adaptive)
    first, second, third = loaded.slos
    assert (first.window and first.window.slide_ms, loaded.slice_ms) == (60_000, 60_000)
    assert second.indicator == Throughput()
    assert second.window is not None
    assert (second.window.wrong_side, second.window.equal_breaches) == ("below", True)
    assert isinstance(third.indicator, Ratio)
    (condition,) = third.indicator.part
    assert isinstance(condition, WithinAdaptiveLatency)
    assert condition.limit.limit_ms(0, 0.625) == 900.0


def test_what_alerts_say_does_not_change_ids(tmp_path: Path) -> None:
    (plain,) = load(tmp_path, MINIMAL).slos
    (owned,) = load(tmp_path, annotated(owner="chat-oncall", runbook_url="https://wiki.example/x")).slos
    (stricter,) = load(tmp_path, put("spec/objectives/0/target", 0.995)).slos
    assert owned.alert.owner == "chat-oncall"
    assert plain.frame.config_digest == owned.frame.config_digest != stricter.frame.config_digest


RATIO = "spec/indicator/spec/ratioMetric"
BAD = f"{RATIO}/bad/metricSource"


def source(**spec: Any) -> dict[str, Any]:
    return {"metricSource": {"type": "slacktide", "spec": spec}}


def counted(good: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
    return put("spec/indicator", {"spec": {"ratioMetric": {"good": good, "total": total}}})


def test_scores_and_measurements(tmp_path: Path) -> None:
    low = {"field": "value", "op": "gte", "value": 0.85}
    scored = counted(
        source(**{"from": "scores"}, score="factuality", where=[low]), source(**{"from": "scores"}, score="factuality")
    )
    scored["metadata"] = {
        "name": "scored",
        "annotations": {"slacktide.dev/judged": "true", "slacktide.dev/group-by": "model, scorer"},
    }
    of = {"from": "measurements", "name": "ttft"}
    pod = [{"field": "labels.pod", "op": "in", "value": ["a", "b"]}]
    first, second = load(tmp_path, scored, counted(source(**of, at_most=0.8, where=pod), source(**of))).slos
    assert isinstance(first.indicator, Ratio)
    assert (first.source, first.indicator.judge_f1, first.judge, first.group_by) == (
        "scores",
        "judge.f1",
        None,
        ("model", "scorer"),
    )
    assert first.indicator.total == (TextIs("score", ("factuality",)),)
    assert first.indicator.chance == "sampling_rate"
    assert isinstance(second.indicator, MetricRatio)
    assert (second.source, second.indicator.at_most) == ("measurements", 0.8)
    assert second.indicator.part == (TextIs("name", ("ttft",)), TextIs("labels.pod", ("a", "b")))


def test_a_quantile_of_a_metrics_histogram(tmp_path: Path) -> None:
    spec = {"from": "measurements", "name": "ttft", "quantile": 0.99, "window": "5m", "slide": "1m"}
    body = put("spec/indicator", {"spec": {"thresholdMetric": source(**spec)}})
    body["spec"]["objectives"] = [{"op": "lt", "value": 2.5, "target": 0.95}]
    body["metadata"]["annotations"] = {"slacktide.dev/burn-rates": "none"}
    (found,) = load(tmp_path, body).slos
    assert found.indicator == MetricQuantile((TextIs("name", ("ttft",)),), 0.99)
    assert (found.source, found.figure, found.window and found.window.limit) == ("measurements", "p99", 2.5)
    # Of a gauge the quantile is over its values.
    body["spec"]["indicator"] = {"spec": {"thresholdMetric": source(**spec, field="value")}}
    (found,) = load(tmp_path, body).slos
    assert found.indicator == Quantile("value", 0.99, (TextIs("name", ("ttft",)),))


SCORES = {"from": "scores"}
REFUSED: list[tuple[dict[str, Any], str, str, str]] = [
    (put("spec/objectives/0/target", 1.0), "spec.objectives[0].target", "target must be in [0,1)", "leaves no budget"),
    (put("spec/objectives/0/target", 0), "objectives[0].target", "target must be in [0,1)", "0.99"),
    (put("spec/objectives/0/target", 99.9), "objectives[0].target", "target must be in [0,1)", "0.99"),
    (put("spec/objectives", [{"targetPercent": 100}]), "targetPercent", "must be in [0,100)", "99.9"),
    (put("spec/objectives", [{"target": 0.9, "targetPercent": 90}]), "target", "beside", "exactly one"),
    (put("spec/objectives", [{}]), "objectives[0].target", "is missing", "target (0.99)"),
    (put("spec/objectives", []), "spec.objectives", "has 0", "at least one objective"),
    (put("spec/objectives/0/target", 0.9), "objectives[0]", "factor 14.4 of 1h&5m can't be reached", "burn-rates"),
    (put("spec/objectives/0/op", "lt"), "objectives[0].op", "belongs to a thresholdMetric", "only its target"),
    (put("spec/objectives/0/timeSliceWindow", "5m"), "timeSliceWindow", "no meaning for Occurrences", "Leave it out"),
    (put("spec/budgetingMethod", "Timeslices"), "timeSliceTarget", "is missing", "Timeslices needs it"),
    (put("spec/budgetingMethod", "occurrences"), "budgetingMethod", "is not one of: ", "Did you mean Occurrences"),
    (put("spec/servise", "x"), "spec.servise", "is not a known field", "Did you mean service"),
    (put("apiVersion", "openslo/v1alpha"), "apiVersion", "an earlier version", "openslo/v1"),
    (put("apiVersion", "v1"), "apiVersion", "`v1` is not one of: openslo/v1", ""),
    (put("kind", "Slo"), "kind", "`Slo` is not one of: SLO, ", "Did you mean SLO"),
    (put("metadata", {"name": "a", "namespace": "b"}), "metadata.namespace", "not a known field", "displayName"),
    (put("spec/timeWindow", [{"duration": "30d"}, {"duration": "7d"}]), "spec.timeWindow", "exactly one", "30d"),
    (put("spec/timeWindow", [{"duration": "30 days"}]), "spec.timeWindow[0].duration", "is no duration", "30d"),
    (put("spec/timeWindow", [{"duration": "1M", "isRolling": True}]), "duration", "no fixed length", "30d"),
    (put("spec/timeWindow", [{"duration": "1m"}]), "duration", "not from 1h to 366d", "28d"),
    (put("spec/timeWindow", [{"duration": "1M", "isRolling": False}]), "calendar", "is missing", "timeZone"),
    (put("spec/timeWindow", [{"duration": "1M", "calendar": {"startTime": "2026-01-01", "timeZone": "Berlin"}}]),
     "timeZone", "is no IANA time zone", "Europe/Berlin"),
    (put("spec/timeWindow", [{"duration": "1M", "calendar": {"startTime": "2026-01-01", "timeZone": ["UTC"]}}]),
     "timeZone", "is no IANA time zone", "Europe/Berlin"),
    (edited(lambda b: (b["spec"].update(budgetingMethod="Timeslices"),
                       b["spec"]["objectives"][0].update(timeSliceTarget=0.9, timeSliceWindow=2**70))),
     "timeSliceWindow", "more than a year", "1m"),
    (put("metadata/annotations", {"slacktide.dev/min-slice-events": str(2**70)}),
     "min-slice-events", "more than anything counts to", "below 2^53"),
    (put("spec/timeWindow", [{"duration": "2Y", "calendar": {"startTime": "2026-01-01", "timeZone": "UTC"}}]),
     "duration", "longer than a year", "1Y"),
    (put("spec/indicatorRef", "x"), "spec.indicator", "stands beside indicatorRef", "exactly one"),
    (put("spec/indicator", None), "spec.indicator", "is missing", "exactly one"),
    (edited(lambda b: b["spec"].update(indicator=None, indicatorRef="x")), "indicatorRef", "no SLI called 'x'", "Add"),
    (put("spec/indicator/spec/thresholdMetric", THRESHOLD), "indicator.spec", "exactly one", "Give one"),
    (put(f"{RATIO}/good", {"metricSource": SOURCE}), "ratioMetric", "good and bad", "easier"),
    (put(f"{RATIO}/total", None), "ratioMetric.total", "is missing", "every request"),
    (put(RATIO, {"rawType": "success", "raw": {}}), "raw", "without its counts", "total"),
    (put("spec/indicator", {"spec": {"thresholdMetric": source(
        **{"from": "measurements"}, name="ttft", quantile=0.9, window="1m", at_most=0.8)}}),
     "spec.at_most", "belongs to good or bad", "objective's value"),
    (put(f"{BAD}/type", "Prometheus"), "metricSource.type",
     "can't ask Prometheus", "type: slacktide"),
    (put(f"{RATIO}/bad/metricSource/spec", {"where": []}), "bad", "has no condition", "where"),
    (put(f"{BAD}/spec/where/0/field", "is_eror"), "where[0].field",
     "no field of requests", "Did you mean is_error"),
    (put(f"{BAD}/spec/where/0/op", "lt"), "where[0].op",
     "can't be asked of a text", "eq"),
    (put(f"{BAD}/spec/where/0/value", 1), "where[0].value", "no text", "true"),
    (put(f"{BAD}/spec/query", "up"), "spec.query", "not a known field", "where"),
    (put("spec/alertPolicies", [{"alertPolicyRef": "gone"}]), "alertPolicyRef", "no AlertPolicy called", "Add"),
    (put("spec/alertPolicies", [{"metadata": {"name": "p"}, "spec": {"conditions": []}}]), "conditions",
     "has 0 conditions", "exactly one"),
    (counted(source(**SCORES), source(**SCORES, score="x")), "good.metricSource.spec.score", "is missing", "many"),
    (counted(source(**SCORES, score="x"), source(**SCORES, score="x")), ".good", "has no condition", "where"),
    (counted(source(**SCORES, score="x"), source()), "ratioMetric.good", "total requests", "one topic"),
    (counted(source(score="x"), source()), "good.metricSource.spec.score", "is not of requests", "from"),
    (counted(source(at_most=1), source()), "at_most", "is for histograms", "lte"),
    (counted(source(**SCORES, score="x", adaptive_latency={}), source()), "adaptive_", "not of scores", "requests"),
    (counted(source(**{"from": "measurements"}, name="vllm:time_to_first_token_seconds"), source()), "spec.name",
     "a server's own name", "time_to_first_token_seconds"),
    (counted(source(**{"from": "spans"}), source()), "spec.from", "`spans` is not one of: ", "Write one"),
    (annotated(window_severity="sev1"), "window-severity", "`sev1` is not one of: ", "Write one"),
    (annotated(alert_after_windows="101"), "alert-after-windows", "too many", "at most 100"),
    (put("spec/alertPolicies", [{"metadata": {"name": "p"}, "spec": {"conditions": [
        {"metadata": {"name": "c"}, "spec": {"severity": "sev1", "condition": {}}}]}}]),
     "conditions[0].spec.severity", "is not one of: critical", "Write one"),
    (annotated(ownr="x"), "annotations[slacktide.dev/ownr]", "is not known", "Did you mean owner"),
    (annotated(window="5m"), "window-limit", "is missing", "together"),
    (annotated(window="5m", window_limit="5"), "window-limit", "is no share", "0.05"),
    (annotated(window="45s", window_limit="0.05"), "window]", "neither divides a minute", "30s"),
    (annotated(window="5m", window_limit="0.05", slide="2m"), "slide", "does not divide the window", "30s"),
    (annotated(min_events="many"), "min-events", "is no number", "Give a number"),
    (annotated(group_by="modell"), "group-by", "no text field", "Did you mean model"),
    (annotated(judge_f1="1.2"), "judge-f1", "not between 0 and 1", "above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "field", "problem", "remedy"), REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_wrong_is_refused_with_place_and_remedy(
    tmp_path: Path, body: dict[str, Any], field: str, problem: str, remedy: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        load(tmp_path, body)
    assert error.value.file == str(tmp_path / "slos.yaml")
    assert field in error.value.field
    assert problem in error.value.problem
    assert remedy in error.value.remedy


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no document of kind SLO"):
        load(tmp_path, {**MINIMAL, "kind": "Service", "spec": {"description": "d"}})
    with pytest.raises(ConfigurationError, match="holds no document"):
        load(tmp_path)
    with pytest.raises(ConfigurationError, match="two of kind SLO called 'errors'"):
        load(tmp_path, MINIMAL, MINIMAL)
    with pytest.raises(ConfigurationError, match="model-card"):
        load(tmp_path, MINIMAL, card=None)
    with pytest.raises(ConfigurationError, match="can't be read"):
        load_slos(tmp_path / "gone.yaml")
    (tmp_path / "slos.yaml").write_text("a: [1")
    with pytest.raises(ConfigurationError, match="is not YAML"):
        load_slos(tmp_path / "slos.yaml")


def test_objects_that_nobody_names_are_checked_too(tmp_path: Path) -> None:
    wrong = {"SLI": {"ratioMetrik": {}}, "AlertPolicy": {"condition": []}, "AlertCondition": {"severety": "page"},
             "DataSource": {"kind": "x"}, "AlertNotificationTarget": {"to": "x"},
             "Service": {"descr": "x"}}  # fmt: skip
    for kind, spec in wrong.items():
        with pytest.raises(ConfigurationError, match="not a known field"):
            load(tmp_path, MINIMAL, {**MINIMAL, "kind": kind, "spec": spec})
    twice = put("spec/objectives", [{"target": 0.99}, {"target": 0.95}])
    with pytest.raises(ConfigurationError, match="two SLOs would be called errors-2"):
        load(tmp_path, twice, put("metadata/name", "errors-2"))


def test_a_threshold_has_one_objective_with_op_and_value(tmp_path: Path) -> None:
    body = put("spec/indicator", {"spec": {"thresholdMetric": THRESHOLD}})
    for objectives, problem in (
        ([{"target": 0.95}], "is missing"),
        ([{"op": "lt", "value": 1, "target": 0.95}] * 2, "has 2"),
    ):
        body["spec"]["objectives"] = objectives
        with pytest.raises(ConfigurationError, match=problem):
            load(tmp_path, body)


def documented() -> list[dict[str, Any]]:
    """Every YAML document of docs/slos.md; one that is an indicator alone, in an SLO."""
    text = (Path(__file__).parents[2] / "docs" / "slos.md").read_text()
    found = []
    for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL):
        for part in block.split("\n---\n"):
            body = yaml.safe_load(part)
            if "kind" not in body:
                objective = {"op": "lt", "value": 3, "target": 0.95} if "thresholdMetric" in body else {"target": 0.95}
                body = edited(
                    lambda slo, of=body, o=objective: slo["spec"].update(indicator={"spec": of}, objectives=[o])
                )
            body["metadata"].get("annotations", {}).pop("slacktide.dev/model-card", None)
            found.append(body)
    return found


def test_what_the_docs_show_is_read(tmp_path: Path) -> None:
    examples = documented()
    assert len(examples) > 4
    for body in examples:
        assert load(tmp_path, body).slos
