"""The plan of an experiment: which share of the traffic each arm is to get, and what counts as a breach."""

from dataclasses import dataclass

Weights = tuple[tuple[str, float], ...]
MAX_ARMS = 63  # a user's arms are bits of 64, one of which stands for every arm that no plan has


def tuned_concentration(tolerance: float) -> float:
    """Return the concentration that tunes the sequential test for a mismatch of `tolerance` at an even split.

    >>> tuned_concentration(0.03), tuned_concentration(0.005)
    (278.0, 10000.0)
    """
    return float(round(0.25 / tolerance**2))


@dataclass(frozen=True)
class SplitPlan:
    """One experiment's plan. Weights are (arm, weight above 0), sorted by arm; they need not add up to 1.

    `epochs` holds the weights of assignment epochs that differ from `weights`, by the epoch's name: a ramp from 95/5 to
    50/50 is one experiment with two epochs.

    - `tolerance`, `alpha`: a window is bad when an arm's share is off by more than the tolerance *and* the sequential
      p is below alpha (spec E1).
    - `min_samples`: with fewer requests in planned arms a window is `low_traffic`.
    - `concentration`: for what size of mismatch the sequential test is tuned (`SequentialSampleRatio`): as
      `tuned_concentration` has it for the tolerance. Smaller mismatches than the tolerance are never bad, so a test
      tuned for them (10,000: half a point) would only be slower.
    - `silent_probability`: an arm is silent when, under the plan, it would stay without traffic this long with less
      than this probability.
    - `max_unplanned_share`, `max_switched_share`: which share of requests in arms that no plan has, and of users in two
      arms, is borne.
    - `users_remembered`: up to so many users of an epoch each one's arms are known; beyond, those of a sample.
    - `epochs_remembered`: of so many epochs the state is kept, those with the newest traffic.
    - `no_data_windows`: after so many windows without traffic nothing more is said, until there is some again.
    """

    experiment: str
    weights: Weights
    epochs: tuple[tuple[str, Weights], ...] = ()
    tolerance: float = 0.03
    alpha: float = 0.01
    min_samples: int = 100
    concentration: float = 278.0
    silent_probability: float = 1e-6
    max_unplanned_share: float = 0.0
    max_switched_share: float = 0.0
    users_remembered: int = 50_000
    epochs_remembered: int = 8
    no_data_windows: int = 60

    def weights_of(self, epoch: str) -> Weights:
        """Return the weights that hold in `epoch`.

        >>> ramp = SplitPlan("ramp", (("a", 95.0), ("b", 5.0)), epochs=(("2", (("a", 1.0), ("b", 1.0))),))
        >>> ramp.weights_of("1"), ramp.weights_of("2")
        ((('a', 95.0), ('b', 5.0)), (('a', 1.0), ('b', 1.0)))
        """
        return dict(self.epochs).get(epoch, self.weights)

    def shares_of(self, epoch: str) -> dict[str, float]:
        """Return the planned share of each arm in `epoch`, in the order of arms.

        >>> SplitPlan("even", (("a", 3.0), ("b", 1.0))).shares_of("")
        {'a': 0.75, 'b': 0.25}
        """
        weights = self.weights_of(epoch)
        total = sum(weight for _, weight in weights)
        return {arm: weight / total for arm, weight in weights}
