"""Changelog rows for people: tables for a terminal."""

from __future__ import annotations

import json

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from connectors.tail.json_lines import json_texts
from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT, UNSEEN, marked
from historian.changelog.operations import Op
from historian.schema.snapshots import Snapshot

__all__ = ["rich_table"]

_SIGNS = [op.sign for op in Op]
_STYLES = ("green", "red", "yellow", "cyan")
_WIDEST_CELL = 40
_ESCAPED = {code: repr(chr(code))[1:-1] for code in (*range(0x20), *range(0x7F, 0xA0))}


def rich_table(chunk: Chunk, snapshot: Snapshot) -> Group:
    """The rows of *chunk*, read with ``as_text=True``, as a table for a terminal; long values are cut."""
    title = Text(str(snapshot.name).translate(_ESCAPED), style="bold")
    title.append(f"  schema version {chunk.version}  {chunk.first_position}")
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("op")
    for column in snapshot.columns:
        table.add_column(Text(column.name.translate(_ESCAPED)), overflow="ellipsis", no_wrap=True)
    columns = [_cells(json_texts(chunk, at, column)) for at, column in enumerate(snapshot.columns)]
    for name, mark in ((ABSENT, "absent"), (UNSEEN, "changed")):
        for index, at in np.argwhere(marked(chunk.rows, name, len(columns))).tolist():
            columns[at][index] = Text(mark, style="dim italic")
    for op, *row in zip(chunk.rows.column("op").to_pylist(), *columns, strict=True):
        table.add_row(_SIGNS[op], *row, style=_STYLES[op])
    return Group(title, table, "")


def _cells(texts: list[str]) -> list[Text]:
    """JSON texts as cells: strings as they are but for control characters, and NULL told apart from them."""
    return [Text("NULL", style="dim") if text == "null" else Text(_cut(_plain(text))) for text in texts]


def _plain(text: str) -> str:
    return str(json.loads(text)).translate(_ESCAPED) if text.startswith('"') else text


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_CELL else f"{text[: _WIDEST_CELL - 1]}…"
