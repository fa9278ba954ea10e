"""What the tests of judges share: a frame, and verdicts read back as the JSON that they are."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from udfs.judging.frame import Frame
from udfs.judging.window_judge import WindowJudge

FRAME = Frame("chat", "f", ("model",), 60_000, 30_000, "sha256:c", "sha256:r", "sha256:m")
LIVE_FRAME = replace(FRAME, reference_digest=None)
END_MS = 120_000


def judged(judge: WindowJudge, *columns: Sequence[Any], n_slices: int = 3) -> list[dict[str, Any]]:
    """The verdicts on a window whose values came in several slices."""
    slices = [judge.sketch(*(column[i::n_slices] for column in columns)) for i in range(n_slices)]
    return [orjson.loads(verdict.to_json()) for verdict in judge.judge(["m1"], END_MS, slices)]


def one(judge: WindowJudge, *columns: Sequence[Any], n_slices: int = 3) -> dict[str, Any]:
    """The only verdict."""
    (verdict,) = judged(judge, *columns, n_slices=n_slices)
    return verdict
