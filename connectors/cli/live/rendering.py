"""A picture of a run as lines of a terminal: what needs a person first, and as much as fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from connectors.cli.terminal.plain_text import one_line
from connectors.cli.terminal.schema_forms import change_text
from connectors.cli.terminal.sizes import bytes_text, copied_text
from connectors.monitoring.picture import CopyPicture, RunPicture, SchemaChange, TablePicture, TableState
from historian.schema.diff import Difference

if TYPE_CHECKING:
    from rich.console import OverflowMethod
    from rich.text import Text

__all__ = ["rendered"]

_STYLES = {
    TableState.STOPPED: "bold red",
    TableState.CANCELLED: "red",
    TableState.COPYING: "cyan",
    TableState.REPAIRING: "magenta",
    TableState.WAITING: "yellow",
    TableState.DEFERRED: "blue",
    TableState.STREAMING: "green",
}
_WORDS = {TableState.CANCELLED: "cancelled"}
_FACT = 9
_MOST_NAME = 40
_LEAST_BAR, _MOST_BAR = 6, 30
_LEAST_TABLES = 3
_MOST_LINES = 2
_LEAST_RATE = 0.05
_DAY_S = 86_400


def rendered(picture: RunPicture, width: int, height: int, *, ascii_only: bool = False) -> list[Text]:
    """Lines of at most *width* cells, at most *height* of them, without anything that a terminal would obey.

    Tables that are not streaming come first, then those with most rows. With *ascii_only* bars need no other characters.
    """
    head = list(_head(picture, width))
    room = max(height - len(head), 0)
    changes = list(_changes(picture))
    # Tables come before schema changes, but a few of these are there from the beginning.
    changes = changes[: max(room - 1 - min(_LEAST_TABLES, len(picture.tables)), 0)]
    changes = changes if len(changes) > 2 else []
    tables = _tables(picture, width, room - len(changes), ascii_only=ascii_only)
    lines = [*head, *tables, *changes][: max(height, 0)]
    for line in lines:
        line.truncate(width, overflow=_overflow(ascii_only=ascii_only))
    return lines


def _head(picture: RunPicture, width: int) -> Iterator[Text]:
    from rich.text import Text

    sinks = ", ".join(picture.sinks) or "nothing"
    title = Text()
    title.append(one_line(picture.connector), style="bold")
    title.append(f"  {picture.stage}  ", style="yellow" if picture.stage == "tries again" else "green")
    title.append(one_line(f"{picture.source} to {sinks}"), style="dim")
    yield title
    yield _fact("position", one_line(f"plan {picture.plan}, {picture.position}" if picture.plan else picture.position))
    waits = f"{bytes_text(picture.lag_bytes)} of log wait" if picture.lag_bytes else "no log waits"
    yield _fact("lag", f"{_duration(picture.lag_s)}, {waits}")
    copied = ""
    if _copies(picture):
        size = f", {bytes_text(picture.copied_bytes_per_s)}/s" if picture.copied_bytes_per_s >= 1 else ""
        copied = f", {picture.copied_rows_per_s:,.0f} rows/s{size} of tables"
    yield _fact("in", f"{bytes_text(picture.log_bytes_per_s)}/s of log{copied}")
    yield _fact("out", f"{picture.rows_per_s:,.0f} rows/s, {picture.rows:,} rows so far")
    told = [("note", text, "yellow") for text in picture.notes]
    for name, text, style in (*told, *(("warning", text, "bold yellow") for text in picture.warnings)):
        for at, part in enumerate(_wrapped(one_line(text), width - _FACT)):
            yield _fact("" if at else name, part, style=style)


def _copies(picture: RunPicture) -> bool:
    return picture.copied_rows_per_s >= 1 or any(table.copy is not None for table in picture.tables)


def _fact(name: str, text: str, *, style: str = "") -> Text:
    from rich.text import Text

    return Text.assemble((f"{name:<{_FACT}}", "dim"), (text, style))


def _tables(picture: RunPicture, width: int, room: int, *, ascii_only: bool) -> list[Text]:
    """Lines of tables below an empty one, and how many did not fit."""
    from rich.text import Text

    tables = sorted(picture.tables, key=lambda table: (table.state, -table.rows, table.name))
    if not tables or room < 2:
        return []
    names = [one_line(table.name) for table in tables[:room]]
    name_cells = min(max(Text(name).cell_len for name in names), _MOST_NAME, width // 3)
    state_cells = max(len(_word(table.state)) for table in tables[:room])
    lines: list[Text] = []
    shown = 0
    for table in tables:
        mine = list(_table(table, picture, (name_cells, state_cells, width), ascii_only=ascii_only))
        is_last = shown + 1 == len(tables)
        left = room - 1 - len(lines) - (0 if is_last else 1)
        if left < 1:
            break
        lines += mine[:left]
        shown += 1
    if shown < len(tables):
        lines.append(Text(_rest(tables[shown:], ascii_only=ascii_only), style="dim"))
    return [Text(), *lines]


def _rest(tables: Sequence[TablePicture], *, ascii_only: bool) -> str:
    streaming = sum(table.state is TableState.STREAMING for table in tables)
    parts = [
        f"{count} more {what}"
        for count, what in ((len(tables) - streaming, "not streaming"), (streaming, "streaming"))
        if count
    ]
    return f"{'...' if ascii_only else '…'} and {', '.join(parts)}"


def _table(
    table: TablePicture, picture: RunPicture, cells: tuple[int, int, int], *, ascii_only: bool
) -> Iterator[Text]:
    """The table's line; of one that is stopped also why."""
    from rich.text import Text

    name_cells, state_cells, width = cells
    name = Text(one_line(table.name))
    name.truncate(name_cells, overflow=_overflow(ascii_only=ascii_only), pad=True)
    room = max(width - name_cells - state_cells - 4, 0)
    what = _what(table, picture, room, ascii_only=ascii_only)
    yield Text.assemble(name, "  ", (f"{_word(table.state):<{state_cells}}", _STYLES[table.state]), "  ", what)
    if table.reason:
        for part in _wrapped(one_line(table.reason), width - 2):
            yield Text.assemble("  ", (part, "red"))


def _overflow(*, ascii_only: bool) -> OverflowMethod:
    return "crop" if ascii_only else "ellipsis"


def _word(state: TableState) -> str:
    return _WORDS.get(state, state.name.lower())


def _what(table: TablePicture, picture: RunPicture, room: int, *, ascii_only: bool) -> str:
    rows = [f"{table.rows:,} rows", *([f"{_rate(table.rows_per_s)}/s"] if table.rows_per_s >= _LEAST_RATE else [])]
    if table.state in (TableState.STOPPED, TableState.STREAMING):
        return ", ".join(rows)
    if table.copy is not None:
        return _progress(table.copy, room, ascii_only=ascii_only)
    left_s = max(0.0, (table.due_us - picture.taken_us) / 1e6)
    return ", ".join((f"mirror follows in {_duration(left_s)}", *rows))


def _progress(copy: CopyPicture, room: int, *, ascii_only: bool) -> str:
    """As much as *room* cells hold, most wanted first: the part, how long it takes yet, a bar, how many rows, how fast, the same of bytes."""
    rate = f"{copy.rows_per_s:,} rows/s" if copy.rows_per_s else ""
    speed = f"{bytes_text(copy.bytes_per_s)}/s" if copy.bytes_per_s else ""
    size = ", ".join(filter(None, (copied_text(copy.size_bytes or None, copy.estimated_bytes), speed)))
    if not copy.estimate:
        texts = [f"{copy.rows:,} rows"]
        for text in filter(None, (rate, size)):
            texts += [text] if len(", ".join((*texts, text))) <= room else []
        return ", ".join(texts)
    part = min(copy.rows / copy.estimate, 1.0)
    left = "" if copy.left_s is None else f"{_duration(copy.left_s)} left"
    rows = f"{copy.rows:,} of about {copy.estimate:,} rows"
    percent = f"{part:4.0%}"
    texts = [percent]
    used = len(percent)
    for text in (left, rows, rate, size):
        if text and used + len(text) + 2 + _LEAST_BAR + 1 <= room:
            texts.append(text)
            used += len(text) + 2
    # In the order in which people read them.
    shown = [text for text in (rows, rate, size, left) if text in texts]
    bar_cells = min(room - used - 1, _MOST_BAR)
    bar = [_bar(part, bar_cells, ascii_only=ascii_only)] if bar_cells >= _LEAST_BAR else []
    return "  ".join((" ".join((percent, *bar)), *([", ".join(shown)] if shown else [])))


def _bar(part: float, cells: int, *, ascii_only: bool) -> str:
    done, open_ = "#." if ascii_only else "█░"
    filled = int(part * cells)
    return done * filled + open_ * (cells - filled)


def _changes(picture: RunPicture) -> Iterator[Text]:
    from rich.text import Text

    if picture.changes:
        yield Text()
        yield Text("last schema changes", style="dim")
    for change in picture.changes:
        did = "; ".join(one_line(_did(each)) for each in change.changes) or "no column changed"
        tables = ", ".join(map(one_line, change.tables))
        yield Text.assemble((_time(change, picture), "dim"), f" {tables}: {did}  ", (one_line(change.statement), "dim"))


def _did(change: Difference) -> str:
    if change.change == "renamed":
        return f"renamed {change.before} to {change.after}"
    return change_text(change)


def _wrapped(text: str, cells: int) -> Iterator[str]:
    """The text in lines of at most so many cells, cut between words; what is left of a long one stands in the last."""
    from rich.cells import cell_len

    words, line, lines = text.split(" "), "", 1
    for at, word in enumerate(words):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) > cells and line:
            if lines == _MOST_LINES:
                yield " ".join((line, *words[at:]))
                return
            yield line
            line, lines = word, lines + 1
        else:
            line = longer
    yield line


def _time(change: SchemaChange, picture: RunPicture) -> str:
    """When it was, UTC; with the day where it is not just now."""
    at = datetime.fromtimestamp(change.time_us / 1e6, timezone.utc)
    is_new = picture.taken_us - change.time_us < _DAY_S * 1e6
    return f"{at:%H:%M:%SZ}" if is_new else f"{at:%Y-%m-%d %H:%M:%SZ}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _rate(count: float) -> str:
    """Slow tables are told apart too."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.1f}"
