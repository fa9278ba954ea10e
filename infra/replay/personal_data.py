"""Made-up personal data, seeded: values of the right form and check digit that belong to no one on purpose.

For trying masking out: `slacktide replay --text` plants them, and the tests' corpus is made of them. By chance a value
may be someone's; domains are those that RFC 2606 keeps for examples.
"""

import random
import string
from collections.abc import Callable
from datetime import date, timedelta

from stdnum import iban, luhn, verhoeff
from stdnum.br import cpf
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.iso7064 import mod_11_10
from stdnum.it import codicefiscale

from udfs.privacy.kinds import Kind
from udfs.privacy.national_id_china import PROVINCES, check_character

_ALPHANUMERIC = string.ascii_letters + string.digits
_GIVEN = ("jane", "wei", "maria", "li.na", "omar", "kenji", "sofia", "zhang", "pierre", "ana-lucia", "j.doe", "user_77")
_DOMAINS = ("example.com", "mail.example.org", "example.net", "corp.example", "dept.example.co.uk")
_IBAN_BODIES = {"DE": 18, "NL": 0, "ES": 0, "FR": 0, "AT": 16, "CH": 17, "PL": 0}


def _digits(rng: random.Random, count: int) -> str:
    return "".join(rng.choices(string.digits, k=count))


def _born(rng: random.Random) -> date:
    return date(1940, 1, 1) + timedelta(days=rng.randrange(25_000))


def email(rng: random.Random) -> str:
    """An address at a domain for examples."""
    return f"{rng.choice(_GIVEN)}{rng.randrange(10_000)}@{rng.choice(_DOMAINS)}"


def phone(rng: random.Random) -> str:
    """A phone number as people of some country write it."""
    forms: tuple[Callable[[], str], ...] = (
        lambda: f"1{rng.choice('3456789')}{_digits(rng, 9)}",
        lambda: f"+86 1{rng.choice('356789')}{_digits(rng, 1)} {_digits(rng, 4)} {_digits(rng, 4)}",
        lambda: f"1{rng.choice('356789')}{_digits(rng, 1)}-{_digits(rng, 4)}-{_digits(rng, 4)}",
        lambda: f"010-{rng.choice('5678')}{_digits(rng, 7)}",
        lambda: f"({rng.randrange(201, 990)}) {rng.randrange(200, 1000)}-{_digits(rng, 4)}",
        lambda: f"{rng.randrange(201, 990)}-{rng.randrange(200, 1000)}-{_digits(rng, 4)}",
        lambda: f"+1 {rng.randrange(201, 990)} {rng.randrange(200, 1000)} {_digits(rng, 4)}",
        lambda: f"+44 7{_digits(rng, 3)} {_digits(rng, 6)}",
        lambda: f"+49 30 {rng.randrange(1, 10)}{_digits(rng, 6)}",
        lambda: f"06 {' '.join(_digits(rng, 2) for _ in range(4))}",
        lambda: f"090-{_digits(rng, 4)}-{_digits(rng, 4)}",
    )
    return rng.choice(forms)()


def card(rng: random.Random) -> str:
    """A card's number with its check digit, in groups or not."""
    issuer, length = rng.choice((("4", 16), ("5" + rng.choice("12345"), 16), ("37", 15), ("62", 19), ("6011", 16)))
    body = issuer + _digits(rng, length - 1 - len(issuer))
    number = body + luhn.calc_check_digit(body)
    if length == 16 and rng.random() < 0.6:
        return rng.choice(" -").join(number[at : at + 4] for at in range(0, 16, 4))
    return f"{number[:4]} {number[4:10]} {number[10:]}" if length == 15 and rng.random() < 0.5 else number


def bank_account(rng: random.Random) -> str:
    """An IBAN of a country whose account numbers have no check of their own, in groups or not."""
    country, length = rng.choice((("DE", 18), ("AT", 16), ("CH", 17), ("DK", 14), ("GB", 18)))
    body = (
        ("".join(rng.choices(string.ascii_uppercase, k=4)) + _digits(rng, 14))
        if country == "GB"
        else _digits(rng, length)
    )
    number = country + iban.calc_check_digits(country + "00" + body) + body
    return " ".join(number[at : at + 4] for at in range(0, len(number), 4)) if rng.random() < 0.5 else number


def chinese_id(rng: random.Random) -> str:
    """China's resident identity number."""
    body = f"{rng.choice(sorted(PROVINCES))}{_digits(rng, 4)}{_born(rng):%Y%m%d}{_digits(rng, 3)}"
    return body + check_character(body)


def us_ssn(rng: random.Random) -> str:
    """A social security number; never of the areas that are not given out."""
    area = rng.choice([*range(1, 666), *range(667, 900)])
    return f"{area:03d}-{rng.randrange(1, 100):02d}-{rng.randrange(1, 10_000):04d}"


def uk_nino(rng: random.Random) -> str:
    """A national insurance number."""
    pairs = " ".join(_digits(rng, 2) for _ in range(3))
    number = f"{rng.choice(('AB', 'CE', 'HJ', 'PR', 'SL'))} {pairs} {rng.choice('ABCD')}"
    return number if rng.random() < 0.5 else number.replace(" ", "")


def german_tax_id(rng: random.Random) -> str:
    """A Steuer-ID, in its printed groups: of the first ten digits one is there twice and one is missing."""
    kept = rng.sample(string.digits, 9)
    while True:
        body = [*kept, rng.choice(kept)]
        rng.shuffle(body)
        number = "".join(body)
        number += mod_11_10.calc_check_digit(number)
        if idnr.is_valid(number):
            return f"{number[:2]} {number[2:5]} {number[5:8]} {number[8:]}"


def french_nir(rng: random.Random) -> str:
    """A numéro de sécurité sociale with its key."""
    body = f"{rng.choice('12')}{_born(rng):%y%m}{rng.randrange(21, 96):02d}{rng.randrange(1, 990):03d}{_digits(rng, 3)}"
    number = f"{body}{97 - int(body) % 97:02d}"
    return (
        number
        if rng.random() < 0.5
        else f"{number[0]} {number[1:3]} {number[3:5]} {number[5:7]} {number[7:10]} {number[10:13]} {number[13:]}"
    )


def spanish_id(rng: random.Random) -> str:
    """A DNI or a NIE."""
    if rng.random() < 0.5:
        body = _digits(rng, 8)
        return str(body + dni.calc_check_digit(body))
    body = rng.choice("XYZ") + _digits(rng, 7)
    return str(body + nie.calc_check_digit(body))


def italian_id(rng: random.Random) -> str:
    """A codice fiscale."""
    consonants, born = "BCDFGLMNPRSTVZ", _born(rng)
    body = "".join(rng.choices(consonants, k=6)) + f"{born:%y}" + "ABCDEHLMPRST"[born.month - 1]
    body += f"{born.day + rng.choice((0, 40)):02d}" + rng.choice("ABDFGHL") + f"{rng.randrange(1, 1000):03d}"
    return str(body + codicefiscale.calc_check_digit(body))


def brazilian_cpf(rng: random.Random) -> str:
    """A CPF as printed."""
    digits = [rng.randrange(10) for _ in range(9)]
    for first in (10, 11):
        total = sum(digit * weight for digit, weight in zip(digits, range(first, 1, -1), strict=True))
        digits.append(-total % 11 % 10)
    return str(cpf.format("".join(map(str, digits))))


def indian_aadhaar(rng: random.Random) -> str:
    """An Aadhaar number in its groups."""
    body = rng.choice("23456789") + _digits(rng, 10)
    number = body + verhoeff.calc_check_digit(body)
    return f"{number[:4]} {number[4:8]} {number[8:]}"


def ip_address(rng: random.Random) -> str:
    """An IPv4 or IPv6 address."""
    if rng.random() < 0.6:
        return (
            f"{rng.choice((10, 172, 192, 203, 86))}.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(1, 255)}"
        )
    if rng.random() < 0.5:
        return f"2001:db8:{rng.randrange(1, 65536):x}::{rng.randrange(1, 65536):x}:{rng.randrange(10, 65536):x}"
    return ":".join(f"{rng.randrange(4096, 65536):x}" for _ in range(8))


def token(rng: random.Random) -> str:
    """A key or token of a known form."""

    def some(count: int) -> str:
        return "".join(rng.choices(_ALPHANUMERIC, k=count))

    forms = (
        lambda: "AKIA" + "".join(rng.choices(string.ascii_uppercase + string.digits, k=16)),
        lambda: "ghp_" + some(36),
        lambda: "sk-proj-" + some(48),
        lambda: "sk-ant-api03-" + some(60),
        lambda: "AIza" + some(35),
        lambda: "xoxb-" + _digits(rng, 12) + "-" + some(24),
        lambda: "hf_" + "".join(rng.choices(string.ascii_letters, k=34)),
        lambda: f"eyJ{some(33)}.eyJ{some(60)}.{some(43)}",
        lambda: "sk_live_" + some(24),
        lambda: "LTAI" + some(20),
    )
    return rng.choice(forms)()


def password(rng: random.Random) -> str:
    """What someone may use for a password."""
    return (
        "".join(rng.choices(_ALPHANUMERIC, k=9))
        + rng.choice("!#%&*")
        + _digits(rng, 2)
        + rng.choice(string.ascii_letters)
    )


# What each kind is made of; national ids of each country alike often.
MAKERS: dict[Kind, tuple[Callable[[random.Random], str], ...]] = {
    Kind.EMAIL: (email,),
    Kind.PHONE: (phone,),
    Kind.CARD: (card,),
    Kind.IBAN: (bank_account,),
    Kind.NATIONAL_ID: (
        *(chinese_id, us_ssn, uk_nino, german_tax_id, french_nir, spanish_id, italian_id, brazilian_cpf),
        indian_aadhaar,
    ),
    Kind.IP_ADDRESS: (ip_address,),
    Kind.TOKEN: (token,),
}


def value_of(kind: Kind, rng: random.Random) -> str:
    """Return a made-up value of one of the kinds of MAKERS."""
    return rng.choice(MAKERS[kind])(rng)
