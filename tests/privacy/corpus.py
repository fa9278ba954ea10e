"""A corpus of made-up texts with personal data at known places, and of texts that only look like it. Seeded."""

import hashlib
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from infra.replay import personal_data
from infra.replay.personal_data import MAKERS, value_of
from udfs.privacy.detector import Finding
from udfs.privacy.find import find
from udfs.privacy.kinds import Kind

SENTENCES: dict[Kind, tuple[str, ...]] = {
    Kind.EMAIL: (
        "Please write to {} today.",
        "联系邮箱{}，谢谢",
        "<{}>",
        "contact={};cc=none",
        "发到{}就行",
        '{{"user": "{}"}}',
    ),
    Kind.PHONE: (
        "My number is {}, call me.",
        "手机号{}，请尽快联系",
        "电话：{}。",
        "Tel: {}",
        "phone={}&x=1",
        "拨打{}找我",
    ),
    Kind.CARD: ("charge my card {} please", "银行卡号{}被盗刷", "card:{}", "pay with {}.", "卡号：{}，有效期12/27"),
    Kind.IBAN: ("IBAN {} for the refund", "Konto: {}.", "请汇款到{}，谢谢", "transfer to {} tomorrow"),
    Kind.NATIONAL_ID: ("my id is {} thanks", "证件号{}，请核对", "ID: {}", "id number {}.", "号码（{}）"),
    Kind.IP_ADDRESS: ("request from {} was blocked", "来自{}的访问", "client={} status=200", "ping {} failed"),
    Kind.TOKEN: (
        "use {} for the call",
        "密钥是{}，别外传",
        "key: {}",
        'export API_KEY="{}"',
        "curl -H 'x-api-key: {}'",
    ),
}
PASSWORDS = (
    "password: {}",
    "密码是{}，记一下",
    'DB_PASSWORD="{}"',
    "my password is {}",
    "口令：{}",
    "postgres://app:{}@db.internal/x",
)
PLAIN = (
    "Summarise the attached report in three bullet points.",
    "请把下面这段话翻译成英文，并保持语气正式。",
    "Why does the sky look blue at noon and red at dusk?",
    "写一个函数，返回列表中第二大的数。",
    "The meeting moved to 14:30 on 2026-03-01; room 12.",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One text and the (start, end, kind) of all personal data in it."""

    text: str
    truth: tuple[Finding, ...]


def full_width(value: str) -> str:
    """Return ASCII as its full-width forms."""
    return "".join("\u3000" if c == " " else chr(ord(c) + 0xFEE0) if 32 < ord(c) < 127 else c for c in value)


def positives(count: int, seed: int) -> list[Case]:
    """Return `count` texts with one to three values each, of all kinds alike often."""
    rng = random.Random(seed)
    kinds = [*MAKERS, Kind.SECRET]
    return [
        _case(rng, [kinds[(number + more) % len(kinds)] for more in range(1 + number % 3)]) for number in range(count)
    ]


def _case(rng: random.Random, kinds: Sequence[Kind]) -> Case:
    text, truth = "", []
    for kind in kinds:
        text += rng.choice(PLAIN) + rng.choice((" ", "\n"))
        value = personal_data.password(rng) if kind is Kind.SECRET else value_of(kind, rng)
        if kind in (Kind.PHONE, Kind.CARD, Kind.EMAIL) and rng.random() < 0.15:
            value = full_width(value)
        before, after = (
            rng.choice(PASSWORDS if kind is Kind.SECRET else SENTENCES[kind])
            .replace("{{", "{")
            .replace("}}", "}")
            .split("{}")
        )
        start = len(text) + len(before)
        truth.append(Finding(start, start + len(value), kind))
        text += before + value + after + " "
    return Case(text, tuple(truth))


def _digits(rng: random.Random, count: int) -> str:
    return str(rng.randrange(10 ** (count - 1), 10**count))


# What looks like personal data and is none.
NEGATIVES: dict[str, Callable[[random.Random], str]] = {
    "order number": lambda r: (
        f"订单号：{_digits(r, 12)}，请查收" if r.random() < 0.5 else f"order #{_digits(r, 10)} has shipped"
    ),
    "long order number": lambda r: f"order 20{_digits(r, 16)} was paid",
    "timestamp": lambda r: f"ts={1_600_000_000_000 + r.randrange(10**11)} and {1_600_000_000 + r.randrange(10**8)}",
    "nanoseconds": lambda r: f"start {1_600_000_000_000_000_000 + r.randrange(10**17)}",
    "date and time": lambda r: (
        f"at 2026-0{r.randrange(1, 10)}-1{r.randrange(10)}T1{r.randrange(10)}:30:0{r.randrange(10)}Z"
    ),
    "date": lambda r: f"on 0{r.randrange(1, 10)}.1{r.randrange(3)}.2024 17:45 and 2024/0{r.randrange(1, 10)}/28 08:15",
    "version": lambda r: f"upgrade to version 1.{r.randrange(30)}.{r.randrange(30)}.{r.randrange(200)} of the driver",
    "package": lambda r: (
        f"pip install pkg=={r.randrange(9)}.{r.randrange(30)}.{r.randrange(9)} lodash@4.17.{r.randrange(30)}"
    ),
    "uuid": lambda r: f"trace {uuid.UUID(int=r.getrandbits(128), version=4)} ended",
    "sha256": lambda r: f"digest {hashlib.sha256(r.randbytes(8)).hexdigest()}",
    "git hash": lambda r: f"commit {hashlib.sha1(r.randbytes(8)).hexdigest()} by bot",
    "trace id": lambda r: f"trace_id={r.getrandbits(128):032x} span_id={r.getrandbits(64):016x}",
    "amount": lambda r: (
        f"total: {r.randrange(1, 999)},{_digits(r, 3)},{_digits(r, 3)}.{_digits(r, 2)} EUR and "
        f"$1 {_digits(r, 3)} {_digits(r, 3)}"
    ),
    "decimal": lambda r: f"pi is 3.{_digits(r, 15)} and loss 0.{_digits(r, 16)}",
    "time and duration": lambda r: f"took 00:{r.randrange(10, 60)}:{r.randrange(10, 60)}.{_digits(r, 3)}",
    "mac address": lambda r: ":".join(f"{r.randrange(256):02x}" for _ in range(6)),
    "file name": lambda r: f"logo@{r.randrange(2, 4)}x.png and sprite-{r.randrange(100)}@2x.webp",
    "mention": lambda r: f"thanks @user{r.randrange(1000)} and cc @team/ml",
    "code": lambda r: f"std::vector<int> v({r.randrange(100)}); a[{r.randrange(9)}] = b::c{r.randrange(9)}();",
    "token counts": lambda r: (
        f"max_tokens: {r.randrange(100, 9999)}, token count: {r.randrange(100, 99999)}, password: required"
    ),
    "table": lambda r: " ".join(str(r.randrange(100)) for _ in range(12)),
    "isbn": lambda r: f"ISBN 978-3-16-14841{r.randrange(10)}-0",
    "tracking": lambda r: f"tracking SF{_digits(r, 13)} out for delivery",
    "coordinates": lambda r: f"at 52.{_digits(r, 6)}, 13.{_digits(r, 6)}",
    "loopback": lambda r: f"listening on 127.0.0.1:{r.randrange(1024, 9999)} and 0.0.0.0",
    "remote": lambda r: f"git clone git@github.com:acme/repo{r.randrange(99)}.git",
    "prose": lambda r: r.choice(PLAIN),
    "figures": lambda r: (
        f"{_digits(r, 3)}.{_digits(r, 3)} {_digits(r, 4)} e-{r.randrange(2, 9)} and {_digits(r, 3)} 597.8525"
    ),
    "long figures": lambda r: (
        f"{_digits(r, 1)}.{_digits(r, 3)} {_digits(r, 3)} 248 {_digits(r, 4)} e5 and 12 + {_digits(r, 9)}.0"
    ),
    "section": lambda r: f"see section {r.randrange(1, 9)}.{r.randrange(1, 9)}.{r.randrange(1, 9)}.{r.randrange(1, 9)}",
    "zip code": lambda r: f"Boston, MA 02{_digits(r, 3)}-{_digits(r, 4)} USA",
    "citation": lambda r: f"J. Numer. Anal. 1 (19{_digits(r, 2)}) {_digits(r, 3)}-{_digits(r, 3)}.",
    "sum": lambda r: f"{r.randrange(100, 999)} + {r.randrange(100, 999)} = {r.randrange(1000, 1998)}; 12-34+56",
    "tensor": lambda r: (
        f"shape ({r.randrange(1, 9)}, {r.randrange(1, 4096)}, {r.randrange(1, 4096)}) lr=1e-0{r.randrange(9)}"
    ),
}


def negatives(count: int, seed: int) -> list[tuple[str, str]]:
    """Return `count` (sort, text) pairs without personal data, every sort alike often."""
    rng = random.Random(seed)
    sorts = list(NEGATIVES)
    return [(sort := sorts[number % len(sorts)], NEGATIVES[sort](rng)) for number in range(count)]


@dataclass(slots=True)
class Score:
    """What was found of one kind: `missed` is any value not wholly covered, under whichever kind."""

    planted: int = 0
    named: int = 0  # wholly covered and of the right kind
    missed: int = 0
    wrong: int = 0  # found where nothing of the kind is

    @property
    def recall(self) -> float:
        """Share of planted values that are wholly masked, under whichever kind."""
        return 1 - self.missed / self.planted if self.planted else 1.0

    @property
    def precision(self) -> float:
        """Share of findings of this kind that are of a planted value of this kind."""
        return self.named / (self.named + self.wrong) if self.named + self.wrong else 1.0


def scores(cases: Sequence[Case], without: Sequence[tuple[str, str]]) -> dict[Kind, Score]:
    """Run `find` over both parts of a corpus."""
    result = {kind: Score() for kind in [*MAKERS, Kind.SECRET, Kind.PRIVATE_KEY]}
    for case in cases:
        found = find(case.text)
        for true in case.truth:
            covering = [f for f in found if f.start <= true.start and f.end >= true.end]
            score = result[true.kind]
            score.planted += 1
            score.missed += not covering
            score.named += any(f.kind is true.kind for f in covering)
        for f in found:
            if not any(f.kind is true.kind and f.start < true.end and true.start < f.end for true in case.truth):
                result[f.kind].wrong += 1
    for _, text in without:
        for f in find(text):
            result[f.kind].wrong += 1
    return result
