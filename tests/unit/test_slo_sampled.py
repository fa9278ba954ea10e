"""Service levels over sampled scores: each counts for 1 / its chance of being sampled. Expected figures by hand."""

from pathlib import Path

import numpy as np
import pytest

from schemas.status import Status
from tests.slo_files import START_MS, about, run, slo
from udfs.slo.budgeting import Budgeting, Method
from udfs.slo.conditions import NumberIs, TextIs
from udfs.slo.indicators import SAMPLED_UNIT, Ratio, Tally, tallies
from udfs.slo.slo import WindowRule
from udfs.slo.state import decode, encode

GOLDEN = Path(__file__).parent.parent / "golden" / "slo"
FACTUALITY = (TextIs("score", ("factuality",)),)
BAD = Ratio(FACTUALITY, (NumberIs("value", "lt", 0.85),), part_is_good=False, chance="sampling_rate")
M = SAMPLED_UNIT
# Ten scores at 10 %, two of them bad: they stand for 100 requests, 20 bad. A hundred good ones of which none was left
# out. So 20 of 200 are bad, a tenth; counted one by one it would be 2 of 110.
RARE = Tally(80 * M, 100 * M, n_sampled=10)
ALL = Tally(100 * M, 100 * M, n_sampled=100)


def tally_of(values: list[float], chances: list[float]) -> Tally:
    columns = {
        "score": ["factuality"] * len(values),
        "value": np.array(values),
        "sampling_rate": np.array(chances),
    }
    return tallies([BAD], BAD.inputs, [columns[given.field] for given in BAD.inputs])[0]


def test_a_score_counts_for_one_over_its_chance() -> None:
    assert tally_of([0.1] * 2 + [0.9] * 8, [0.1] * 10) == RARE
    assert tally_of([0.9] * 100, [1.0] * 100) == ALL
    assert RARE.plus(ALL) == Tally(180 * M, 200 * M, n_sampled=110)
    # A third is no whole number of millionths: good and bad still make up all.
    third = tally_of([0.1, 0.9], [1 / 3, 1 / 3])
    assert (third.good, third.total, third.n) == (3 * M, 6 * M, 2)


@pytest.mark.parametrize("chance", [0.0, -0.1, 1.0000001, np.nan, np.inf, -np.inf, 1e-300, 9e-7])
def test_a_chance_that_is_none_makes_a_score_unknown(chance: float) -> None:
    assert tally_of([0.1, 0.1], [chance, 0.5]) == Tally(0, 2 * M, n_null=1, n_sampled=1)


def test_a_window_weighs_scores_and_its_minimum_is_of_scores() -> None:
    for min_events, status in ((110, Status.OK), (111, Status.INSUFFICIENT_DATA)):
        rule = WindowRule(0.05, "above", 60_000, 60_000, min_events=min_events)
        _, verdicts = run(slo(indicator=BAD, window=rule), [RARE, ALL])
        (window,) = about(verdicts, "sli")
        assert (window.status, window.n_window) == (status, 110)
        assert window.statistic == (0.1 if status is Status.OK else None)
        assert (window.evidence["good"], window.evidence["total"]) == (180.0, 200.0)


def test_a_budget_weighs_scores_and_its_minimum_is_of_scores() -> None:
    for min_events, status in ((110, Status.OK), (111, Status.LOW_TRAFFIC)):
        _, verdicts = run(slo(indicator=BAD, min_events=min_events), [RARE, ALL])
        (budget,), (page,) = about(verdicts, "budget"), about(verdicts, "burn_page")
        assert (budget.status, budget.n_window, page.status, page.n_window) == (status, 110, status, 110)
        said = budget.evidence
        assert (said["good"], said["total"], said["n_sampled"]) == (180.0, 200, 110)
        if status is Status.OK:  # a tenth bad where a hundredth may be: ten times too fast, nine budgets beyond
            assert budget.effect == pytest.approx(10.0)
            assert budget.statistic == pytest.approx(-9.0)
            assert page.drifted  # 10 is above 6 in 6 h & 30 min


def test_time_slices_weigh_scores_and_their_minimum_is_of_scores() -> None:
    for method, least, counts in (
        (Method.TIMESLICES, 110, (1, 1)),
        (Method.TIMESLICES, 111, (0, 0)),
        (Method.RATIO_TIMESLICES, 110, (900_000_000, 1_000_000_000)),
    ):
        of = slo(indicator=BAD, budgeting=Budgeting(method, 60_000, slice_target=0.9, min_slice_events=least))
        state, _ = run(of, [RARE, ALL])
        assert state is not None
        found = decode(state, of).counts.rolling(START_MS // 60_000, 3_600_000)
        assert (found.good, found.total) == counts


def test_its_state_survives_and_stays_readable() -> None:
    of = slo(indicator=BAD, window=WindowRule(0.05, "above", 60_000, 60_000))
    whole, said = run(of, [RARE, ALL, RARE, ALL])
    state, _ = run(of, [RARE])
    assert state is not None
    assert encode(decode(state, of)) == state
    slices = {START_MS + 30_000 * (number + 2): tally for number, tally in enumerate([ALL, RARE, ALL])}
    after, verdicts = run(of, slices, state=state)
    assert after == whole
    assert verdicts == said
    assert bytes.fromhex((GOLDEN / "state_v2_sampled.hex").read_text()) == whole


def test_without_samples_nothing_changed() -> None:
    plain = slo()
    state, verdicts = run(plain, [Tally(99, 100)] * 2)
    assert state is not None
    assert decode(state, plain).sampled is None
    assert "n_sampled" not in about(verdicts, "budget")[0].evidence
