"""The state machine of one experiment: a window in, its verdicts out.

What it guarantees, whatever comes in:

- The same windows give the same verdicts and the same state, byte for byte; the order of requests, arms, epochs and
  users within a window doesn't matter.
- A window that is not newer than the newest one changes nothing and says nothing.
- Within an assignment epoch p never rises; another epoch has a p of its own, which starts at 1. An epoch that comes
  back goes on from its own p. Under the plan, P(p of an epoch is ever below alpha) <= alpha, however often it is read.
- A window without traffic is `no_data`, also one that was skipped, up to the plan's `no_data_windows` in a row. What is
  not judged is never a pass.

While traffic moves from one epoch to the next, both count for themselves; the verdict speaks of the one with more
requests in the window, and names the others.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from schemas.verdicts import Verdict, VerdictKind
from udfs.experiments.findings import silent_arm_verdict, sticky_verdict, unknown_arm_verdict
from udfs.experiments.plan import SplitPlan
from udfs.experiments.split import split_verdict
from udfs.experiments.state import EpochState, ExperimentState
from udfs.experiments.sticky import UserArms
from udfs.experiments.window import ArmCount, ExperimentWindow
from udfs.judging.frame import Frame
from udfs.statistics.sample_ratio import SequentialSampleRatio


@dataclass(frozen=True)
class Experiment:
    """A plan and the frame of its verdicts, whose `feature` is filled in here."""

    plan: SplitPlan
    frame: Frame

    def of(self, finding: str, kind: VerdictKind) -> Frame:
        """Return the frame of one kind of verdict: `finding(EXPERIMENT)`."""
        return replace(self.frame, feature=f"{finding}({self.plan.experiment})", kind=kind)


def step(
    state: ExperimentState, window: ExperimentWindow, experiment: Experiment
) -> tuple[ExperimentState, list[Verdict]]:
    """Return the state after `window` and the verdicts on it, after those on the windows skipped before it.

    O(arms + users remembered), and a millisecond or so for the tests.
    """
    last = state.last_window_end_ms
    if last is not None and window.end_ms <= last:
        return state, []
    verdicts: list[Verdict] = []
    if last is not None:
        slide_ms = experiment.frame.slide_ms
        still_said = max(0, experiment.plan.no_data_windows - state.no_data_windows)
        for end_ms in range(last + slide_ms, min(window.end_ms, last + slide_ms * (still_said + 1)), slide_ms):
            state, said = _advance(state, ExperimentWindow(end_ms), experiment)
            verdicts += said
    state, said = _advance(state, window, experiment)
    return state, verdicts + said


def _advance(
    state: ExperimentState, window: ExperimentWindow, experiment: Experiment
) -> tuple[ExperimentState, list[Verdict]]:
    """Move on by one window, whatever lies between it and the last one."""
    plan = experiment.plan
    if window.n == 0:
        after = replace(
            state,
            last_window_end_ms=window.end_ms,
            no_data_windows=min(state.no_data_windows + 1, plan.no_data_windows),
        )
        if state.no_data_windows >= plan.no_data_windows:
            return after, []
        # Of which epoch nothing came, nobody can say.
        silence = _verdicts(experiment, window, {}, EpochState.begin(plan, ""), 0)
        return after, [replace(verdict, evidence={}) for verdict in silence]
    counts = _by_epoch(window)
    moved = {name: _epoch_after(state.epoch(plan, name), window, plan, of) for name, of in counts.items()}
    leading = max(moved, key=lambda name: (moved[name].n_last_window, name))
    # Users that the sample let go since can't be told from new ones: both are asked of the users still known.
    before = state.epoch(plan, leading).users.cut(moved[leading].users.below)
    n_new = moved[leading].users.n_switched - before.n_switched
    split, *others = _verdicts(experiment, window, counts[leading], moved[leading], n_new)
    after = _with_epochs(state, window, moved, plan)
    beside = {
        "other_epochs": [{"epoch": name, "n": n} for name, n in _most(moved, leading)[: plan.epochs_remembered]],
        "n_epochs_forgotten": after.n_epochs_forgotten,
    }
    return after, [replace(split, evidence=split.evidence | beside), *others]


def _most(moved: Mapping[str, EpochState], but: str) -> list[tuple[str, int]]:
    """Return the window's other epochs and their requests, those with most first."""
    others = [(name, epoch.n_last_window) for name, epoch in moved.items() if name != but]
    return sorted(others, key=lambda other: (-other[1], other[0]))


def _by_epoch(window: ExperimentWindow) -> dict[str, dict[str, ArmCount]]:
    found: defaultdict[str, dict[str, ArmCount]] = defaultdict(dict)
    for (epoch, arm), count in window.counts.items():
        found[epoch][arm] = count
    return found


def _epoch_after(
    state: EpochState, window: ExperimentWindow, plan: SplitPlan, counts: Mapping[str, ArmCount]
) -> EpochState:
    """Return the epoch's state after a window in which it had `counts`."""
    arms = [arm for arm, _ in plan.weights_of(state.epoch)]
    planned = {arm: counts[arm].n if arm in counts else 0 for arm in arms}
    test = SequentialSampleRatio.from_bytes(state.test)
    test.update(planned)
    n = sum(planned.values())
    since = tuple(0 if planned[arm] else before + n for arm, before in zip(arms, state.n_since, strict=True))
    users = {arm: ids for (epoch, arm), ids in window.users.items() if epoch == state.epoch}
    seen = UserArms.of_window(users, arms, window.users_below)
    return replace(
        state,
        last_window_end_ms=window.end_ms,
        n_last_window=sum(count.n for count in counts.values()),
        test=test.to_bytes(),
        n_since=since,
        users=state.users.merge(seen, plan.users_remembered),
    )


def _with_epochs(
    state: ExperimentState, window: ExperimentWindow, moved: Mapping[str, EpochState], plan: SplitPlan
) -> ExperimentState:
    """Keep the epochs with the newest traffic, and of one window's those with most: a stray one pushes none out."""
    epochs = {epoch.epoch: epoch for epoch in state.epochs} | dict(moved)
    newest_first = sorted(epochs.values(), key=lambda e: (-e.last_window_end_ms, -e.n_last_window, e.epoch))
    kept = sorted(newest_first[: plan.epochs_remembered], key=lambda epoch: epoch.epoch)
    forgotten = len(epochs) - len(kept)
    return ExperimentState(window.end_ms, 0, tuple(kept), state.n_epochs_forgotten + forgotten)


def _verdicts(
    experiment: Experiment,
    window: ExperimentWindow,
    counts: Mapping[str, ArmCount],
    epoch: EpochState,
    n_new_switched: int,
) -> list[Verdict]:
    """Return all that is said of one window: split, unknown arms, silent arms, users in two arms."""
    plan, end_ms, name = experiment.plan, window.end_ms, epoch.epoch
    by_arm = Counter({arm: count.n for arm, count in counts.items()})
    arms = [arm for arm, _ in plan.weights_of(name)]
    return [
        split_verdict(
            experiment.of("traffic_split", VerdictKind.SPLIT),
            plan,
            end_ms,
            epoch=name,
            counts=by_arm,
            test=SequentialSampleRatio.from_bytes(epoch.test),
        ),
        unknown_arm_verdict(experiment.of("unknown_arm", VerdictKind.FINDING), plan, end_ms, name, by_arm),
        silent_arm_verdict(
            experiment.of("silent_arm", VerdictKind.FINDING),
            plan,
            end_ms,
            epoch=name,
            n=sum(by_arm[arm] for arm in arms),
            n_since=dict(zip(arms, epoch.n_since, strict=True)),
        ),
        sticky_verdict(
            experiment.of("sticky_assignment", VerdictKind.SPLIT),
            plan,
            end_ms,
            epoch=name,
            users=epoch.users,
            n_new=n_new_switched,
            n_without_user=sum(count.n_without_user for count in counts.values()),
        ),
    ]
