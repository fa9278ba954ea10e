"""Two versions of a model on the same input: how far apart their softmax outputs are, a batch at a time on a device.

    js_bits      Jensen-Shannon divergence, 0 (equal) to 1 (no label in common)
    same_label   1 where both give the same label, else 0; the first of several highest ones is the label
    kl_nats      relative entropy of the previous version's output to the current one's, 0 to 15.95

These are the scores of `udfs.versions.softmax_pairs`, which says what they mean and computes them in float64; here they
are float32, within 1e-4 of those (`tests/unit/test_device_scorers.py`), faster, and on a GPU where there is one.

The highest logit is taken off each row in the row's own precision, before anything is narrowed: logits beyond float32
come out right where their differences matter, and a difference beyond it is a probability of 0.

Sources: spec D6, M3; Lin, "Divergence measures based on the Shannon entropy", IEEE Trans. Inf. Theory 37(1), 1991.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gpu_scorers.devices import CPU, Device
from gpu_scorers.scorer import Request, Score, unscored
from schemas.judge_report import JudgeReport
from schemas.status import Status

SMALLEST_PROBABILITY = torch.finfo(torch.float32).eps
"""2**-23: in log(p / q) a probability of 0 is taken for the rounding of a float32 softmax, so no figure is infinite."""

_LOG_SMALLEST = math.log(SMALLEST_PROBABILITY)
_LOG_OF_ZERO = -104.0  # below the logarithm of every float32, and finite, so that 0 times it is 0
_ELEMENTS_AT_A_TIME = {"cpu": 1 << 16, "cuda": 1 << 26}  # a few such arrays stay in a core's cache; 256 MiB on a GPU

SCORES = ("js_bits", "same_label", "kl_nats")
Logits = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class PairFigures:
    """The figures of n inputs: `js_bits` and `kl_nats` float32, `same_label` and `usable` bool, all of shape (n,).

    Where `usable` is false an output was no distribution: NaN, plus infinity, or nothing but minus infinities. The
    figures there are 0 and mean nothing.
    """

    js_bits: NDArray[np.float32]
    same_label: NDArray[np.bool_]
    kl_nats: NDArray[np.float32]
    usable: NDArray[np.bool_]


@torch.inference_mode()
def compare_logits(previous: Logits, current: Logits, device: Device = CPU) -> PairFigures:
    """Return the figures of two arrays of logits of shape (n, k): n inputs, k labels; float16 to float64.

    Raises ValueError where the shapes are no (n, k) with k above 0, or differ. O(n k) time; memory for a part of the
    rows at a time.

    >>> figures = compare_logits(np.array([[2.0, 0.0], [0.0, np.nan]]), np.array([[2.0, 0.0], [0.0, 1.0]]))
    >>> figures.js_bits.round(6).tolist(), figures.same_label.tolist(), figures.usable.tolist()
    ([0.0, 0.0], [True, False], [True, False])
    """
    if previous.ndim != 2 or previous.shape != current.shape or not previous.shape[1]:
        raise ValueError(f"logits must be of one shape (n, k), k above 0, not {previous.shape} and {current.shape}")
    n, k = previous.shape
    kept = np.zeros(n, np.float32), np.zeros(n, np.bool_), np.zeros(n, np.float32), np.zeros(n, np.bool_)
    step = max(1, _ELEMENTS_AT_A_TIME["cuda" if device.is_cuda else "cpu"] // k)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        parts = _figures(*(_on(device, side[rows]) for side in (previous, current)))
        for figures, part in zip(kept, parts, strict=True):
            figures[rows] = part.cpu().numpy()
    return PairFigures(*kept)


def _figures(before: torch.Tensor, after: torch.Tensor) -> tuple[torch.Tensor, ...]:
    p, log_p, p_usable, p_label = _softmax(before)
    q, log_q, q_usable, q_label = _softmax(after)
    log_middle = (p + q).mul_(0.5).log_().clamp_(min=_LOG_OF_ZERO)
    nats = torch.linalg.vecdot(p, log_p - log_middle) + torch.linalg.vecdot(q, log_q - log_middle)
    js_bits = (nats * (0.5 / math.log(2.0))).clamp_(0.0, 1.0)
    log_ratio = log_p.clamp_(min=_LOG_SMALLEST).sub_(log_q.clamp_(min=_LOG_SMALLEST))
    kl_nats = torch.linalg.vecdot(p, log_ratio).clamp_(min=0.0)
    usable = p_usable & q_usable
    zero = torch.zeros((), device=js_bits.device)
    return (
        torch.where(usable, js_bits, zero),
        (p_label == q_label) & usable,
        torch.where(usable, kl_nats, zero),
        usable,
    )


def _softmax(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the probabilities and their logarithms, float32, which rows are usable, and each one's label."""
    highest, label = logits.max(dim=1, keepdim=True)  # NaN where a row has one
    usable = highest.isfinite()
    if not usable.all():
        logits, highest = torch.where(usable, logits, 0.0), torch.where(usable, highest, 0.0)
    logs = (logits - highest).float()  # a difference beyond the range is minus infinity: probability 0
    shares = logs.exp()
    total = shares.sum(dim=1, keepdim=True)
    return shares.div_(total), logs.sub_(total.log_()).clamp_(min=_LOG_OF_ZERO), usable[:, 0], label[:, 0]


def _on(device: Device, rows: Logits) -> torch.Tensor:
    wide = rows if rows.dtype.itemsize > 2 else rows.astype(np.float32)  # half precision has no range to subtract in
    return torch.from_numpy(np.ascontiguousarray(wide)).to(device.name)


@dataclass(frozen=True, eq=False)
class SoftmaxComparison:
    """The scorer: reads `logits` and `previous_logits` of a request."""

    device: Device = CPU
    name: str = "softmax_comparison"
    version: str = "1"
    model_digest: None = None
    judge: JudgeReport | None = None

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return `js_bits`, `same_label` and `kl_nats` of each request; those of one number of labels go together."""
        found: list[list[Score]] = [[] for _ in batch]
        by_labels: defaultdict[int, list[tuple[int, _Pair]]] = defaultdict(list)
        for i, request in enumerate(batch):
            pair = _pair(request)
            if isinstance(pair, _Pair):
                by_labels[pair.current.size].append((i, pair))
            else:
                found[i] = [unscored(name, *pair) for name in SCORES]
        for pairs in by_labels.values():
            previous, current = np.stack([p.previous for _, p in pairs]), np.stack([p.current for _, p in pairs])
            figures = compare_logits(previous, current, self.device)
            for row, (i, _) in enumerate(pairs):
                found[i] = _scores(figures, row)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    previous: NDArray[np.float64]
    current: NDArray[np.float64]


def _pair(request: Request) -> _Pair | tuple[Status, str]:
    """The logits of both versions, or why there are none to compare."""
    if request.logits is None or request.previous_logits is None:
        return Status.NO_DATA, "logits of both versions are needed"
    try:
        pair = _Pair(np.asarray(request.previous_logits, np.float64), np.asarray(request.logits, np.float64))
    except (TypeError, ValueError):
        return Status.INVALID, "logits must be numbers"
    if pair.previous.shape != pair.current.shape or pair.current.ndim != 1 or not pair.current.size:
        return (
            Status.INVALID,
            f"logits of shapes {pair.previous.shape} and {pair.current.shape}: both must be (labels,)",
        )
    return pair


def _scores(figures: PairFigures, row: int) -> list[Score]:
    if not figures.usable[row]:
        reason = "an output with NaN, with plus infinity, or of minus infinities only"
        return [unscored(name, Status.INVALID, reason) for name in SCORES]
    same = bool(figures.same_label[row])
    return [
        Score("js_bits", float(figures.js_bits[row])),
        Score("same_label", float(same), label="same" if same else "different"),
        Score("kl_nats", float(figures.kl_nats[row])),
    ]
