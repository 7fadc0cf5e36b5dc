"""Compares rows that were replicated with what the server itself held, value by value.

The recording keeps the server's final rows as text of its own making (see README.md), so nothing here depends on how
the binlog was decoded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FinalColumn", "FinalTable", "Verdict", "compare", "final_tables"]

SHOWN_DIFFERENCES = 5

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalColumn:
    """A column's name and its type as ``information_schema.columns`` calls it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTable:
    """A table as the server held it. ``rows``: one string column a column; ``key`` is empty where there is none."""

    name: str
    columns: tuple[FinalColumn, ...]
    key: tuple[str, ...]
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a comparison found. ``differences``: the first few, in words."""

    table: str
    rows: int
    values: int
    different_rows: int
    differences: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether every row and value is the server's."""
        return self.different_rows == 0

    def __str__(self) -> str:
        head = f"{self.table}: {self.rows:,} rows, {self.values:,} values compared"
        if self.equal:
            return f"{head}, all equal"
        return "\n  ".join((f"{head}, {self.different_rows:,} rows differ", *self.differences))


def final_tables(recording: Path) -> tuple[FinalTable, ...]:
    """The tables that a recording ends with; *recording* is the directory of ``expected.json``."""
    expected = json.loads((recording / "expected.json").read_text(encoding="utf-8"))
    return tuple(
        FinalTable(
            name=table["name"],
            columns=tuple(FinalColumn(name=column["name"], type=column["type"]) for column in table["columns"]),
            key=tuple(table["key"]),
            rows=pq.read_table(recording / "final" / f"{table['name']}.parquet"),
        )
        for table in expected["tables"]
    )


def compare(found: pa.Table, final: FinalTable) -> Verdict:
    """Compares *found* with what the server held: by key, or as bags where the table has none.

    Args:
        found: the replicated rows, with at least the table's columns by name, typed as :mod:`historian.values.arrow_types` says;
            columns beside them (of a mirror's own) are not looked at.
        final: the server's rows.
    """
    names = [column.name for column in final.columns]
    missing = [name for name in names if name not in found.column_names]
    if missing:
        differences = (f"no column {', '.join(missing)}; there are {', '.join(found.column_names)}",)
        count = final.rows.num_rows
        return Verdict(table=final.name, rows=count, values=0, different_rows=max(count, 1), differences=differences)
    held = _rows([_parsed(final.rows.column(c.name), c.type) for c in final.columns])
    came = _rows([_plain(found.column(c.name), c.type) for c in final.columns])
    differing = _by_key(held, came, names, final.key) if final.key else _as_bags(held, came, names)
    return Verdict(
        table=final.name,
        rows=len(held),
        values=len(held) * len(names),
        different_rows=len(differing),
        differences=tuple(differing[:SHOWN_DIFFERENCES]),
    )


def _by_key(held: list[Values], came: list[Values], names: Sequence[str], key: tuple[str, ...]) -> list[str]:
    places = [names.index(name) for name in key]
    wanted = {tuple(row[place] for place in places): row for row in held}
    differing: list[str] = []
    seen: set[Values] = set()
    for row in came:
        at = tuple(row[place] for place in places)
        shown = _shown(key, at)
        expected = wanted.get(at)
        if at in seen:
            differing.append(f"{shown}: there twice")
        elif expected is None:
            differing.append(f"{shown}: the server has no such row")
        elif row != expected:
            pairs = zip(names, expected, row, strict=True)
            said = (f"{name}: server {want!r}, found {got!r}" for name, want, got in pairs if want != got)
            differing.append(f"{shown}: {'; '.join(said)}")
        seen.add(at)
    return [*differing, *(f"{_shown(key, at)}: missing" for at in wanted if at not in seen)]


def _as_bags(held: list[Values], came: list[Values], names: Sequence[str]) -> list[str]:
    wanted, found = Counter(held), Counter(came)
    return [
        f"({_shown(names, row)}): server {wanted[row]} times, found {found[row]} times"
        for row in (wanted - found) + (found - wanted)
    ]


def _shown(names: Sequence[str], values: Values) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True))


def _rows(columns: list[list[Any]]) -> list[Values]:
    return list(zip(*columns, strict=True))


# -- the server's text -------------------------------------------------------------------------------------------------


def _parsed(texts: pa.ChunkedArray, kind: str) -> list[Any]:
    parse = _PARSERS.get(kind, str)
    return [None if text is None else parse(text) for text in texts.to_pylist()]


def _microseconds(text: str) -> int:
    hours, minutes, seconds = text.removeprefix("-").split(":")
    whole = int(hours) * 3600 + int(minutes) * 60
    value_us = whole * 1_000_000 + int(Decimal(seconds) * 1_000_000)
    return -value_us if text.startswith("-") else value_us


def _moment(text: str) -> datetime:
    seconds, _, fraction = text.partition(".")
    return datetime.fromisoformat(seconds).replace(microsecond=int(fraction.ljust(6, "0")))


_PARSERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"), int),
    "decimal": Decimal,
    **dict.fromkeys(("float", "double"), float),
    "date": date.fromisoformat,
    **dict.fromkeys(("datetime", "timestamp"), _moment),
    "time": _microseconds,
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), bytes.fromhex),
}


# -- values of the lake ------------------------------------------------------------------------------------------------


def _plain(values: pa.ChunkedArray, kind: str) -> list[Any]:
    """Arrow values in the forms that :func:`_parsed` gives."""
    listed: list[Any] = values.to_pylist()
    if kind == "bit":
        return [None if v is None else int(v) if isinstance(v, bool) else int.from_bytes(v, "big") for v in listed]
    if kind == "timestamp":
        return [None if v is None else v.astimezone(timezone.utc).replace(tzinfo=None) for v in listed]
    return listed
