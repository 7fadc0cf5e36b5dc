"""The terminal that tables are printed to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_table", "table", "terminal"]

_LONG_LINE = 1000


def terminal() -> Console:
    """Standard output. Into a file or a pipe lines may be long; a real terminal has its width."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _LONG_LINE)


def print_table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints what :func:`table` makes."""
    terminal().print(table(headings, rows))


def table(headings: Sequence[str], rows: Iterable[Iterable[object]]) -> Table:
    """A table without a frame. A cell is a rich ``Text``, or anything else as its text; None is empty."""
    from rich.table import Table
    from rich.text import Text

    made = Table(show_edge=False, pad_edge=False)
    for heading in headings:
        made.add_column(heading, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text("" if cell is None else str(cell)) for cell in row))
    return made
