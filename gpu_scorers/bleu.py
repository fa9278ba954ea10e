"""BLEU-4 of a response against its golden text, from 0 to 1, by sacrebleu.

Per request it is sentence BLEU, with sacrebleu's defaults for one: exponential smoothing and effective order. A golden
text with a Chinese character is split by sacrebleu's `zh` tokenizer, any other by `13a`; the score says which. A mean
of sentence scores is no corpus BLEU: compare means with means.

Sources: Papineni et al., "BLEU", ACL 2002; Post, "A call for clarity in reporting BLEU scores", WMT 2018; Chen &
Cherry, "A systematic comparison of smoothing techniques", WMT 2014; spec M5, E2 (drop limit 0.010).
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_scorers.scorer import Request, Score, unscored
from gpu_scorers.texts import clean
from schemas.judge_report import JudgeReport
from schemas.status import Status

NAME = "bleu_4"
_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")


@dataclass(frozen=True)
class Bleu:
    """The scorer. Of a longer text its first `max_characters` are compared, and the score says so; ours, for time."""

    max_characters: int = 65_536
    name: str = NAME
    version: str = "1"
    model_digest: None = None
    judge: JudgeReport | None = None

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request that has a golden text.

        >>> Bleu().score([Request("t", response="the cat sat on the mat", golden="the cat sat on the mat")])[0][0].value
        1.0
        """
        return [[self._score(request)] for request in batch]

    def _score(self, request: Request) -> Score:
        for side, text in (("response", request.response), ("golden text", request.golden)):
            if not text or not text.strip():
                return unscored(NAME, Status.NO_DATA, f"no {side}")
        response, golden = str(request.response), str(request.golden)
        tokenizer = "zh" if _CHINESE.search(golden) else "13a"
        longest = self.max_characters
        figure = _metric(tokenizer).sentence_score(clean(response[:longest]), [clean(golden[:longest])]).score
        return Score(
            NAME,
            round(min(1.0, figure / 100.0), 12),  # sacrebleu gives 100.00000000000004 for equal texts
            truncated=len(response) > longest or len(golden) > longest,
            evidence={"tokenizer": tokenizer, **_cut("response", response, longest), **_cut("golden", golden, longest)},
        )


def _cut(side: str, text: str, longest: int) -> dict[str, int]:
    return {f"{side}_characters_read": longest, f"{side}_characters": len(text)} if len(text) > longest else {}


@functools.cache
def _metric(tokenizer: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=True, smooth_method="exp")
