"""The terminal that tables are printed to."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectors.cli.terminal.plain_text import as_lines, harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_table", "table", "terminal"]

_LONG_LINE = 1000


def terminal() -> Console:
    """Standard output. Into a file or a pipe lines may be long; a real terminal has its width.

    What a terminal would obey in texts that are printed is shown as escapes.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Harmless(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else harmless(text), style, control)

    return Harmless(highlight=False, width=None if sys.stdout.isatty() else _LONG_LINE)


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
        # Before they are laid out: an escape takes more room than what it stands for.
        made.add_row(
            *(cell if isinstance(cell, Text) else Text("" if cell is None else as_lines(str(cell))) for cell in row)
        )
    return made
