"""The drift job's vectorised functions, called as Flink calls them, after the journey through pickle."""

import cloudpickle
import numpy as np
import orjson
import pandas as pd

from tests.unit.test_reference_ks import window_test
from udfs.flink_drift import JudgeWindows, SketchSlices
from udfs.parts import split_parts
from udfs.sketches.rank import RankSketch
from udfs.slicing.packets import pack


def travelled(function):
    return cloudpickle.loads(cloudpickle.dumps(function))


TOKENS, SECONDS = (window_test(reference, field) for reference, field in (([1.0, 2.0, 3.0], "a"), ([5.0], "b")))
INPUTS = TOKENS.inputs + SECONDS.inputs


def packet(tokens: list[float], seconds: list[float]) -> bytes:
    return pack(INPUTS, [np.array(tokens), np.array(seconds)])


def test_the_packets_of_a_slice_become_the_sketches_of_every_judge() -> None:
    slices = [[packet([0.5, np.nan], [5.0, 6.0]), packet([3.0], [np.nan])], [packet([], [])]]
    column = pd.Series([np.array(packets, dtype=object) for packets in slices])
    found = [
        split_parts(data)
        for data in travelled(SketchSlices([(INPUTS, [TOKENS, SECONDS])])).eval(pd.Series([0, 0]), column)
    ]
    tokens = [RankSketch.from_bytes(sketches[0], TOKENS.reference) for sketches in found]
    seconds = [RankSketch.from_bytes(sketches[1], SECONDS.reference) for sketches in found]
    assert [(sketch.n, sketch.n_null) for sketch in tokens] == [(2, 1), (0, 0)]
    assert [(sketch.n, sketch.n_null) for sketch in seconds] == [(2, 1), (0, 0)]


def test_a_window_gives_a_verdict_a_judge() -> None:
    sketched = SketchSlices([(INPUTS, [TOKENS, SECONDS])]).eval(
        pd.Series([0, 0]), pd.Series([[packet([1.0, v], [5.0])] for v in (2.0, 9.0)])
    )
    windows = pd.Series([np.array(sketched, dtype=object)] * 2)
    ends = pd.Series(pd.to_datetime([60_000, 80_000], unit="ms"))
    series = pd.Series(['["a"]', '["b"]'])
    found = travelled(JudgeWindows([[], [TOKENS, SECONDS]])).eval(pd.Series([1, 1]), ends, series, windows)
    bodies = [[orjson.loads(verdict) for verdict in window] for window in found]
    assert [[body["feature"] for body in window] for window in bodies] == [["a", "b"]] * 2
    assert [window[0]["series"] for window in bodies] == [{"model": "a"}, {"model": "b"}]
    assert [window[0]["window_end"] for window in bodies] == ["1970-01-01T00:01:00.000Z", "1970-01-01T00:01:20.000Z"]
    assert bodies[0][0]["n_window"] == 4
    alone = JudgeWindows([[], [TOKENS, SECONDS]]).eval(1, ends, series, windows)  # as Flink gives a constant
    assert alone.tolist() == found.tolist()
    sketches = [split_parts(data)[0] for data in sketched]
    assert found[0][0].encode() == TOKENS.judge(["a"], 60_000, sketches)[0].to_json()
