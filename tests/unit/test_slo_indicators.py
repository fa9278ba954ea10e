"""Conditions and indicators against requests counted by hand, and the adaptive latency limit of the spec."""

import math

import numpy as np
import pytest

from tests.slo_files import ERRORS, FAST, TTFT
from udfs.judging.window_judge import Input, InputKind, Values
from udfs.sketches.log import LogSketch
from udfs.slo.adaptive_latency import AdaptiveLatency
from udfs.slo.conditions import NumberIs, TextIs, WithinAdaptiveLatency, all_of
from udfs.slo.indicators import Indicator, Ratio, Tally, Throughput, tallies

COLUMNS: dict[str, Values] = {
    "is_error": ["false", "true", None, "false", "false"],
    "is_streaming": ["true", "true", "false", "true", "true"],
    "time_to_first_token_seconds": np.array([0.2, np.nan, 0.1, 0.9, np.inf]),
    "end_to_end_seconds": np.array([1.2, 1.9, 1.9, -1.0, 1.7]),
    "input_tokens": np.array([0.0, 500.0, 0.0, 0.0, 0.0]),
    "kv_cache_hit_ratio": np.array([0.5, 0.5, 0.5, 0.5, 1.5]),
}


def tally_of(indicator: Indicator) -> Tally:
    columns = [COLUMNS.get(given.field, np.arange(5.0)) for given in indicator.inputs]
    return tallies([indicator], indicator.inputs, columns)[0]


def test_errors_of_all_requests() -> None:
    assert tally_of(ERRORS) == Tally(good=3, total=4, n_null=1)


def test_time_to_first_token_only_of_streamed_calls() -> None:
    tally = tally_of(TTFT)
    assert (tally.total, tally.n_null) == (3, 1)
    assert LogSketch.from_bytes(tally.sketch) == LogSketch.from_values([0.2, 0.9, math.inf, None])
    assert tally_of(FAST) == Tally(good=2, total=4, n_null=1)


def test_adaptive_latency_against_the_formula() -> None:
    rule = AdaptiveLatency()
    for tokens, ratio in ((0, 0.0), (500, 0.5), (8000, 1.0)):
        assert rule.limit_ms(tokens, ratio) == pytest.approx(1200 * (1 + 0.002 * tokens) * (1.5 - 0.8 * ratio))
    # 2.4 ms a token at the base.
    base = AdaptiveLatency(most=1.0, hit_weight=0.0)
    assert base.limit_ms(101, 0.5) - base.limit_ms(100, 0.5) == pytest.approx(2.4)
    for tokens, ratio in ((math.nan, 0.5), (1, math.nan), (-1, 0.5), (1, 1.01), (1, -0.01), (math.inf, 0.5)):
        assert rule.limit_ms(tokens, ratio) is None


def test_adaptive_latency_as_an_indicator() -> None:
    # Limits are 1320, 2640, 1320 and 1320 ms; the fifth has none.
    assert tally_of(Ratio((), (WithinAdaptiveLatency(),))) == Tally(good=2, total=3, n_null=2)


@pytest.mark.parametrize(
    "numbers", [{"base_ms": 0.0}, {"per_token": -1.0}, {"most": 0.8}, {"base_ms": math.nan}, {"hit_weight": -0.1}]
)
def test_an_adaptive_limit_that_could_be_nothing_is_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"adaptive limit|every token cached"):
        AdaptiveLatency(**numbers)


def test_conditions_together() -> None:
    streamed = TextIs("is_streaming", ("true",))
    error = TextIs("is_error", ("true",))
    columns = {given: COLUMNS[given.field] for given in (*streamed.inputs, *error.inputs)}
    answer = all_of((streamed, error), columns, 5)
    assert answer.holds.tolist() == [False, True, False, False, False]
    assert answer.known.tolist() == [True, True, True, True, True]  # the third is no streamed call, error or not
    assert all_of((error,), columns, 5).known.tolist() == [True, True, False, True, True]
    assert all_of((), columns, 5).holds.all()


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("lt", [1, 0, 0]),
        ("lte", [1, 1, 0]),
        ("gt", [0, 0, 1]),
        ("gte", [0, 1, 1]),
        ("eq", [0, 1, 0]),
        ("ne", [1, 0, 1]),
    ],
)
def test_numbers(op: str, expected: list[int]) -> None:
    values = np.array([1.0, 2.0, 3.0, np.nan])
    condition = NumberIs("x", op, 2.0)
    answer = condition.of({Input("x", InputKind.NUMBER): values})
    assert answer.holds.tolist() == [*map(bool, expected), False]
    assert answer.known.tolist() == [True, True, True, False]


def test_texts_outside() -> None:
    condition = TextIs("m", ("a", "b"), among=False)
    answer = condition.of({Input("m", InputKind.TEXT): ["a", "c", None]})
    assert (answer.holds.tolist(), answer.known.tolist()) == ([False, True, False], [True, True, False])


def test_throughput_counts_a_request_once_whatever_its_attempts() -> None:
    assert tally_of(Throughput()).total == 5
    assert tally_of(Throughput((TextIs("is_error", ("false",)),))) == Tally(total=3, n_null=1)


def test_tallies_add_up() -> None:
    one, other = (Tally(0, 2, sketch=LogSketch.from_values(v).to_bytes()) for v in ([1.0, 2.0], [3.0, 4.0]))
    both = one.plus(other)
    assert both.sketch == LogSketch.from_values([1.0, 2.0, 3.0, 4.0]).to_bytes()
    assert one.plus(Tally()).sketch == one.sketch
    assert Tally.from_bytes(both.to_bytes()) == both
