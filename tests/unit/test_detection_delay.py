"""What must not break a monitor as a whole: NaN beside the values of a drift, and clocks that run back as it begins."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from infra.commands.monitors import backtest_of
from jobs.monitors import Monitors, load_monitors
from schemas.verdicts import Verdict
from tests.drift_files import monitor, write_files

START_MS = 1_750_000_020_000
QUIET_SECONDS, SECONDS = 240, 420
TESTS: list[dict[str, Any]] = [
    {"test": "psi", "field": "input_tokens", "threshold": 0.25, "min_samples": 200},
    {"test": "cramer_von_mises", "field": "input_tokens", "threshold": 0.2, "min_samples": 50},
    {"test": "limit", "field": "input_tokens", "figure": "mean", "above": 40.0, "min_samples": 50},
    {"test": "limit", "field": "input_tokens", "figure": "quantile", "above": 50.0, "min_samples": 50},
    {
        "test": "two_streams",
        "field": "input_tokens",
        "split_by": "arm",
        "baseline": "control",
        "min_effect": 0.2,
        "min_samples": 20,
    },
]
MONITORS = [
    monitor(
        name="timed",
        group_by=["service_name"],
        features=["input_tokens", "finish_reason"],
        findings=["range", "new_category"],
        tests=TESTS,
        signals=[{"signal": "baseline_drop", "feature": "p50(input_tokens)", "learn_windows": 3}],
        min_samples=50,
        min_effect=0.2,
    ),
    monitor(
        name="counted",
        group_by=["service_name"],
        features=["input_tokens"],
        window_seconds=None,
        window_requests=100,
        min_samples=50,
        min_effect=0.2,
    ),
]


@pytest.fixture(scope="module")
def monitors(tmp_path_factory: pytest.TempPathFactory) -> Monitors:
    return load_monitors(write_files(tmp_path_factory.mktemp("monitors"), MONITORS))


def requests() -> list[dict[str, Any]]:
    """Four requests a second; after four minutes those of the new arm have 40 tokens more, and end as none did."""
    rng = np.random.default_rng(9)
    made = []
    for number in range(SECONDS * 4):
        is_new, has_drifted = bool(number % 2), number >= QUIET_SECONDS * 4
        made.append(
            {
                "event_time_ms": START_MS + number * 250,
                "trace_id": f"{number:032x}",
                "span_id": f"{number:016x}",
                "service_name": "chat",
                "arm": "new" if is_new else "control",
                "input_tokens": int(rng.integers(1, 60)) + (40 if is_new and has_drifted else 0),
                "finish_reason": "unheard_of" if is_new and has_drifted else "stop" if rng.random() < 0.9 else "length",
            }
        )
    return made


def judged(monitors: Monitors, bodies: list[dict[str, Any]]) -> list[Verdict]:
    history = backtest_of(monitors)
    history.take(orjson.dumps(body) for body in bodies)
    assert history.n_unusable == 0
    return list(history.verdicts())


def first_drifts(verdicts: list[Verdict]) -> dict[tuple[str, str], int]:
    """When each series was first found to have drifted, in seconds after it did."""
    found: dict[tuple[str, str], int] = {}
    for verdict in verdicts:
        if verdict.drifted:
            seconds = (verdict.window_end_ms - START_MS) // 1000 - QUIET_SECONDS
            found[verdict.monitor, verdict.feature] = min(found.get((verdict.monitor, verdict.feature), 10**6), seconds)
    return found


def with_nulls(bodies: list[dict[str, Any]], value: object) -> Iterator[dict[str, Any]]:
    """Beside each third request, and each one while the drift begins, one without tokens and reason."""
    for number, body in enumerate(bodies):
        yield body
        if number % 3 == 0 or 0 <= number - QUIET_SECONDS * 4 < 80:
            twin = body | {"trace_id": f"{number + 10**6:032x}", "input_tokens": value, "finish_reason": None}
            yield {name: found for name, found in twin.items() if found is not ...}


def test_every_way_of_looking_finds_the_drift(monitors: Monitors) -> None:
    delays = first_drifts(judged(monitors, requests()))
    assert {feature for name, feature in delays if name == "timed"} >= {
        "input_tokens",
        "finish_reason",
        "range(input_tokens)",
        "new_category(finish_reason)",
        "psi(input_tokens)",
        "cramer_von_mises(input_tokens)",
        "mean(input_tokens)",
        "p50(input_tokens)",
        "two_stream_ks(input_tokens:new|control)",
    }
    assert ("counted", "input_tokens") in delays
    assert all(0 < delay <= 120 for delay in delays.values()), delays


@pytest.mark.parametrize("value", ["NaN", None, ...], ids=["nan", "null", "absent"])
def test_a_nan_never_delays_the_finding(monitors: Monitors, value: object) -> None:
    plain = requests()
    without, beside = judged(monitors, plain), judged(monitors, list(with_nulls(plain, value)))
    assert first_drifts(beside) == first_drifts(without)
    pairs = zip(without, beside, strict=True)
    assert all((a.statistic, a.p_value, a.n_window) == (b.statistic, b.p_value, b.n_window) for a, b in pairs)
    assert sum(verdict.n_window_null for verdict in beside) > 1000


def test_clocks_that_run_back_move_no_verdict_of_history(monitors: Monitors) -> None:
    """One of four clients is set back by 45 s, twice, for a while; its requests come when they come."""
    bodies = requests()
    for number in (*range(200, 500, 4), *range(QUIET_SECONDS * 4, QUIET_SECONDS * 4 + 200, 4)):
        bodies[number]["event_time_ms"] -= 45_000
    by_time = sorted(bodies, key=lambda body: (body["event_time_ms"], body["trace_id"]))
    assert by_time != bodies
    as_it_came, in_order = judged(monitors, bodies), judged(monitors, by_time)
    assert [verdict.to_json() for verdict in as_it_came] == [verdict.to_json() for verdict in in_order]
