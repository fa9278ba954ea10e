"""The drift job's vectorised functions, called as Flink calls them, after the journey through pickle."""

import cloudpickle
import numpy as np
import orjson
import pandas as pd

from tests.unit.test_reference_ks import window_test
from udfs.flink_drift import JudgeWindows, SketchSlices
from udfs.sketches.rank import RankSketch


def travelled(function):
    return cloudpickle.loads(cloudpickle.dumps(function))


def test_slices_become_sketches() -> None:
    test = window_test([1.0, 2.0, 3.0])
    slices = [np.array([0.5, np.nan, 3.0]), np.array([]), np.array([None, None], dtype=object)]
    sketches = travelled(SketchSlices(test)).eval(pd.Series(slices))
    read = [RankSketch.from_bytes(data, test.reference) for data in sketches]
    assert [(sketch.n, sketch.n_null) for sketch in read] == [(2, 1), (0, 0), (0, 2)]


def test_a_window_gives_a_verdict_a_feature() -> None:
    tokens, seconds = window_test([1.0, 2.0]), window_test([5.0], feature="queue_seconds")
    of_tokens = [RankSketch.from_values([1.0, v], tokens.reference).to_bytes() for v in (2.0, 9.0)]
    of_seconds = [RankSketch.from_values([5.0], seconds.reference).to_bytes()]
    columns = [pd.Series(pd.to_datetime([60_000, 80_000], unit="ms")), pd.Series(["a", "b"])]
    columns += [pd.Series([np.array(of_tokens, dtype=object)] * 2), pd.Series([np.array(of_seconds, dtype=object)] * 2)]
    found = travelled(JudgeWindows([tokens, seconds])).eval(*columns)
    bodies = [[orjson.loads(verdict) for verdict in window] for window in found]
    assert [[body["feature"] for body in window] for window in bodies] == [["input_tokens", "queue_seconds"]] * 2
    assert [window[0]["series"] for window in bodies] == [{"model": "a"}, {"model": "b"}]
    assert [window[0]["window_end"] for window in bodies] == ["1970-01-01T00:01:00.000Z", "1970-01-01T00:01:20.000Z"]
    assert bodies[0][0]["n_window"] == 4
    assert found[0][0].encode() == tokens.judge(["a"], 60_000, of_tokens)[0].to_json()
