"""The terminal that tables are printed to."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from connectors.cli.terminal.plain_text import as_lines, harmless, without_controls

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_table", "table", "terminal"]

_LONG_LINE = 1000
_WIDE_LINE = 120
_GAP = 2
_STATEMENT = "statement"


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
    """Prints what :func:`table` makes. Into a file or a pipe a table that is too wide goes without its wide columns: each of their cells stands below its row."""
    given = [list(row) for row in rows]
    if not sys.stdout.isatty():
        texts = [[_plain(cell) for cell in row] for row in given]
        widths = [max(map(len, column)) for column in zip(headings, *texts, strict=True)]
        if sum(widths) + _GAP * len(widths) > _WIDE_LINE:
            for line in _narrow_lines(headings, texts, widths):
                typer.echo(line)
            return
    terminal().print(table(headings, given))


def _narrow_lines(headings: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """A row, and below it the cells of wide columns, each with its heading. No line is longer than a word in it needs, but for statements.

    These stay in one line: nobody who takes one from there knows which break is a space of a literal's.
    """
    beside, left = [], _WIDE_LINE
    for number, width in enumerate(widths):
        if width + _GAP <= left:
            beside.append(number)
            left -= width + _GAP

    def line(cells: Sequence[str]) -> str:
        return (" " * _GAP).join(cells[number].ljust(widths[number]) for number in beside).rstrip()

    yield line(headings)
    for row in rows:
        yield line(row)
        for number, (heading, cell) in enumerate(zip(headings, row, strict=True)):
            if cell and number not in beside:
                told = f"{heading}: {cell}" if heading else cell
                yield from [f"  {told}"] if heading == _STATEMENT else _wrapped(told)


def _wrapped(text: str) -> list[str]:
    """*text* in lines between its words."""
    return textwrap.wrap(
        text,
        _WIDE_LINE,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(cell: object) -> str:
    """A cell as text in one line."""
    return without_controls(" ".join(("" if cell is None else str(cell)).split()))


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
