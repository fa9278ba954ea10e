"""Plans and windows of experiments for the tests, and the state machine run over many of them."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from schemas.verdicts import Verdict, VerdictKind
from udfs.experiments.arm_sketch import ArmSketch
from udfs.experiments.plan import SplitPlan
from udfs.experiments.state import ExperimentState
from udfs.experiments.step import Experiment, step
from udfs.experiments.window import ArmCount, ExperimentWindow
from udfs.judging.frame import Frame

WINDOW_MS = 30_000
START_MS = 1_700_000_010_000

EVEN = SplitPlan("even", (("a", 1.0), ("b", 1.0)))
CANARY = SplitPlan("canary", (("canary", 5.0), ("stable", 95.0)))


def experiment(plan: SplitPlan) -> Experiment:
    frame = Frame(
        monitor=plan.experiment,
        feature="",
        group_by=("experiment",),
        window_ms=WINDOW_MS,
        slide_ms=WINDOW_MS,
        config_digest="sha256:c",
        reference_digest=None,
        model_card_digest="sha256:m",
        kind=VerdictKind.SPLIT,
    )
    return Experiment(plan, frame)


def window(number: int, counts: Mapping[str, int], epoch: str = "1") -> ExperimentWindow:
    """The `number`-th window, with `counts` by arm and no users."""
    return ExperimentWindow(START_MS + number * WINDOW_MS, {(epoch, arm): ArmCount(n, n) for arm, n in counts.items()})


def of_users(number: int, users: Mapping[tuple[str, str], Sequence[str]], most: int = 50_000) -> ExperimentWindow:
    """The `number`-th window, of requests by the users named, by (epoch, arm)."""
    sketches = [ArmSketch.of("e", epoch, arm, names, most) for (epoch, arm), names in users.items()]
    return ExperimentWindow.of(START_MS + number * WINDOW_MS, sketches)


def run(plan: SplitPlan, windows: Iterable[ExperimentWindow]) -> tuple[ExperimentState, list[Verdict]]:
    state, verdicts, of = ExperimentState(), [], experiment(plan)
    for one in windows:
        state, said = step(state, one, of)
        verdicts += said
    return state, verdicts


def only(finding: str, verdicts: Iterable[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.feature.startswith(finding + "(")]


def drawn(plan: SplitPlan, shares: Sequence[float], n: int, windows: int, seed: int) -> list[ExperimentWindow]:
    """Windows of `n` requests each, split at random by `shares`, in the order of the plan's arms."""
    rng = np.random.default_rng(seed)
    arms = [arm for arm, _ in plan.weights]
    return [
        window(number, dict(zip(arms, map(int, row), strict=True)))
        for number, row in enumerate(rng.multinomial(n, shares, size=windows))
    ]
