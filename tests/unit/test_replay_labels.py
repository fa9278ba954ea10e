"""Users, arms, epochs and model versions of a replay: shares, stickiness, times, and that nothing else changes."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from infra.replay import ReplayPlan
from infra.replay.labels import parse_arms, parse_version
from infra.replay.resolve import resolve
from jobs.kafka_client import ConfigurationError
from tests.unit.test_replay_generate import NOW_NS, START_MS, generated
from udfs.telemetry.otlp import decode_spans

PLAN = ReplayPlan(seed=3, start=START_MS, limit=6_000)
LABELS = ("user_hash", "arm", "assignment_epoch", "model_version")


def rows_of(plan: ReplayPlan) -> list[dict[str, Any]]:
    messages, _ = generated(plan)
    table, dead = decode_spans([message.value for message in messages], "otlp_proto")
    assert dead == []
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def labelled(*arms: str, versions: tuple[str, ...] = (), users: int = 500) -> ReplayPlan:
    plans = tuple(parse_arms(text) for text in arms)
    return replace(PLAN, arms=plans, versions=tuple(parse_version(text) for text in versions), users=users)


def test_users_are_in_arms_by_share_and_stay_there() -> None:
    rows = rows_of(labelled("a=80%,b=15%,c=5%"))
    arms_of_user = defaultdict(set)
    for row in rows:
        arms_of_user[row["user_hash"]].add(row["arm"])
        assert row["assignment_epoch"] == "1"
    assert {len(arms) for arms in arms_of_user.values()} == {1}
    assert len(arms_of_user) == 500
    counts = [sum(arms == {name} for arms in arms_of_user.values()) for name in "abc"]
    # Five standard deviations of a binomial count about its mean.
    assert np.all(np.abs(np.array(counts) - [400, 75, 25]) < 5 * np.sqrt([80, 63.75, 23.75]))


def test_a_second_plan_is_a_new_epoch_with_all_users_drawn_anew() -> None:
    rows = rows_of(labelled("a=50%,b=50%", "a=50%,b=50%@50%"))
    half_ms = START_MS + resolve(PLAN, NOW_NS).source.last_ns // 2_000_000
    arms: dict[str, dict[str, str]] = {"1": {}, "2": {}}
    for row in rows:
        assert row["assignment_epoch"] == ("2" if row["event_time_ms"] >= half_ms else "1")
        arms[row["assignment_epoch"]][row["user_hash"]] = row["arm"]
    both = arms["1"].keys() & arms["2"].keys()
    moved = sum(arms["1"][user] != arms["2"][user] for user in both)
    assert abs(moved - len(both) / 2) < 5 * np.sqrt(len(both) / 4)


def test_a_version_holds_from_its_time_on_and_before_the_first_there_is_none() -> None:
    rows = rows_of(labelled(versions=("v2@75%", "v1@25%")))
    last_ms = resolve(PLAN, NOW_NS).source.last_ns / 1e6
    for row in rows:
        after = (row["event_time_ms"] - START_MS) / last_ms
        if min(abs(after - 0.25), abs(after - 0.75)) > 1e-5:
            assert row["model_version"] == (None if after < 0.25 else "v1" if after < 0.75 else "v2")


def test_labels_change_no_other_value_and_another_start_keeps_them() -> None:
    def others(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{name: value for name, value in row.items() if name not in LABELS} for row in rows]

    plan = labelled("a=50%,b=50%@1m", versions=("v1",))
    rows, plain = rows_of(plan), rows_of(PLAN)
    assert others(rows) == others(plain)
    assert {row["user_hash"] for row in plain} == {row["model_version"] for row in plain} == {None}
    before = [row for row in rows if row["assignment_epoch"] is None]
    assert 0 < len(before) < len(rows)
    assert {row["arm"] for row in before} == {"control", "treatment"}
    moved = rows_of(replace(plan, start=START_MS + 1))
    assert [[row[name] for name in LABELS] for row in moved] == [[row[name] for name in LABELS] for row in rows]
    assert rows_of(plan) == rows


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a=50%,b=40%", "add up to 0.9"),
        ("a=50%,a=50%", "each name once"),
        ("a,b=1", "is no list of arms"),
        ("=1", "is no list of arms"),
        ("a=1%%", "is no share"),
        ("a=1@soon", "is no duration"),
    ],
)
def test_arms_that_say_nothing_are_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_arms(text)


def test_two_plans_at_one_time_and_a_time_outside_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="--arms: is given twice for the same time"):
        resolve(labelled("a=1", "b=1"), NOW_NS)
    with pytest.raises(ConfigurationError, match="--model-version: lies outside"):
        resolve(labelled(versions=("v2@9h",)), NOW_NS)
    with pytest.raises(ConfigurationError, match="--users"):
        resolve(labelled("a=1", users=0), NOW_NS)
    with pytest.raises(ValueError, match="names no version"):
        parse_version("@50%")
