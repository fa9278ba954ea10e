"""Prints a table whole: no column is cut, for whoever pipes it into another program too."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def print_whole(table: Table) -> None:
    """Print `table`; where the terminal is too narrow, it wraps the lines."""
    console = Console(highlight=False)
    width = Measurement.get(console, console.options.update(max_width=100_000), table).maximum
    Console(width=max(width, console.width), highlight=False).print(table, crop=False)
