"""Repetition rate of a response: the share of its n-grams that were there before.

    repetition_rate = 1 - distinct n-grams / n-grams        (n = 4)

From 0 (nothing said twice) towards 1 (a loop). A word is a run of letters and digits, a Chinese or Japanese character,
or a single other sign, so that languages without spaces and emoji count alike.

Source: Welleck et al., "Neural text generation with unlikelihood training", ICLR 2020 (seq-rep-n, n = 4); spec M5, E2.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_scorers.scorer import Request, Score, unscored
from schemas.judge_report import JudgeReport
from schemas.status import Status

NAME = "repetition_rate"
# CJK ideographs with their extensions, kana; then runs of word characters that are none of these; then any other sign.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]"
)


def words(text: str) -> list[str]:
    """Return the words of `text`, in lower case. Linear in its length.

    >>> words("Again, again: 再说 2x")
    ['again', ',', 'again', ':', '再', '说', '2x']
    """
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class Repetition:
    """The scorer. `n` words make an n-gram; a text with fewer has no score."""

    n: int = 4
    name: str = NAME
    version: str = "1"
    model_digest: None = None
    judge: JudgeReport | None = None

    def score(self, batch: Sequence[Request]) -> list[list[Score]]:
        """Return one score a request. O(length) a request, some 0.3 s for 1 MB.

        >>> Repetition(n=1).score([Request("t", response="a b a a")])[0][0].value
        0.5
        """
        return [[self._score(request.response)] for request in batch]

    def _score(self, response: str | None) -> Score:
        if not response or not response.strip():
            return unscored(NAME, Status.NO_DATA, "no response")
        found = words(response)
        n_grams = len(found) - self.n + 1
        if n_grams < 1:
            return unscored(NAME, Status.INSUFFICIENT_DATA, f"fewer than {self.n} words")
        distinct = len(set(zip(*(found[start:] for start in range(self.n)), strict=False)))
        return Score(NAME, 1.0 - distinct / n_grams, evidence={"n": self.n, "n_grams": n_grams})
