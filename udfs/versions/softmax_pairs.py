"""Two versions of a model on the same inputs: for each input, how far apart their softmax outputs are.

    js_bits      Jensen-Shannon divergence of both outputs, 0 (equal) to 1 (no label in common)
    same_label   whether both give the same label; the first of several highest ones is the label
    kl_nats      relative entropy of the previous version's output to the current one's, sum of p log(p / q)

The previous version is the reference, as in `udfs.statistics.divergence.kl_divergence`: the sum is weighted by what the
previous version believed, so it grows where the current one has dropped it.

Every figure is finite. A probability of 0 is what rounding left of a small one, so in log(p / q) both are taken for at
least `SMALLEST_PROBABILITY`, 2**-23, the rounding of a float32 softmax: kl_nats is at most 15.95. Where all
probabilities are above it nothing is changed; otherwise, with k labels, kl_nats is within k 2**-23 of what it would be
were all that is below it equal to it. Figures are within 1e-13 of exact arithmetic on the float64 softmax.

Sources: spec D6; Kullback & Leibler, "On information and sufficiency", Ann. Math. Stat. 22, 1951; Lin, "Divergence
measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37(1), 1991.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST_PROBABILITY = 2.0**-23
SUM_TOLERANCE = 0.01
"""How far from 1 the probabilities of an input may add up: bfloat16 rounds each by up to 0.4 %."""

_ELEMENTS_AT_A_TIME = 1 << 17  # 1 MiB of float64 an array: a few of them stay in the processor's cache
_LOG_OF_ZERO = -746.0  # below the logarithm of every float64, and finite, so that 0 times it is 0

Floats = NDArray[np.float64]
_Softmax = Callable[[Floats], tuple[Floats, Floats, NDArray[np.bool_]]]
"""From rows to (probabilities, their logarithms, which rows are usable); the others hold anything finite."""


@dataclass(frozen=True, eq=False)
class PairScores:
    """The scores of the inputs that both versions answered usably, in their order.

    `js_bits` and `kl_nats` are float64, `same_label` is bool, all of shape (n,). `usable` is bool of shape
    (n + n_invalid,) and says which inputs they belong to.
    """

    js_bits: Floats
    same_label: NDArray[np.bool_]
    kl_nats: Floats
    usable: NDArray[np.bool_]

    @property
    def n_invalid(self) -> int:
        """How many inputs had an output that is no distribution in either version."""
        return int(self.usable.size - np.count_nonzero(self.usable))


def scores_of_logits(previous: NDArray[Any], current: NDArray[Any]) -> PairScores:
    """Return the scores of two arrays of logits of shape (n, k), k labels; float16 to float64.

    A logit of minus infinity is a label that was ruled out, with probability 0. A row with NaN, with plus infinity, or
    of minus infinities only, is invalid: counted, and without effect on the others. Raises ValueError, naming the
    argument, where the shapes are no (n, k), differ, or k is 0. O(n k) time, 1 MiB of memory an intermediate array.

    >>> scores = scores_of_logits(np.array([[2.0, 0.0], [0.0, np.nan]]), np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> scores.js_bits.round(14).tolist(), scores.same_label.tolist(), scores.kl_nats.tolist(), scores.n_invalid
    ([0.0], [True], [0.0], 1)
    """
    return _scores(previous, current, _of_logits)


def scores_of_probabilities(previous: NDArray[Any], current: NDArray[Any]) -> PairScores:
    """Return the scores of two arrays of probabilities of shape (n, k); float16 to float64.

    Rows are renormalised. A row with NaN, an infinity or a negative entry, or whose sum is off 1 by more than
    `SUM_TOLERANCE`, is invalid: where only the highest probabilities are known, give the rest as one more label.
    Otherwise as `scores_of_logits`.

    >>> scores = scores_of_probabilities(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    >>> scores.js_bits.tolist(), scores.same_label.tolist(), scores.kl_nats.round(9).tolist()
    ([1.0], [False], [15.942385153])
    """
    return _scores(previous, current, _of_probabilities)


def _scores(previous: NDArray[Any], current: NDArray[Any], softmax: _Softmax) -> PairScores:
    n, k = _shape(previous, current)
    js_bits, kl_nats = np.empty(n), np.empty(n)
    same_label, usable = np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.bool_)
    step = max(1, _ELEMENTS_AT_A_TIME // k)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        before, after = previous[rows].astype(np.float64), current[rows].astype(np.float64)
        same_label[rows] = before.argmax(axis=1) == after.argmax(axis=1)
        p, log_p, p_usable = softmax(before)
        q, log_q, q_usable = softmax(after)
        usable[rows] = p_usable & q_usable
        js_bits[rows] = _js_bits(p, log_p, q, log_q)
        kl_nats[rows] = _kl_nats(p, log_p, log_q)
    return PairScores(js_bits[usable], same_label[usable], kl_nats[usable], usable)


def _js_bits(p: Floats, log_p: Floats, q: Floats, log_q: Floats) -> Floats:
    log_middle = _log((p + q) * 0.5)
    nats = 0.5 * (np.vecdot(p, log_p - log_middle) + np.vecdot(q, log_q - log_middle))
    return np.asarray(np.clip(nats / math.log(2.0), 0.0, 1.0))


def _kl_nats(p: Floats, log_p: Floats, log_q: Floats) -> Floats:
    least = math.log(SMALLEST_PROBABILITY)
    return np.asarray(np.maximum(np.vecdot(p, np.maximum(log_p, least) - np.maximum(log_q, least)), 0.0))


def _of_logits(logits: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    highest = logits.max(axis=1, keepdims=True)  # NaN where a row has one
    usable = np.isfinite(highest[:, 0])
    logits[~usable], highest[~usable] = 0.0, 0.0
    with np.errstate(over="ignore"):  # a difference beyond float64 is minus infinity: probability 0
        logs = logits - highest
    shares = np.exp(logs)
    total = shares.sum(axis=1, keepdims=True)
    return shares / total, np.maximum(logs - np.log(total), _LOG_OF_ZERO), usable


def _of_probabilities(rows: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    with np.errstate(over="ignore", invalid="ignore"):  # such rows are unusable, and said to be
        total = rows.sum(axis=1, keepdims=True)
        usable = (rows.min(axis=1) >= 0.0) & (np.abs(total[:, 0] - 1.0) <= SUM_TOLERANCE)  # false for NaN
    rows[~usable], total[~usable] = 0.0, 1.0
    shares = rows / total
    return shares, _log(shares), usable


def _log(shares: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(shares), _LOG_OF_ZERO)


def _shape(previous: NDArray[Any], current: NDArray[Any]) -> tuple[int, int]:
    for name, array in (("previous", previous), ("current", current)):
        if array.ndim != 2 or array.shape[1] == 0 or array.dtype.kind not in "iuf":
            raise ValueError(f"{name} must be numbers of shape (n, k), not {array.dtype} of shape {array.shape}")
    if previous.shape != current.shape:
        raise ValueError(f"current must have the shape of previous: {current.shape} is not {previous.shape}")
    return previous.shape[0], previous.shape[1]
