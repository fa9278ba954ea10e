"""Texts made fit for a model: what it can read of any string, and how much of a long one it did read.

Any Python string may come: empty, of a megabyte, binary-looking, of many scripts, with emoji or lone surrogates. A text
longer than the model takes is read from its beginning; only as much of it is split into tokens as the model can take,
so a megabyte costs no more than a page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_CHARACTERS_PER_TOKEN = 16  # first guess at how many characters are enough; doubled until they are


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the first tokens of a text are, at most as many as were asked for, special ones not counted.

    `text` is the beginning of the text, cleaned, that holds at least these tokens; `ends` is where in it each of them
    ends. `unknown` says which of them the model has no word for. `truncated`: the text has further tokens.
    """

    text: str
    ends: tuple[int, ...]
    unknown: tuple[bool, ...]
    n_characters: int
    truncated: bool

    @property
    def n_tokens(self) -> int:
        """How many tokens there are."""
        return len(self.ends)

    @property
    def characters_read(self) -> int:
        """How many characters of the text the tokens stand for, from its beginning."""
        return self.ends[-1] if self.truncated and self.ends else self.n_characters

    @property
    def is_readable(self) -> bool:
        """Whether the model knows at least one of the tokens: of nothing but unknown ones all texts look alike."""
        return not all(self.unknown)

    def first(self, limit: int) -> "Tokens":
        """The first `limit` of these tokens, and of the text what they stand for.

        >>> Tokens("a few words", (1, 5, 11), (False, False, False), 11, truncated=False).first(2).text
        'a few'
        """
        if limit >= self.n_tokens:
            return self
        ends = self.ends[:limit]
        return Tokens(self.text[: ends[-1] if ends else 0], ends, self.unknown[:limit], self.n_characters, True)

    def truncation(self, prefix: str = "") -> dict[str, int]:
        """What a score says about a truncated text; nothing about a whole one."""
        if not self.truncated:
            return {}
        return {f"{prefix}characters_read": self.characters_read, f"{prefix}characters": self.n_characters}


def clean(text: str) -> str:
    """Return `text` with what UTF-8 can't carry (lone surrogates) replaced by question marks.

    >>> clean("a\\ud800b")
    'a?b'
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def tokenize(tokenizer: Any, texts: Sequence[str], limit: int) -> list[Tokens]:
    """Return the first `limit` tokens of each text, by a fast tokenizer of transformers.

    O(min(length, some limit * 16 characters)) a text, unless it is mostly white space.
    """
    found: dict[int, Tokens] = {}
    cleaned = [clean(text) for text in texts]
    waiting = list(range(len(texts)))
    characters = (limit + 1) * _CHARACTERS_PER_TOKEN
    while waiting:
        parts = [cleaned[i][:characters] for i in waiting]
        encoded = tokenizer(parts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        still = []
        rows = zip(waiting, parts, encoded["input_ids"], encoded["offset_mapping"], strict=True)
        for i, part, ids, offsets in rows:
            # One more than the limit: the last one before a cut may be half a word.
            if len(ids) > limit + 1 or len(part) == len(cleaned[i]):
                ends = tuple(end for _, end in offsets[:limit])
                unknown = tuple(token == tokenizer.unk_token_id for token in ids[:limit])
                found[i] = Tokens(part, ends, unknown, len(cleaned[i]), len(ids) > limit)
            else:
                still.append(i)
        waiting, characters = still, characters * 4
    return [found[i] for i in range(len(texts))]
