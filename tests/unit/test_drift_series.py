"""Verdicts sorted by series: from Kafka's JSON, from Delta's rows and from Parquet; and the series a person means."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from infra.errors import StackError
from infra.plots.drift_series import SeriesBook, gaps
from infra.plots.judged_window import judged_window, series_of
from tests import audit_records as records
from udfs.statistics.kolmogorov import critical_statistic

NAME = "chat/feature_0/tenant=acme"


def record(number: int, **changes: Any) -> dict[str, Any]:
    """The verdict of feature_0's window `number`, as it is on the wire."""
    changes = {"feature": "feature_0"} | changes
    return dict(orjson.loads(records.verdict(number, **changes).to_json()))


def unknown(number: int) -> dict[str, Any]:
    names = ("statistic", "p_value", "log10_p_value", "effect", "published_score", "drifted")
    return record(number, status="insufficient_data", n_window=2, **dict.fromkeys(names))


def book(*numbers: int) -> SeriesBook:
    return SeriesBook.of([record(number) for number in numbers])


def test_a_window_says_what_its_verdict_says() -> None:
    window = judged_window(record(10))
    assert (window.statistic, window.drifted, window.status, window.n) == (0.201, True, "ok", 500)
    assert window.end_ms - window.start_ms == 300_000
    assert window.slide_ms == 30_000


def test_the_threshold_is_the_verdicts_own_where_it_has_one() -> None:
    assert judged_window(record(1) | {"threshold": 0.125}).threshold == 0.125


def test_the_threshold_of_a_ks_test_is_the_larger_of_both_conditions() -> None:
    critical = critical_statistic(0.01, 1000, 500)
    assert judged_window(record(1, min_effect=0.05) | {"threshold": None}).threshold == critical
    assert judged_window(record(1, min_effect=0.15) | {"threshold": None}).threshold == 0.15
    assert judged_window(record(1, test="psi") | {"threshold": None}).threshold is None
    assert judged_window(record(1) | {"threshold": None, "alpha": None}).threshold is None


def test_a_window_without_figures_has_none() -> None:
    window = judged_window(unknown(3))
    assert (window.statistic, window.threshold, window.drifted) == (None, None, None)
    assert window.status == "insufficient_data"


def test_rows_of_delta_and_of_parquet_are_the_same_window() -> None:
    wire = record(4)
    end = datetime.fromtimestamp(judged_window(wire).end_ms / 1000, UTC)
    start = datetime.fromtimestamp(judged_window(wire).start_ms / 1000, UTC)
    delta = wire | {"evidence": orjson.dumps(wire["evidence"]).decode()}
    parquet = delta | {"window_start": start.replace(tzinfo=None), "window_end": end, "series": [("tenant", "acme")]}
    assert judged_window(delta) == judged_window(parquet) == judged_window(wire)
    assert series_of(parquet) == series_of(wire)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"status": "fine"},
        {"window_end": "yesterday"},
        {"window_end": None},
        {"statistic": None},
        {"series": [1]},
        {"evidence": "{"},
        {"slide_seconds": "often"},
        {"slide_seconds": 0.0},
        {"slide_seconds": float("inf")},
        {"statistic": float("nan")},
        {"threshold": float("inf")},
    ],
)
def test_what_is_no_verdict_is_counted_and_the_rest_is_kept(wrong: dict[str, Any]) -> None:
    bad = record(1) | wrong if wrong else {}
    found = SeriesBook.of([record(0), bad, None, record(2)])
    assert found.n_skipped == 2
    assert len(found.find(NAME).by_end) == 2


def test_alerts_are_put_to_their_series() -> None:
    both = (records.AlertState.FIRING, records.AlertState.RESOLVED)
    firing, resolved = (orjson.loads(records.alert(0, state)) for state in both)
    later = orjson.loads(records.alert(1, records.AlertState.FIRING))
    found = SeriesBook.of([record(0), firing, resolved, later])
    assert found.find(NAME).alert_starts == {records.START_MS, records.START_MS + 600_000}
    renamed = {"starts_at" if name == "startsAt" else name: value for name, value in firing.items()}
    assert SeriesBook.of([record(0), renamed]).find(NAME).alert_starts == {records.START_MS}


def test_a_window_judged_again_counts_once() -> None:
    found = SeriesBook.of([record(0), record(0), record(1), record(1, config_digest="sha256:" + "e" * 64)])
    series = found.find(NAME)
    assert (len(series.by_end), series.n_replaced) == (2, 1)
    assert series.windows[1].config_digest.endswith("e")


def test_windows_come_in_order_of_time() -> None:
    ends = [window.end_ms for window in book(5, 1, 3).find(NAME).windows]
    assert ends == sorted(ends)


@pytest.mark.parametrize("wanted", [NAME, "chat", "chat/", "chat/feature_0", '["chat","feature_0",{"tenant":"acme"}]'])
def test_a_series_is_found_by_name_beginning_and_key(wanted: str) -> None:
    assert book(1).find(wanted).name == NAME


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("chat", "chat is the beginning of 2 series: chat/feature_0/tenant=acme, chat/feature_1/tenant=acme"),
        ("chat/feat", "there is no series chat/feat; there are chat/feature_0/tenant=acme, chat/feature_1"),
    ],
)
def test_which_series_is_not_guessed(wanted: str, message: str) -> None:
    found = SeriesBook.of([record(0), record(1, feature="feature_1")])
    with pytest.raises(StackError, match=message):
        found.find(wanted)


def test_an_exact_name_wins_over_being_a_beginning() -> None:
    found = SeriesBook.of([record(0), record(1, series={}), record(2, series={})])
    assert len(found.find("chat/feature_0").by_end) == 2


def test_no_verdicts_at_all() -> None:
    with pytest.raises(StackError, match="there are no verdicts"):
        SeriesBook.of([]).find("chat")


def test_windows_of_other_series_are_not_kept_but_their_names_are() -> None:
    found = SeriesBook.of([record(0), record(1, feature="feature_1")], wanted="chat/feature_0")
    assert [len(one.by_end) for one in found.series.values()] == [1, 0]


def test_stretches_without_a_figure_are_told_with_their_reason() -> None:
    windows = SeriesBook.of([record(0), unknown(1), unknown(2), record(3), record(7), unknown(8)]).find(NAME).windows
    end = windows[0].end_ms
    slide = 30_000
    assert list(gaps(windows)) == [
        (end, end + 2 * slide, "insufficient_data"),
        (end + 3 * slide, end + 6 * slide, "no verdict"),
        (end + 7 * slide, end + 8 * slide, "insufficient_data"),
    ]
