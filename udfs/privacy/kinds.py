"""The kinds of personal data that are found, by rank: of two findings of one text and length, the kind that stands
first counts.

Secrets come first (they do the most harm), then what a check digit vouches for, then what only its form shows, and
names, which only a model can tell, last.
"""

from enum import StrEnum


class Kind(StrEnum):
    """What a finding is; its value is written into the mask."""

    PRIVATE_KEY = "PRIVATE_KEY"  # a PEM block
    TOKEN = "TOKEN"  # keys and tokens of a known form: cloud keys, GitHub, OpenAI, JWT, bearer...
    SECRET = "SECRET"  # what follows "password=", "api_key:", or stands as user:password in a URL
    IBAN = "IBAN"
    NATIONAL_ID = "NATIONAL_ID"
    CARD = "CARD"
    EMAIL = "EMAIL"
    IP_ADDRESS = "IP_ADDRESS"
    PHONE = "PHONE"
    NAME = "NAME"


RANK = {kind: rank for rank, kind in enumerate(Kind)}
SECRETS = frozenset({Kind.PRIVATE_KEY, Kind.TOKEN, Kind.SECRET})
