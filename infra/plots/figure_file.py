"""Writes a figure to a file, in the form that the file's name says."""

import re
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from infra.errors import StackError
from schemas.ids import content_digest

FORMS = (".png", ".svg", ".pdf")
DOTS_PER_INCH = 150
MAX_NAME_CHARACTERS = 120


def checked_figure_path(path: Path) -> Path:
    """Return `path` where a figure can be written under that name. Raises StackError saying what to change.

    >>> checked_figure_path(Path("drift.svg")).name
    'drift.svg'
    """
    if path.suffix.lower() not in FORMS:
        raise StackError(f"{path} names no form of a figure", f"Let it end in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    if not path.parent.is_dir():
        raise StackError(f"there is no folder {path.parent}", "Make it, or give another file to --out")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write `figure`; the same figure gives the same bytes. Raises StackError where the file can't be written."""
    when = "CreationDate" if path.suffix.lower() == ".pdf" else "Date"
    metadata = {} if path.suffix.lower() == ".png" else {when: None}
    try:
        with mpl.rc_context({"svg.hashsalt": "slacktide", "svg.fonttype": "none"}):
            figure.savefig(checked_figure_path(path), dpi=DOTS_PER_INCH, metadata=metadata)
    except OSError as error:
        raise StackError(f"{path} can't be written ({error.strerror})", "Give another file to --out") from None


def default_path(kind: str, name: str) -> Path:
    """Return the file for a picture of `name` in the working folder: one of its own, however long the name is.

    >>> default_path("slo", "availability/model=meta llama").name
    'slo-availability-model=meta-llama.png'
    >>> len({default_path("drift", "x" * 120 + end).name for end in "ab"})
    2
    """
    plain = re.sub(r"[^A-Za-z0-9.=_-]+", "-", name)
    if len(plain) > MAX_NAME_CHARACTERS:
        plain = f"{plain[: MAX_NAME_CHARACTERS - 9]}-{content_digest(name.encode()).removeprefix('sha256:')[:8]}"
    return Path(f"{kind}-{plain}.png")
