"""Labels beside verdicts in Flink: they are read only when a window of theirs ends. The state is made up here."""

from types import SimpleNamespace
from typing import Any

import pytest
from pyflink.common import Row

from schemas.feedback import Feedback
from schemas.verdicts import Verdict, VerdictKind
from tests.signal_verdicts import DAY_MS, EPOCH_MS, HOUR_MS, window
from udfs.judging.frame import Frame
from udfs.signals import feedback
from udfs.signals.feedback import FeedbackPolicy, FeedbackScore, FeedbackState
from udfs.signals.flink_feedback import key_of
from udfs.signals.flink_follow import FollowVerdicts, monitor_and_series

FRAME = Frame(
    "chat", "feedback(helpful)", ("model",), DAY_MS, HOUR_MS, "sha256:c", None, "sha256:m", VerdictKind.SIGNAL
)
SCORE = FeedbackScore(FRAME, "helpful", FeedbackPolicy(baseline=0.8, min_effective_n=2.0))
SLIDE_MS = 30_000


class Series:
    """The states of one series' key, and how often its labels were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: dict[str, bytes] = {}
        self.n_read = 0
        self._plain = feedback.decode
        monkeypatch.setattr(feedback, "decode", self._decoded)
        self.function = FollowVerdicts((), (SCORE,))
        self.open()

    def open(self) -> None:
        """As a worker does after a restart."""
        context: Any = SimpleNamespace(get_map_state=lambda _: self)
        self.function.open(context)

    def get(self, place: str) -> bytes | None:
        return self.held.get(place)

    def put(self, place: str, data: bytes) -> None:
        self.held[place] = data

    def _decoded(self, data: bytes) -> FeedbackState:
        self.n_read += 1
        return self._plain(data)

    def label(self, name: str, at_ms: int, value: float = 1.0) -> None:
        at_ms += EPOCH_MS
        label = Feedback(name, "helpful", value, 1.0, at_ms, at_ms, "thumb", {"model": "m1"}, trace_id="t")
        self._take(Row(None, label.to_json().decode(), key_of("chat", {"model": "m1"})))

    def verdict(self, end_ms: int) -> list[Verdict]:
        """What is said before a verdict on the window that ends then."""
        verdict = window("ks_two_sample", "f", end_ms, 0.1, window_ms=300_000).to_json().decode()
        *said, last = self._take(Row(verdict, None, None))
        assert last == verdict
        return [Verdict.from_json(text.encode()) for text in said]

    def _take(self, row: Row) -> list[str]:
        assert monitor_and_series(row) == key_of("chat", {"model": "m1"})
        ctx: Any = None
        return [found[0] for found in self.function.process_element(row, ctx)]


def test_verdicts_between_two_windows_of_labels_do_not_read_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    series = Series(monkeypatch)
    series.label("a", 1_000)
    series.label("b", 2_000, 0.5)
    series.n_read = 0
    said = [found for at in range(SLIDE_MS, HOUR_MS, SLIDE_MS) for found in series.verdict(at)]
    assert (said, series.n_read) == ([], 0)
    (closed,) = series.verdict(HOUR_MS)
    assert (closed.feature, closed.window_end_ms, closed.statistic) == ("feedback(helpful)", EPOCH_MS + HOUR_MS, 0.75)
    assert series.n_read == 1
    series.open()
    assert [found for at in range(HOUR_MS + SLIDE_MS, 2 * HOUR_MS, SLIDE_MS) for found in series.verdict(at)] == []
    assert series.n_read == 1
    assert [found.window_end_ms - EPOCH_MS for found in series.verdict(4 * HOUR_MS)] == [
        2 * HOUR_MS,
        3 * HOUR_MS,
        4 * HOUR_MS,
    ]
    assert series.n_read == 2


def test_a_label_brings_the_next_windows_end_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    series = Series(monkeypatch)
    series.label("late", 10 * HOUR_MS)
    assert series.verdict(2 * HOUR_MS) == []
    series.label("early", 1_000)
    assert [found.n_window for found in series.verdict(HOUR_MS)] == [1]


def test_a_series_whose_labels_have_all_left_is_quiet_until_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    series = Series(monkeypatch)
    assert series.verdict(HOUR_MS) == []
    series.label("a", 1_000)
    assert series.verdict(3 * DAY_MS)[-1].status == "no_data"
    n_read = series.n_read
    assert series.verdict(4 * DAY_MS) == []
    assert series.n_read == n_read
    series.label("b", 4 * DAY_MS + 1)
    assert [found.n_window for found in series.verdict(4 * DAY_MS + HOUR_MS)] == [1]


def test_labels_that_version_1_kept_are_read_once_and_then_when_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """It kept no window's end beside them."""
    series = Series(monkeypatch)
    series.label("a", 1_000)
    series.label("b", 2_000)
    (place,) = (place for place, data in series.held.items() if b'"labels"' in data)
    old = series.held[place].replace(b'"version":2', b'"version":1')
    series.held = {place: old}
    series.n_read = 0
    assert series.verdict(SLIDE_MS) == []
    assert series.verdict(2 * SLIDE_MS) == []
    assert series.n_read == 1
    assert b'"version":2' in series.held[place]
    assert [found.n_window for found in series.verdict(HOUR_MS)] == [2]
