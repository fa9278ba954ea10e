"""The one error of references."""

from pathlib import Path

FEW = 5


class ReferenceProfileError(ValueError):
    """A reference that can't be built or read: says where, which field, what is wrong and what to do about it."""

    def __init__(self, where: str, field_name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{where}: {field_name}: {problem}. {remedy}")
        self.where, self.field, self.problem, self.remedy = where, field_name, problem, remedy


def missing_reference(path: Path | str, command: str, ending: str) -> ReferenceProfileError:
    """Return the error of a file that is not there: the folder looked in, what else is there, and the way to make one.

    `command` is the subcommand of `slacktide reference` that writes such files, whose names end in `ending`.
    """
    file = Path(path)
    folder = file.parent.resolve()
    there = sorted(other.name for other in folder.glob(f"*{ending}") if other.name.count(".") == ending.count("."))
    named = f", or name one that is there: {', '.join(there[:FEW])}{', ...' if there[FEW:] else ''}" if there else ""
    remedy = f"Build it with `slacktide reference {command} NAME --out {folder}`{named}"
    return ReferenceProfileError(str(path), "file", f"No such file in {folder}", remedy)
