"""A cap on series: beyond it requests are pooled, counted once, and a finding says so; below it nothing changes."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jobs.drift_sql import plan_of
from jobs.monitors import Monitor, load_monitors
from tests.drift_files import monitor, write_files
from tests.unit.test_slicer import BY_MODEL, TOKENS, batch, request
from udfs.backtest import Backtest, BacktestMonitor
from udfs.slicing.packets import unpack
from udfs.slicing.series_cap import SeriesCap, other_series
from udfs.slicing.slicer import RequestSlicer, SlicePlan


def loaded(folder: Path, **fields: object) -> Monitor:
    return load_monitors(write_files(folder, [monitor(group_by=["tenant"], **fields)])).monitors[0]


def bodies(n_series: int, each: int = 150) -> list[bytes]:
    start_ms = 1_750_000_000_000
    return [request(start_ms + 10 * i, tenant=f"t{i % n_series}", input_tokens=7) for i in range(n_series * each)]


def backtest(monitor: Monitor, requests: list[bytes]) -> list[tuple[str, str, bool | None, int]]:
    judged = BacktestMonitor(plan_of(monitor), monitor.window_ms, monitor.window_judges)
    run = Backtest((judged,))
    run.take(requests)
    return [(v.series["tenant"], v.feature, v.drifted, v.n_window) for v in run.verdicts()]


def test_a_hundred_thousand_series_are_a_few_and_one_other() -> None:
    plan = SlicePlan("by_model", ("model",), 10_000, 1, (TOKENS,), max_series=100)
    slicer = RequestSlicer("drift", (plan,), "requests", max_skew_ms=300_000)
    series, n = set(), 0
    for start in range(0, 100_000, 1000):
        values = [request(10_000, model=f"m{place}", input_tokens=place) for place in range(start, start + 1000)]
        for packet in slicer.take(batch(list(values))).packets[0]:
            series.add(packet.series)
            n += len(unpack([packet.data], plan.inputs)[0])
    assert len(series) == 101
    assert other_series(1) in series
    assert n == 100_000


def test_below_the_cap_nothing_changes() -> None:
    values = [request(10_000 + place, model=f"m{place % 7}", input_tokens=place, arm="x") for place in range(100)]
    free, capped = (
        RequestSlicer("drift", (SlicePlan(*_of(BY_MODEL), max_series=n),), "requests", 300_000).take(
            batch(list(values))
        )
        for n in (7, 10_000)
    )
    assert free.packets == capped.packets


def _of(plan: SlicePlan) -> tuple[str, tuple[str, ...], int, int, tuple[object, ...]]:
    return plan.monitor, plan.group_by, plan.slide_ms, plan.shards, plan.inputs


def test_the_finding_on_the_pooled_series(tmp_path: Path) -> None:
    found = backtest(loaded(tmp_path, features=["input_tokens"], max_series=2), bodies(5))
    findings = {(tenant, drifted) for tenant, feature, drifted, _ in found if feature == "series_cap"}
    assert findings == {("(other)", True)}
    assert {tenant for tenant, *_ in found} == {"t0", "t1", "(other)"}
    pooled = max(n for tenant, feature, _, n in found if tenant == "(other)" and feature == "series_cap")
    alone = max(n for tenant, feature, _, n in found if tenant == "t0")
    assert pooled == 3 * alone
    uncapped = backtest(loaded(tmp_path, features=["input_tokens"]), bodies(5))
    assert not any(feature == "series_cap" for _, feature, *_ in uncapped)


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True), max_size=20),
    st.integers(1, 5),
)
def test_never_more_than_the_cap_and_never_moved_while_alive(batches: list[list[str]], n: int) -> None:
    cap = SeriesCap(n, "other", forget_ms=10**9)
    own: set[str] = set()
    for place, names in enumerate(batches):
        admitted = cap.admit(names, place)
        assert all(found in (name, "other") for name, found in zip(names, admitted, strict=True))
        assert own <= cap.last_seen_ms.keys()
        own |= {found for found in admitted if found != "other"}
        assert len(own) <= n
