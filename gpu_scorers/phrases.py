"""The phrases by which a refusal is told: data with their sources, read from YAML and compared in one form.

This file imports no torch, so that a file of phrases can be checked without loading it.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from schemas.ids import content_digest

PHRASES = "refusal_phrases.yaml"  # beside this file, which may lie in a zip
_PLAIN_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u00b4": "'", "`": "'"})
_LONGEST_EXPANSION = 4  # characters that NFKC makes of one, roughly: so much more is normalised than is looked at


@dataclass(frozen=True, slots=True)
class RefusalPhrases:
    """Language -> phrases, normalised; how much of a response is looked at; and the digest of the file."""

    phrases: Mapping[str, tuple[str, ...]]
    within_characters: int
    digest: str

    @classmethod
    def load(cls, path: Path | str | None = None) -> "RefusalPhrases":
        """Read a file of phrases, or ours.

        Raises ValueError naming what is wrong with it, OSError where it can't be read.

        >>> sorted(RefusalPhrases.load().phrases)
        ['en', 'zh']
        """
        data = files("gpu_scorers").joinpath(PHRASES).read_bytes() if path is None else Path(path).read_bytes()
        try:
            body = yaml.safe_load(data)
        except yaml.YAMLError as error:
            raise ValueError(f"it is not YAML: {error}") from error
        return cls(_phrases(body), _within(body), content_digest(data))

    def find(self, response: str) -> tuple[str, str] | None:
        """Return (language, phrase) of the phrase that comes first, or None. O(within_characters * phrases)."""
        head = normalised(response[: self.within_characters * _LONGEST_EXPANSION])[: self.within_characters]
        places = [
            (at, -len(phrase), language, phrase)
            for language, phrases in self.phrases.items()
            for phrase in phrases
            if (at := head.find(phrase)) >= 0
        ]
        return min(places)[2:] if places else None


def normalised(text: str) -> str:
    """Return `text` as phrases are compared: NFKC, lower case, plain quotes, single spaces.

    >>> normalised("I  can\u2019t HELP")
    "i can't help"
    """
    folded = unicodedata.normalize("NFKC", text).translate(_PLAIN_QUOTES).casefold()
    return re.sub(r"\s+", " ", folded).strip()


def _phrases(body: Any) -> dict[str, tuple[str, ...]]:
    lists = body.get("phrases") if isinstance(body, dict) else None
    if not isinstance(lists, dict) or not lists:
        raise ValueError("phrases must name a list of phrases for at least one language")
    for language, phrases in lists.items():
        if not isinstance(phrases, list) or not all(isinstance(p, str) and p.strip() for p in phrases):
            raise ValueError(f"phrases.{language} must be a list of texts")
    return {str(language): tuple(map(normalised, phrases)) for language, phrases in lists.items()}


def _within(body: dict[str, Any]) -> int:
    within = body.get("within_characters")
    if not isinstance(within, int) or isinstance(within, bool) or within < 1:
        raise ValueError(f"within_characters must be a whole number above 0, not {within!r}")
    return within
