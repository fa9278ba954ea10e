"""Names that no monitor watches: which are found, in which order, and that made-up names are bounded and said."""

from typing import Any

from tests.judges import LIVE_FRAME, judged
from udfs.judging.unmonitored import Unmonitored


def found(rows: list[str | None], **fields: Any) -> list[dict[str, Any]]:
    settings = {"watched": frozenset({"temperature"}), "max_share": 0.05, "min_samples": 10, "separator": ","} | fields
    return judged(Unmonitored(LIVE_FRAME, "names", **settings), rows)


def test_a_name_that_no_monitor_watches_is_found_with_its_share() -> None:
    name, rest = found(["temperature,top_k"] * 30 + ["temperature"] * 70 + [None] * 5)
    assert (name["feature"], name["kind"], name["drifted"]) == ("unmonitored_feature(top_k)", "finding", True)
    assert (name["statistic"], name["n_window"], name["n_window_null"]) == (0.3, 100, 5)
    assert (rest["feature"], rest["drifted"], rest["statistic"]) == ("unmonitored_feature(*)", False, 0.0)


def test_watched_and_known_names_are_left_out() -> None:
    (rest,) = found(["temperature,seed"] * 100, known=frozenset({"seed"}))
    assert (rest["feature"], rest["drifted"], rest["status"]) == ("unmonitored_feature(*)", False, "ok")


def test_a_rare_name_is_none_and_tells_its_share() -> None:
    (rest,) = found(["x"] * 5 + ["temperature"] * 95)
    assert (rest["drifted"], rest["statistic"]) == (False, 0.05)


def test_the_most_frequent_are_named_and_the_rest_counted() -> None:
    rows = [",".join(f"n{j}" for j in range(i % 10 + 1)) for i in range(100)]
    verdicts = found(rows, max_names=3)
    assert [verdict["feature"] for verdict in verdicts] == [
        "unmonitored_feature(n0)",
        "unmonitored_feature(n1)",
        "unmonitored_feature(n2)",
        "unmonitored_feature(*)",
    ]
    assert (verdicts[-1]["statistic"], verdicts[-1]["drifted"]) == (0.7, True)
    assert verdicts[-1]["evidence"] == {"n_names": 7, "names_dropped": False}
    assert len({verdict["verdict_id"] for verdict in verdicts}) == 4


def test_a_name_counts_once_a_request_and_an_empty_one_never() -> None:
    name, rest = found(["x,x,,"] * 10 + [""] * 10)
    assert (name["statistic"], rest["n_window"]) == (0.5, 20)


def test_made_up_names_are_bounded_and_the_verdict_does_not_pretend() -> None:
    rows = [f"made_up_{i}" for i in range(5000)]
    judge = Unmonitored(LIVE_FRAME, "names", frozenset(), 0.05, 10, names_kept=100)
    assert len(judge.sketch(rows)) < 2500
    (rest,) = judged(judge, rows)
    assert (rest["status"], rest["drifted"], rest["evidence"]["names_dropped"]) == ("inconclusive", None, True)


def test_too_few_requests_are_no_pass() -> None:
    (rest,) = found(["x"] * 9)
    assert (rest["status"], rest["drifted"]) == ("insufficient_data", None)
