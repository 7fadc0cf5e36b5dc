"""The terminal that tables are printed to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["columns", "terminal"]

_LONG_LINE = 1000


def terminal() -> Console:
    """Standard output. Into a file or a pipe lines may be long; a real terminal has its width."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _LONG_LINE)


def columns(*headings: str) -> Table:
    """An empty table with these headings, without a frame."""
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table
