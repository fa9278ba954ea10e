"""A signal must follow something that is said."""

import pytest

from jobs.kafka_client import ConfigurationError
from jobs.monitors import load_monitors
from tests.drift_files import monitor, write_files
from tests.unit.test_monitor_judges import ALL_TESTS

LIMIT = {"test": "limit", "figure": "quantile", "q": 0.95, "field": "queue_seconds", "above": 9}


def load(folder, signal, tests=(LIMIT,), **fields):
    body = monitor(tests=list(tests), findings=["null_rate"], signals=[signal], **fields)
    return load_monitors(write_files(folder, [body]))


@pytest.mark.parametrize("name", ["dynamic_threshold", "baseline_drop"])
def test_a_feature_that_nobody_speaks_of_is_refused_with_the_nearest(tmp_path, name):
    with pytest.raises(ConfigurationError, match=r"signals\[0\]\.feature.*p99.*p95\(queue_seconds\)"):
        load(tmp_path, {"signal": name, "feature": "p99(queue_seconds)"})


@pytest.mark.parametrize("feature", ["p95(queue_seconds)", "input_tokens", "null_rate(input_tokens)"])
def test_what_is_said_may_be_followed(tmp_path, feature):
    (found,) = load(tmp_path, {"signal": "dynamic_threshold", "feature": feature}).monitors
    assert len(found.followers) == 1


def test_where_a_judge_says_nothing_to_nothing_nobody_is_refused(tmp_path):
    split = next(test for test in ALL_TESTS if test["test"] == "two_streams")
    load(tmp_path, {"signal": "dynamic_threshold", "feature": "two_stream_ks(queue_seconds:b|control)"}, [split])
