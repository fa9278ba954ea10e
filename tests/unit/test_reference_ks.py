"""From slices to a verdict, without an engine: the recorded faults of other libraries, and what a verdict says."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from scipy.stats import ks_2samp, norm

from schemas.verdicts import Verdict
from udfs.judging.frame import Frame
from udfs.judging.reference_ks import ReferenceKs, largest_gap_at
from udfs.sketches.rank import RankSketch
from udfs.sketches.reference import RankReference

CASES = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "cases" / "statistics.json").read_text("utf-8"))
}


FRAME = Frame("chat", "input_tokens", ("model",), 60_000, 20_000, "sha256:c", "sha256:r", "sha256:m")


def window_test(reference: Any, feature: str = "input_tokens", **fields: Any) -> ReferenceKs:
    body = ReferenceKs(
        frame=replace(FRAME, feature=feature),
        field=feature,
        alpha=0.01,
        min_effect=0.0,
        min_samples=1,
        method="exact",
        reference=RankReference.from_values(reference),
    )
    return replace(body, **fields)


def verdict_of(test: ReferenceKs, window_end_ms: int, sketches: list[bytes], label: str = "m1") -> Verdict:
    (verdict,) = test.judge([label], window_end_ms, sketches)
    return verdict


def judge(test: ReferenceKs, values: Any, n_slices: int = 3) -> dict[str, Any]:
    """The verdict on values that came in several slices."""
    slices = [list(values)[i::n_slices] for i in range(n_slices)]
    body: dict[str, Any] = orjson.loads(verdict_of(test, 120_000, [test.sketch(part) for part in slices]).to_json())
    return body


def numbers(described: list[Any]) -> list[float | None]:
    return [None if value is None else float(value) for value in described]


@pytest.mark.parametrize("case_id", ["ks-nan", "ks-inf"])
def test_nan_is_a_null_and_infinity_a_value(case_id: str) -> None:
    given, expected = CASES[case_id]["input"], CASES[case_id]["expected"]
    verdict = judge(window_test(given["ref"]), numbers(given["cur"]))
    assert verdict["statistic"] == pytest.approx(expected["D"], rel=1e-15)
    assert verdict["p_value"] == pytest.approx(expected["p_exact"], rel=1e-12)
    assert verdict["n_window"] == expected["n_cur"]
    assert verdict["n_window_null"] == expected.get("n_null", 0)
    assert verdict["n_infinite"] == expected.get("n_inf", 0)


def test_a_window_of_nulls_has_a_status_and_no_figures() -> None:
    given = CASES["ks-empty"]["input"]
    verdict = judge(window_test(given["ref"]), given["cur"])
    assert verdict["status"] == "insufficient_data"
    figures = ("statistic", "p_value", "log10_p_value", "effect", "published_score", "drifted")
    assert [verdict[figure] for figure in figures] == [None] * 6
    assert (verdict["n_window"], verdict["n_window_null"], verdict["evidence"]) == (0, 2, {})


def test_a_window_without_slices_is_no_pass() -> None:
    assert judge(window_test([1, 2, 3]), [], n_slices=0)["status"] == "insufficient_data"


def test_too_few_values_are_not_called_drift() -> None:
    """Case ks-small-ties: 8 rows of 2 distinct values against 150."""
    reference = np.repeat(np.linspace(0.1, 2.5, 15), 10)
    values = CASES["ks-small-ties"]["input"]["cur"]
    assert judge(window_test(reference, alpha=0.05), values)["drifted"] is True
    verdict = judge(window_test(reference, alpha=0.05, min_samples=30), values)
    assert (verdict["status"], verdict["drifted"], verdict["n_window"]) == ("insufficient_data", None, 8)


def test_a_large_window_needs_an_effect_to_drift() -> None:
    """Case ks-huge-n, with a tenth of its values."""
    reference = np.arange(100_000) / 1e5
    values = reference + 0.012
    significant = judge(window_test(reference, method="asymptotic"), values)
    assert significant["p_value"] < 1e-5
    assert significant["drifted"] is True
    assert judge(window_test(reference, method="asymptotic", min_effect=0.05), values)["drifted"] is False


def test_the_published_score_is_kept_whatever_the_effect() -> None:
    reference = norm.ppf((np.arange(1000) + 0.5) / 1000)
    test = window_test(reference, method="asymptotic", min_effect=0.5)
    verdict = judge(test, reference + 0.3)
    assert verdict["published_score"] == 1 - verdict["p_value"]
    assert verdict["drifted"] is False
    assert judge(test, reference)["published_score"] == 0.0


@pytest.mark.parametrize("seed", range(20))
def test_slices_add_up_to_scipys_figures(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = rng.choice([rng.normal(size=80), rng.integers(0, 9, 80).astype(float)])
    values = rng.choice([rng.normal(0.5, size=300), rng.integers(0, 12, 300).astype(float)])
    verdict = judge(window_test(reference, method="asymptotic"), values, n_slices=int(rng.integers(1, 12)))
    scipys = ks_2samp(reference, values, method="asymp")
    assert verdict["statistic"] == scipys.statistic
    assert verdict["p_value"] == pytest.approx(scipys.pvalue, rel=1e-12)
    assert verdict["log10_p_value"] == pytest.approx(math.log10(scipys.pvalue), abs=1e-9)
    gap = verdict["evidence"]["largest_gap"]
    assert abs(gap["reference_share"] - gap["window_share"]) == pytest.approx(verdict["statistic"], abs=1e-15)
    at_or_below = np.less_equal if gap["relation"] == "<=" else np.less
    assert gap["window_share"] == pytest.approx(at_or_below(values, gap["at"]).mean())
    assert gap["reference_share"] == pytest.approx(at_or_below(reference, gap["at"]).mean())


def test_the_bytes_depend_on_the_window_alone() -> None:
    test = window_test(np.arange(50), method="asymptotic")
    values = list(np.random.default_rng(1).integers(0, 60, 90))
    first = verdict_of(test, 1, [test.sketch(values)])
    shuffled = [test.sketch(values[i::7][::-1]) for i in range(7)][::-1]
    assert verdict_of(test, 1, shuffled).to_json() == first.to_json()


def test_the_id_is_of_series_window_configuration_and_reference() -> None:
    test = window_test([1, 2, 3])

    def with_frame(**fields: str) -> ReferenceKs:
        return replace(test, frame=replace(test.frame, **fields))

    base = verdict_of(test, 60_000, []).verdict_id
    same = [verdict_of(with_frame(model_card_digest="sha256:other"), 60_000, []).verdict_id]
    others = [
        verdict_of(test, 60_000, [], label="m2").verdict_id,
        verdict_of(test, 80_000, []).verdict_id,
        verdict_of(with_frame(feature="output_tokens"), 60_000, []).verdict_id,
        verdict_of(with_frame(config_digest="sha256:other"), 60_000, []).verdict_id,
        verdict_of(with_frame(reference_digest="sha256:other"), 60_000, []).verdict_id,
    ]
    assert same == [base]
    assert len({base, *others}) == 6


def test_an_infinite_reference_point_is_no_figure_of_the_evidence() -> None:
    reference = RankReference.from_values([1.0, math.inf, math.inf])
    gap = largest_gap_at(RankSketch.from_values([2.0, 3.0], reference))
    assert gap == {"at": None, "relation": "<", "reference_share": pytest.approx(1 / 3), "window_share": 1.0}
    assert b"Infinity" not in orjson.dumps(gap)


def test_sketches_of_another_reference_are_refused() -> None:
    stranger = RankSketch.from_values([1.0], RankReference.from_values([5.0])).to_bytes()
    with pytest.raises(ValueError, match="reference"):
        window_test([1, 2, 3]).judge(["m1"], 60_000, [stranger])
