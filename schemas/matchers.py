"""Matchers of labels, as Alertmanager has them: `name = value`, `!=`, `=~` and `!~`.

A label that is missing counts as empty. A regular expression must match the whole value and is RE2's, as in
Alertmanager (pyarrow brings RE2): linear in the value, whatever the expression.

Source: prometheus/alertmanager pkg/labels/matcher.go (`NewMatcher`, `Matches`) and pkg/labels/parse.go.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

MAX_PATTERN_CHARACTERS = 1000
_TEXT = re.compile(r"\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL)
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


class MatcherError(ValueError):
    """What is wrong with a matcher."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One matcher: is the value of label `name` equal to (or, for a regular expression, matched by) `value`?

    Raises MatcherError where the name or the expression is not valid.
    """

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", self.name):
            raise MatcherError("the name is not that of a label: letters, digits and _")
        if self.is_regex:
            _require_regex(self.name, self.value)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with these labels is meant. O(value); about a microsecond once seen.

        >>> Matcher("model", "llama.*", is_regex=True).matches({"model": "llama-3"})
        True
        >>> Matcher("model", "", is_equal=False).matches({})
        False
        """
        found = labels.get(self.name, "")
        hit = _full_match(self.value, found) if self.is_regex else found == self.value
        return hit is self.is_equal

    def __str__(self) -> str:
        """As it is written.

        >>> str(Matcher("model", "a|b", is_regex=True, is_equal=False))
        'model!~"a|b"'
        """
        sign = ("=~" if self.is_regex else "=") if self.is_equal else ("!~" if self.is_regex else "!=")
        quoted = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.name}{sign}"{quoted}"'

    def to_dict(self) -> dict[str, Any]:
        """As Alertmanager's API has it."""
        return {"name": self.name, "value": self.value, "isRegex": self.is_regex, "isEqual": self.is_equal}


def parse_matcher(text: str) -> Matcher:
    """Read `model=~"llama.*"`; quotes may be left out. Raises MatcherError saying what is wrong.

    >>> parse_matcher("severity != page")
    Matcher(name='severity', value='page', is_regex=False, is_equal=False)
    """
    found = _TEXT.fullmatch(text)
    if not found:
        raise MatcherError(f"{text!r} is no matcher; write name=value, name!=value, name=~regex or name!~regex")
    name, sign, value = found.groups()
    if value.startswith('"') or value.endswith('"'):
        if len(value) < 2 or not re.fullmatch(r'"(?:[^"\\]|\\.)*"', value, re.DOTALL):
            raise MatcherError(f"{text!r} has a quote that does not close")
        value = re.sub(r"\\.", lambda hit: _ESCAPES.get(hit[0], hit[0]), value[1:-1], flags=re.DOTALL)
    return Matcher(name, value, is_regex=sign.endswith("~"), is_equal=not sign.startswith("!"))


def all_match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Whether every one matches.

    >>> all_match([parse_matcher("a=1"), parse_matcher("b!=2")], {"a": "1"})
    True
    """
    return all(matcher.matches(labels) for matcher in matchers)


def _require_regex(name: str, pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise MatcherError(f"the regular expression for {name} has more than {MAX_PATTERN_CHARACTERS} characters")
    try:
        _full_match(pattern, "")
    except (pa.ArrowInvalid, UnicodeEncodeError):
        raise MatcherError(f"the regular expression for {name} is not one of RE2's") from None


@lru_cache(maxsize=65_536)
def _full_match(pattern: str, value: str) -> bool:
    """RE2 through Arrow; 10 microseconds, hence the cache: labels and matchers come again and again."""
    found = pc.match_substring_regex(pa.scalar(value, pa.string()), pattern=f"^(?:{pattern})$")
    return bool(found.as_py())
