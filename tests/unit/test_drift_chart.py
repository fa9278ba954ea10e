"""The figure of a drift series: what is in its axes, from the verdicts to the marks."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from infra.errors import StackError
from infra.plots.drift_chart import draw_drift, telling_window
from infra.plots.drift_series import DriftSeries, SeriesBook
from infra.plots.figure_file import save
from tests.unit.test_drift_series import NAME, record, records, unknown

GAP = {"largest_gap": {"at": 812.0, "relation": "<=", "reference_share": 0.9, "window_share": 0.45}}
QUANTILES = {"quantiles": {"shares": [0.1, 0.5, 0.9], "reference": [1.0, 2.0, 3.0], "window": [2.0, 4.0, 8.0]}}


def series(*found: dict[str, Any]) -> DriftSeries:
    return SeriesBook.of(found).find(NAME)


def line(axes: Axes, label: str) -> Any:
    (found,) = [one for one in axes.lines if one.get_label() == label]
    return found


def ends_of(axes: Axes, label: str) -> list[float]:
    return [at.timestamp() * 1000 for at in line(axes, label).get_xdata()]


def test_the_lines_hold_the_verdicts_figures() -> None:
    drawn = draw_drift(series(*(record(number) | {"threshold": 0.1 + number / 100} for number in range(12))))
    axes = drawn.axes[0]
    statistics = [0.2 + number / 10_000 if number % 10 == 0 else 0.02 for number in range(12)]
    assert line(axes, "statistic").get_ydata().tolist() == statistics
    assert line(axes, "threshold").get_ydata() == pytest.approx([0.1 + number / 100 for number in range(12)])
    assert ends_of(axes, "statistic") == [records.START_MS + 300_000 + 30_000 * number for number in range(12)]
    assert ends_of(axes, "drifted") == [records.START_MS + 300_000 + 30_000 * number for number in (0, 10)]
    assert line(axes, "drifted").get_ydata().tolist() == [0.2, 0.201]
    assert axes.get_title(loc="left") == f"{NAME}\n12 windows, 12 with a figure, 2 drifted"
    assert "ks_two_sample" in axes.get_ylabel()


def test_windows_without_a_figure_are_gaps_with_their_status() -> None:
    drawn = draw_drift(series(record(1), unknown(2), unknown(3), record(4), record(8)))
    axes = drawn.axes[0]
    heights = np.array(line(axes, "statistic").get_ydata(), dtype=float)
    assert np.isnan(heights).tolist() == [False, True, True, False, True, False]
    spans = {patch.get_label(): patch for patch in axes.patches}
    assert set(spans) == {"insufficient_data", "no verdict"}
    width_days = spans["insufficient_data"].get_width()
    assert width_days * 86_400 == pytest.approx(60.0, abs=0.01)
    assert spans["no verdict"].get_width() * 86_400 == pytest.approx(90.0, abs=0.01)
    legend = axes.get_legend()
    assert legend is not None
    assert {"insufficient_data", "no verdict"} <= {text.get_text() for text in legend.get_texts()}


def test_starts_of_alerts_and_changes_of_configuration_are_marked() -> None:
    other = record(2, config_digest="sha256:" + "e" * 64)
    one = series(record(0), record(1), other)
    one.alert_starts = {records.START_MS + 330_000}
    axes = draw_drift(one).axes[0]
    expected = datetime.fromtimestamp(records.START_MS / 1000 + 330, UTC)
    assert line(axes, "alert starts").get_xdata()[0] == expected
    assert line(axes, "configuration changed").get_xdata()[0].timestamp() * 1000 == other_end(other)


def other_end(verdict: dict[str, Any]) -> float:
    return datetime.fromisoformat(verdict["window_end"]).timestamp() * 1000


def test_there_is_no_mark_of_what_there_is_not() -> None:
    axes = draw_drift(series(record(1, test="psi"), record(2, test="psi"))).axes[0]
    assert [one.get_label() for one in axes.lines] == ["statistic"]
    assert not axes.patches


def test_the_lower_half_is_about_the_worst_drifted_window() -> None:
    found = series(record(0), record(10, evidence=GAP), record(11))
    drawn = draw_drift(found)
    bars = drawn.axes[1].patches
    assert [bar.get_width() for bar in bars] == [0.9, 0.45]
    assert "n = 500" in drawn.axes[1].get_title(loc="left")
    assert "<= 812" in drawn.axes[1].get_xlabel()
    telling = telling_window(found.windows)
    assert telling is not None
    assert telling.statistic == 0.201


def test_without_a_drifted_window_it_is_about_the_last_with_a_figure() -> None:
    windows = series(record(1), record(2, evidence=GAP), unknown(3)).windows
    telling = telling_window(windows)
    assert telling is windows[1]


def test_quantiles_are_drawn_where_the_verdict_has_them() -> None:
    axes = draw_drift(series(record(1, evidence=GAP | QUANTILES))).axes[1]
    assert line(axes, "reference").get_xdata().tolist() == [1.0, 2.0, 3.0]
    assert line(axes, "window").get_xdata().tolist() == [2.0, 4.0, 8.0]
    assert line(axes, "window").get_ydata().tolist() == [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"quantiles": [1.0, 2.5]},
        {"quantiles": {"shares": [0.5], "reference": [1.0], "window": [None]}},
        {"quantiles": {"shares": [0.5], "reference": [1.0, 2.0], "window": [1.0]}},
        {"largest_gap": None},
        {"largest_gap": {"at": 1.0, "reference_share": "a", "window_share": 0.5}},
    ],
)
def test_evidence_of_another_kind_is_said_to_be_none(evidence: dict[str, Any]) -> None:
    axes = draw_drift(series(record(1, evidence=evidence))).axes[1]
    assert [text.get_text() for text in axes.texts] == ["the verdict does not say where window and reference differ"]


def test_a_gap_at_an_infinite_value_is_named() -> None:
    evidence = {"largest_gap": GAP["largest_gap"] | {"at": None}}
    assert "an infinite value" in draw_drift(series(record(1, evidence=evidence))).axes[1].get_xlabel()


def test_a_series_without_any_figure_is_drawn_as_one_gap() -> None:
    drawn = draw_drift(series(unknown(1), unknown(2)))
    assert [patch.get_label() for patch in drawn.axes[0].patches] == ["insufficient_data"]
    assert [text.get_text() for text in drawn.axes[1].texts] == ["no window has a figure"]


@pytest.mark.parametrize(("name", "start"), [("d.png", b"\x89PNG"), ("d.svg", b"<?xml"), ("d.PDF", b"%PDF")])
def test_the_file_is_what_its_name_says_and_the_same_each_time(tmp_path: Path, name: str, start: bytes) -> None:
    found = series(record(0, evidence=GAP), record(1), unknown(2))
    files = [tmp_path / f"{number}{name}" for number in range(2)]
    for file in files:
        save(draw_drift(found), file)
    assert files[0].read_bytes().startswith(start)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_labels_that_look_like_markup_are_drawn_as_they_are(tmp_path: Path) -> None:
    verdict = record(1, series={"tenant": r"$\frac{1}{$ <b>&"})
    found = SeriesBook.of([verdict]).find("chat")
    save(draw_drift(found), tmp_path / "d.svg")
    assert r"$\frac{1}{$ &lt;b&gt;&amp;" in (tmp_path / "d.svg").read_text()


def test_a_name_without_a_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="names no form of a figure"):
        save(draw_drift(series(record(1))), tmp_path / "drift.bmp")
    with pytest.raises(StackError, match="there is no folder"):
        save(draw_drift(series(record(1))), tmp_path / "none" / "drift.png")
