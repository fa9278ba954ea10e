"""From the packets of a slice to the sketches of every judge of its monitor, for the drift job and for a backtest."""

from collections.abc import Iterable, Sequence

from udfs.judging.window_judge import Input, WindowJudge
from udfs.slicing.packets import unpack


def sketches_of(packets: Iterable[bytes], inputs: Sequence[Input], judges: Sequence[WindowJudge]) -> list[bytes]:
    """Return one sketch a judge. `inputs` are what the packets hold; each judge takes its own of them.

    Raises ValueError on packets of another monitor.
    """
    columns = dict(zip(inputs, unpack(packets, inputs), strict=True))
    return [judge.sketch(*(columns[given] for given in judge.inputs)) for judge in judges]
