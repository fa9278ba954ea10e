"""Personal data: precision and recall of each kind, bytes a second of one core, P99 of a 32 kB prompt, and a fuzz run.

    python -m tests.bench.bench_privacy [--presidio]

Throughput is CPU time over made-up prompts as `slacktide replay --text` sends them (a value in one of five), over the
corpus (a value in every sentence, the densest there is), and over what only looks like personal data. The peer is what
would be written first: one alternation of Python's `re` without checks, kinds of digit or full width; and, where it is
installed, Presidio's pattern recognisers. The fuzz run feeds 32 kB texts made to provoke back-tracking.
"""

import random
import re
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from infra.replay.request_block import RequestBlock
from infra.replay.texts import add_texts
from tests.bench.report import Row, at_least, at_most, print_table
from tests.privacy.corpus import negatives, positives, scores
from udfs.privacy.find import find
from udfs.privacy.mask import Masker, derived_key

PROMPT_BYTES, PROMPTS, FUZZ_TEXTS = 32_000, 300, 300
MEGABYTE = 1e6
_PEER = re.compile(
    r"[\w.+-]+@[\w-]+\.[\w.-]+|\+?\d[\d ()-]{7,}\d|\b(?:\d[ -]?){13,19}\b|[A-Z]{2}\d{2}[A-Z0-9 ]{11,30}"
    r"|\d{17}[\dXx]|\d{3}-\d{2}-\d{4}|(?:\d{1,3}\.){3}\d{1,3}|(?:AKIA|ghp_|sk-|xox|eyJ)[\w.-]{16,}"
)
_UNITS = (
    *(
        "1 ",
        "11 ",
        "111 ",
        "1111 ",
        "4111-",
        "1.",
        "1:",
        "a@",
        "a.",
        "a@a.",
        "+1 ",
        "(1) ",
        "0 1",
        "x=",
        "password=",
        "::",
    ),
    *(
        "eyJa.",
        "ab:",
        "a1",
        "A1 ",
        "-----BEGIN PRIVATE KEY-----",
        "http://a:",
        "00",
        "06 12 ",
        "1@1.",
        "é",
        "密码",
        "1１",
    ),
    *(
        "\u200b1",
        "\u0301",
        "<EMAIL:",
        "sk-",
        "SG.aaaaaaaaaaaaaaaaaaaa.",
        "0-",
        "99999 ",
        "tel 1",
        "tel:1234567 ",
        "DE00 ",
    ),
    *("\\n1", "\\\\", "\\u0031", "%31", "&#49;", "tel1 ", "\\n13812345678"),
)
_ALPHABETS = ("0123456789 -.()+", "abc@.-_ ", "0123456789abcdefABCDEF:-. ", "AZ09 ", "好1a@. ", "=:pasword1 ")


def prompts(count: int, seed: int) -> list[str]:
    """Return prompts and responses as a replay sends them."""
    tokens = np.random.default_rng(seed).integers(10, 600, count)
    block = RequestBlock(tokens, tokens, {"input_tokens": tokens, "output_tokens": tokens})
    add_texts(block, random.Random(seed), personal_share=0.2)
    return [*block.fields["prompt"].tolist(), *block.fields["response"].tolist()]


def fuzz_texts(seed: int) -> list[str]:
    """Return texts of 32,000 characters: repeated fragments, and random draws of a few characters."""
    rng = random.Random(seed)
    units = [*_UNITS, *("".join(rng.choices(_UNITS, k=rng.randrange(2, 5))) for _ in range(FUZZ_TEXTS - len(_UNITS)))]
    texts = [(unit * PROMPT_BYTES)[:PROMPT_BYTES] for unit in units]
    return texts + ["".join(rng.choices(alphabet, k=PROMPT_BYTES)) for alphabet in _ALPHABETS for _ in range(10)]


def megabytes_a_second(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return how much text one core takes in, the best of three passes of CPU time."""
    size = sum(len(text.encode()) for text in texts)
    best = min(_seconds(work, texts) for _ in range(3))
    return size / best / MEGABYTE


def _seconds(work: Callable[[str], object], texts: Sequence[str]) -> float:
    begin = time.process_time()
    for text in texts:
        work(text)
    return time.process_time() - begin


def milliseconds(work: Callable[[str], object], texts: Sequence[str]) -> list[float]:
    """Return what each text takes, ms of CPU time: a busy machine isn't the text's fault."""
    return [_seconds(work, [text]) * 1e3 for text in texts]


def print_scores() -> bool:
    """Print precision and recall of each kind; whether each is at least 0.98."""
    found = scores(positives(3_000, seed=1), negatives(6_000, seed=2))
    print(f"{'kind':<12} {'planted':>8} {'recall':>8} {'precision':>10}")
    for kind, score in found.items():
        if score.planted:
            print(f"{kind:<12} {score.planted:>8,} {score.recall:>8.4f} {score.precision:>10.4f}")
    return all(min(score.recall, score.precision) >= 0.98 for score in found.values())


def presidio() -> Callable[[str], object] | None:
    """Return Presidio's pattern recognisers as one function, None where it isn't installed."""
    try:
        from presidio_analyzer import predefined_recognizers as known
    except ImportError:
        return None
    names = (
        "EmailRecognizer",
        "PhoneRecognizer",
        "CreditCardRecognizer",
        "IbanRecognizer",
        "IpRecognizer",
        "UsSsnRecognizer",
    )
    recognisers = [getattr(known, name)() for name in names]
    return lambda text: [each.analyze(text, each.supported_entities, None) for each in recognisers]


def main() -> bool:
    """Print the tables; whether every target is reached."""
    good = print_scores()
    masker = Masker(derived_key("a key for the benchmark"))
    usual = prompts(1_500, seed=3)
    dense = [case.text for case in positives(400, seed=4)]
    alike = [text for _, text in negatives(2_000, seed=5)]
    rng = random.Random(6)
    long = [" ".join(rng.choices(usual, k=60))[:PROMPT_BYTES] for _ in range(PROMPTS)]
    fuzz = fuzz_texts(seed=7)
    masker.mask(usual[0] + dense[0])

    def both(texts: Sequence[str]) -> tuple[float, float]:
        return megabytes_a_second(masker.mask, texts), megabytes_a_second(_PEER.findall, texts)

    rate, peer = both(usual)
    p99 = float(np.quantile(milliseconds(masker.mask, long), 0.99))
    worst = max(milliseconds(masker.mask, fuzz))
    rows = [
        Row("mask, prompts of a replay", "MB/s", rate, peer, None, rate, *at_least(rate, 10)),
        Row("find alone, the same", "MB/s", megabytes_a_second(find, usual), peer),
        Row("mask, a value in every sentence", "MB/s", *both(dense)),
        Row("mask, look-alikes only", "MB/s", *both(alike)),
        Row("P99 of 32 kB prompts", "ms", p99, None, 150, p99 / 150, *at_most(p99 / 150, 0.5)),
        Row("slowest of the fuzz texts, 32 kB", "ms", worst, None, 150, worst / 150, *at_most(worst / 150, 1)),
    ]
    if "--presidio" in sys.argv and (recognise := presidio()) is not None:
        rows.append(Row("Presidio, six recognisers", "MB/s", rate, megabytes_a_second(recognise, usual[:200])))
    return print_table("Personal data (the peer: one alternation of Python's re, no checks)", rows) and good


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
