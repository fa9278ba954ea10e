"""Words before a number that say what it is, in several languages: they make a number of weak form personal data."""

import re

from udfs.privacy.folded import Folded

CONTEXT_CHARACTERS = 32  # how far before the number the word may stand


def words(*texts: str) -> re.Pattern[str]:
    """Return the pattern of any of `texts` (lower case); Latin words are whole words.

    >>> bool(words("ssn", "身份证").search("my ssn is")), bool(words("tel").search("hotel"))
    (True, False)
    """
    any_of = "|".join(rf"(?<![a-z]){re.escape(text)}(?![a-z])" if text.isascii() else re.escape(text) for text in texts)
    return re.compile(any_of)


def follows(text: Folded, start: int, said: re.Pattern[str]) -> bool:
    """Whether one of the words stands close before byte `start`, in the same line."""
    return said.search(text.before(start, CONTEXT_CHARACTERS).rpartition("\n")[2]) is not None
