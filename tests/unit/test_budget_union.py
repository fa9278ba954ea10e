"""A budget over the whole of what a monitor judges: its tests, series and slices together (spec D2, D11)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.monitor_budget import divided_budget
from jobs.monitors import Monitor, load_monitors
from tests.drift_files import monitor, write_files
from udfs.budget.episodes import quiet_windows
from udfs.budget.onset_curve import OnsetCurve
from udfs.budget.sources import Independent
from udfs.budget.window_statistics import Layout, simulated_statistics
from udfs.judging.reference_ks import ReferenceKs
from udfs.references.profile import ReferenceProfile
from udfs.slicing.series_cap import OTHER_LABEL

OVERLAP, SERIES, TENANTS = 5, 2, 2
N, N_OF_TENANT = 495, 245  # 500 would let D move in steps of 1/1000 only, and the next one up be too quiet
WINDOWS_PER_ALARM = 25


@given(st.tuples(*(4 * [st.integers(0, 4)])), st.none() | st.integers(1, 50), st.integers(1, 50))
def test_the_parts_of_a_budget_add_up_to_it(counts: tuple[int, ...], series: int | None, values: int) -> None:
    features, distances, limits, slices = counts
    governed = features + distances
    tests = [{"test": "psi"}] * distances + [{"test": "limit"}] * limits
    fields: dict[str, Any] = {
        "false_alarms": "1 per 30d",
        "features": [f"f{number}" for number in range(features)],
        "tests": tests,
        "slices": [f"s{number}" for number in range(slices)],
        "expected_series": series,
        "expected_slice_values": values,
    }
    whole = divided_budget(fields)
    of_slices = [divided_budget(fields | {"slice_of": name}) for name in fields["slices"]]
    assert whole is not None
    assert whole.most_series == series
    spent = governed * (series or 1) / whole.shares
    for part in of_slices:
        assert part is not None
        assert part.most_series == (series or 1) * values
        spent += governed * part.most_series / part.shares
    assert spent == pytest.approx(1.0 if governed else 0.0)


def load(folder: Path, **fields: Any) -> list[Monitor]:
    body = monitor(
        window_seconds=OVERLAP * 30,
        slide_seconds=30,
        group_by=["model"],
        expected_samples=N,
        autocorrelation=0,
        min_effect=0,
        **{"false_alarms": "1 per 1000 windows"} | fields,
    )
    return list(load_monitors(write_files(folder, [body])).monitors)


def quiet_onsets(loaded: Monitor, series: int, n: int, windows: int, seed: int) -> float:
    """Onsets in a window of all its KS tests together, on so many quiet series, by the thresholds it judges by."""
    found = 0.0
    for number, judge in enumerate(loaded.judges):
        assert isinstance(judge, ReferenceKs)
        assert judge.budget is not None
        level = judge.budget.at(n).critical_statistic
        layout = Layout(judge.budget.n_reference, 1000, (n // OVERLAP,), 240)
        rng = np.random.default_rng([seed, number])
        streams = series * windows // (240 - 2 * OVERLAP)
        statistics = simulated_statistics(Independent(), layout, (OVERLAP,), rng, streams)[OVERLAP]
        found += series * OnsetCurve.of(statistics, quiet=quiet_windows(OVERLAP), step=1e-9).rate(level)
    return found


@pytest.fixture
def large_reference(tmp_path: Path) -> Path:
    """Of 10,000 continuous values, so that thresholds are shipped."""
    rng = np.random.default_rng(5)
    columns = {name: rng.random(10_000) for name in ("input_tokens", "output_tokens")}
    profile = ReferenceProfile.build("large", columns, source="a test", created_at_ms=0)
    return profile.save(tmp_path / "large")


def test_onsets_of_series_slices_and_tests_together_are_as_declared(tmp_path: Path, large_reference: Path) -> None:
    """Two features of two series, and of two tenants each: 12 tests under one budget of 1 in 25 windows."""
    whole, by_tenant = load(
        tmp_path,
        features=["input_tokens", "output_tokens"],
        false_alarms=f"1 per {WINDOWS_PER_ALARM} windows",
        slices=["tenant"],
        expected_series=SERIES,
        expected_slice_values=TENANTS,
        reference=str(large_reference),
    )
    assert whole.budget is not None
    assert (whole.max_series, by_tenant.max_series) == (SERIES, SERIES * TENANTS)
    onsets = quiet_onsets(whole, SERIES, N, 12_000, seed=1)
    onsets += quiet_onsets(by_tenant, SERIES * TENANTS, N_OF_TENANT, 12_000, seed=2)
    # 1,000 onsets: one standard error is 4 %, and the threshold's own 2 to 5 %.
    assert onsets * WINDOWS_PER_ALARM == pytest.approx(1.0, abs=0.2)


def test_without_expected_series_the_budget_is_that_of_each_series(tmp_path: Path, large_reference: Path) -> None:
    (each,) = load(tmp_path, features=["input_tokens"], reference=str(large_reference), max_series=7)
    (one,) = load(tmp_path, features=["input_tokens"], reference=str(large_reference), expected_series=3)
    assert each.budget is not None
    assert one.budget is not None
    assert (each.budget.shares, each.budget.most_series, each.max_series) == (1, None, 7)
    assert (one.budget.shares, one.budget.most_series, one.max_series) == (3, 3, 3)
    assert each.budget.words(20).endswith("20 series: 20 times that in all")
    assert "for all series together" in one.budget.words(20)
    assert "more than 3 series are pooled" in one.budget.words(20)
    assert "expected_series, which divides" in one.capped[0].remedy  # type: ignore[attr-defined]
    assert "raise max_series" in each.capped[0].remedy  # type: ignore[attr-defined]


def test_the_pooled_series_is_promised_nothing(tmp_path: Path, large_reference: Path) -> None:
    (one,) = load(tmp_path, features=["input_tokens"], reference=str(large_reference), expected_series=3)
    judge = one.judges[0]
    sketch = judge.sketch(np.linspace(0, 1, N))
    (pooled,) = judge.judge([OTHER_LABEL], 150_000, [sketch])
    (own,) = judge.judge(["m1"], 150_000, [sketch])
    assert own.evidence["false_alarm_budget"]["kept"] is True
    assert pooled.evidence["false_alarm_budget"]["kept"] is False
    assert "beyond the cap" in pooled.evidence["false_alarm_budget"]["reason"]
