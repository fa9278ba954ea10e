"""The false-alarm budget as a user writes it, and what one test gets of it."""

import pytest

from udfs.budget.false_alarms import FalseAlarmBudget


@pytest.mark.parametrize(
    ("text", "alarms", "seconds", "windows"),
    [
        ("1 per 30d", 1, 2_592_000, None),
        ("2 per 7d", 2, 604_800, None),
        ("1 per 2w", 1, 1_209_600, None),
        ("0.5 per 12 h", 0.5, 43_200, None),
        ("3 per 90m", 3, 5400, None),
        (" 1 per 1000 windows ", 1, None, 1000),
        ("1 per 1 window", 1, None, 1),
    ],
)
def test_what_is_read(text: str, alarms: float, seconds: float | None, windows: float | None) -> None:
    assert FalseAlarmBudget.parse(text) == FalseAlarmBudget(alarms, seconds, windows)


@pytest.mark.parametrize(
    "text", ["", "30d", "1 per", "1 per 30", "one per 30d", "1 per 30 months", "0 per 30d", "1 per 0d", "-1 per 30d"]
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="it must be a count and a period, such as '1 per 30d'"):
        FalseAlarmBudget.parse(text)


def test_a_rate_by_hand() -> None:
    # 30 days are 86,400 windows at a slide of 30 s; 6 features of 10 series share one alarm.
    budget = FalseAlarmBudget.parse("1 per 30d")
    assert budget.onset_rate(slide_seconds=30, tests=60) == pytest.approx(1 / 86_400 / 60, rel=1e-15)
    assert FalseAlarmBudget.parse("2 per 1000 windows").onset_rate(slide_seconds=30, tests=4) == 0.0005


@pytest.mark.parametrize("arguments", [{"slide_seconds": 0}, {"slide_seconds": 30, "tests": 0}])
def test_no_slide_or_no_test_has_no_rate(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        FalseAlarmBudget(1, seconds=60).onset_rate(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [(1, None, None), (1, 60, 60), (0, 60, None), (1, float("inf"), None)])
def test_a_budget_has_one_period(arguments: tuple[float, float | None, float | None]) -> None:
    with pytest.raises(ValueError, match="one positive period"):
        FalseAlarmBudget(*arguments)
