"""How help is laid out: lines end between words, never within an option or a name that has a hyphen."""

from collections.abc import Iterable

import click

# Looks like a hyphen and has its width, but no line is broken behind it.
_UNBROKEN = "\N{NON-BREAKING HYPHEN}"


class HelpFormatter(click.HelpFormatter):
    """click's formatter, which breaks lines at hyphens too, kept from it.

    >>> formatter = HelpFormatter(width=12)
    >>> formatter.write_text("give --dry-run")
    >>> formatter.getvalue().splitlines()
    ['give', '--dry-run']
    """

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the line of usage."""
        super().write_usage(prog, _held(args), prefix)

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        super().write_text(_held(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write options with what they mean."""
        super().write_dl([(_held(first), _held(second)) for first, second in rows], col_max, col_spacing)

    def write(self, string: str) -> None:
        """Write as it is to be read."""
        super().write(string.replace(_UNBROKEN, "-"))


def _held(text: str) -> str:
    return text.replace("-", _UNBROKEN)
