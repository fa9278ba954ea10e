"""The prompt of `slacktide sql`: line editing, history, completion, statements over several lines."""

import atexit
import contextlib
import readline
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from infra.sql_text import split_statements

PROMPT, MORE = "slacktide> ", "      ...> "
BARE = ("help", "tables", "exit", "quit")
HISTORY_LINES = 1000


def read_statements(history: Path, words: Sequence[str]) -> Iterator[str]:
    """Yield statements as they are typed, without their `;`, until `exit` or the end of input.

    `words` are completed with Tab. The words of BARE need no `;`. Ctrl-C drops what has been typed so far.
    """
    _set_up(history, words)
    text = ""
    while True:
        try:
            text += input(MORE if text else PROMPT) + "\n"
        except KeyboardInterrupt:
            click.echo()
            text = ""
            continue
        except EOFError:
            click.echo()
            return
        if text.strip().rstrip(";").lower() in BARE:
            text = text.strip().rstrip(";") + ";"
        statements, rest = split_statements(text)
        text = rest + "\n" if rest else ""
        for statement in statements:
            if statement.lower() in ("exit", "quit"):
                return
            yield statement


def _set_up(history: Path, words: Sequence[str]) -> None:
    history.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)
    atexit.register(_save, history)

    def complete(start: str, number: int) -> str | None:
        found = [word for word in words if word.startswith(start)]
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")


def _save(history: Path) -> None:
    with contextlib.suppress(OSError):
        readline.write_history_file(history)
