"""`slacktide status`: whether the books of ingest and of the metrics job balance."""

import pytest

from infra.commands.status import _balance_line
from infra.status import StackStatus


def status(**books: dict[str, int]) -> StackStatus:
    return StackStatus(0, [], 1, books={job.replace("_", "-"): kinds for job, kinds in books.items()})


@pytest.mark.parametrize(
    ("books", "ingest", "metrics"),
    [
        ({}, None, None),
        ({"ingest": {"spans": 3, "requests": 2, "late": 1}}, 0, None),
        ({"ingest_metrics": {"points": 3, "measurements": 1, "baseline": 1, "duplicate": 1}}, None, 0),
        ({"ingest": {"spans": 3}, "ingest_metrics": {"points": 5, "dead": 1, "empty": 1, "late": 1}}, 3, 2),
    ],
)
def test_each_balance_is_of_its_own_job(books: dict[str, dict[str, int]], ingest: int, metrics: int) -> None:
    found = status(**books).to_json()
    assert (found["ingest_balance"], found["metric_balance"]) == (ingest, metrics)


def test_an_imbalance_names_what_is_counted() -> None:
    equation = "points = measurements + dead"
    assert "out of balance by 1,200 points: points = measurements + dead does not hold" in _balance_line(1200, equation)
    assert _balance_line(0, equation) == "[green]The books balance: points = measurements + dead.[/green]"
