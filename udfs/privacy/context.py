"""Words before a number that say what it is, in several languages: they make a number of weak form personal data."""

import re
from dataclasses import dataclass

from udfs.privacy.folded import Folded
from udfs.privacy.linear_pattern import LinearPattern

CONTEXT_CHARACTERS = 32  # how far before the number the word may stand


def words(*texts: str) -> "Words":
    """Return `texts` (lower case) to be looked for; Latin words are whole words.

    >>> words("ssn", "身份证").are_in(b"my ssn is"), words("tel").are_in(b"hotel")
    (True, False)
    """
    any_of = (f"(?:^|[^a-z]){re.escape(text)}(?:[^a-z]|$)" if text.isascii() else re.escape(text) for text in texts)
    return Words(LinearPattern("|".join(any_of).encode()))


@dataclass(frozen=True, slots=True)
class Words:
    """Words that say what a number after them is. Their pattern reads UTF-8."""

    pattern: LinearPattern

    def are_in(self, text: bytes) -> bool:
        """Whether one of them is in `text`, which is UTF-8 in lower case."""
        return self.pattern.is_in(text)


def follows(text: Folded, start: int, said: Words) -> bool:
    """Whether one of the words stands close before byte `start`, in the same line."""
    before = text.before(start, CONTEXT_CHARACTERS).rpartition("\n")[2]
    return said.are_in(before.encode("utf-8", "surrogatepass"))
