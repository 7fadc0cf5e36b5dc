"""The check of every TABLE_MAP against the schema that the history says is in force.

Without metadata the log tells types, their lengths and nullability; with ``binlog_row_metadata`` MINIMAL also signs and
charsets, with FULL names, key and labels. Whatever it tells must fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.collations import bytes_per_character, canonical_charset, collation
from connectors.readers.binlog.events.hidden_columns import hidden_columns
from connectors.readers.binlog.events.table_maps import COMPRESSED, OLD_TEMPORAL, ColumnCode
from historian.schema.snapshots import BYTE_TYPES, GEOMETRIES, INTEGER_TYPES, Column, ColumnType, Snapshot
from historian.schema.system_versioning import with_hidden_columns

__all__ = ["fits", "logged_type", "mismatch"]

_C = ColumnCode
_Logged = tuple[int, int]
"""Type number and metadata."""


def _always(code: int, metadata: int = 0) -> Callable[[ColumnType, str], _Logged]:
    return lambda _kind, _flavor: (code, metadata)


def _fraction(code: int) -> Callable[[ColumnType, str], _Logged]:
    return lambda kind, _flavor: (code, kind.fraction)


def _fixed_text(size: int) -> _Logged:
    # Lengths from 256 on keep their upper two bits, inverted, in the type's byte.
    return _C.STRING, (_C.STRING ^ (size & 0x300) >> 4) << 8 | size & 0xFF


def _bytes(kind: ColumnType) -> int:
    length = 1 if kind.length is None else kind.length
    return length * bytes_per_character(kind.charset or "binary")


def _bit(kind: ColumnType, _flavor: str) -> _Logged:
    bits = kind.length or 1
    return _C.BIT, bits // 8 << 8 | bits % 8


def _decimal(kind: ColumnType, _flavor: str) -> _Logged:
    return _C.NEWDECIMAL, (10 if kind.precision is None else kind.precision) << 8 | (kind.scale or 0)


def _set(kind: ColumnType, _flavor: str) -> _Logged:
    size = (min(len(kind.labels), 64) + 7) // 8
    return _C.SET, _C.SET << 8 | (size if size <= 4 else 8)


_LOGGED: dict[str, Callable[[ColumnType, str], _Logged]] = {
    "tinyint": _always(_C.TINY),
    "smallint": _always(_C.SHORT),
    "mediumint": _always(_C.INT24),
    "int": _always(_C.LONG),
    "bigint": _always(_C.LONGLONG),
    "float": _always(_C.FLOAT, 4),
    "double": _always(_C.DOUBLE, 8),
    "decimal": _decimal,
    "bit": _bit,
    "year": _always(_C.YEAR),
    "date": _always(_C.DATE),
    "time": _fraction(_C.TIME2),
    "datetime": _fraction(_C.DATETIME2),
    "timestamp": _fraction(_C.TIMESTAMP2),
    "char": lambda kind, _flavor: _fixed_text(_bytes(kind)),
    "binary": lambda kind, _flavor: _fixed_text(_bytes(kind)),
    "varchar": lambda kind, _flavor: (_C.VARCHAR, _bytes(kind)),
    "varbinary": lambda kind, _flavor: (_C.VARCHAR, _bytes(kind)),
    "enum": lambda kind, _flavor: (_C.ENUM, _C.ENUM << 8 | (1 if len(kind.labels) < 256 else 2)),
    "set": _set,
    **{
        f"{size}{name}": _always(_C.BLOB, width)
        for width, size in enumerate(("tiny", "", "medium", "long"), 1)
        for name in ("text", "blob")
    },
    # MariaDB keeps JSON as LONGTEXT.
    "json": lambda _kind, flavor: (_C.BLOB if flavor == "mariadb" else _C.JSON, 4),
    "vector": lambda kind, flavor: (_C.VARCHAR, 4 * (kind.length or 0)) if flavor == "mariadb" else (_C.VECTOR, 4),
    "uuid": _always(*_fixed_text(16)),
    "inet6": _always(*_fixed_text(16)),
    "inet4": _always(*_fixed_text(4)),
    **dict.fromkeys((*GEOMETRIES, "geometrycollection"), _always(_C.GEOMETRY, 4)),
}

_UNSIGNED_MATTERS = frozenset((*INTEGER_TYPES, "decimal", "float", "double"))

_NAMES = {number: name for name, number in vars(ColumnCode).items() if name.isupper()}


def logged_type(kind: ColumnType, flavor: str) -> tuple[int, int] | None:
    """Type number and metadata by which a TABLE_MAP describes a column of that type; None for a type unknown here."""
    make = _LOGGED.get(kind.name)
    return None if make is None else make(kind, flavor)


def fits(column: Column, mapped: MappedColumn, flavor: str) -> bool:
    """Whether a TABLE_MAP's column can have the type of *column*, as far as it tells."""
    return not any(_differences(column.type, mapped, flavor))


def _plain(mapped: MappedColumn, kind: ColumnType) -> _Logged:
    """Type and metadata that the column would have if its values stood in the log as they usually do.

    How a column is stored is no part of its schema: no statement needs to tell when that changes.
    """
    if mapped.type in OLD_TEMPORAL:
        return OLD_TEMPORAL[mapped.type], kind.fraction
    if mapped.type == _C.VARCHAR_COMPRESSED:
        return _C.VARCHAR, mapped.metadata - 1  # the byte in front of the data counts
    return COMPRESSED.get(mapped.type, mapped.type), mapped.metadata


def _differences(kind: ColumnType, mapped: MappedColumn, flavor: str) -> Iterator[bool]:
    yield _plain(mapped, kind) != logged_type(kind, flavor)
    if mapped.unsigned is not None and kind.name in _UNSIGNED_MATTERS:
        yield mapped.unsigned != kind.unsigned
    if mapped.charset is not None and (kind.charset is not None or kind.name in BYTE_TYPES):
        yield _charset(mapped.charset, flavor) != canonical_charset(kind.charset or "binary")
    if mapped.labels is not None:
        yield mapped.labels != kind.labels
    if mapped.dimension is not None:
        yield mapped.dimension != kind.length
    if mapped.geometry is not None:
        yield GEOMETRIES[mapped.geometry] != _SHAPE_SYNONYMS.get(kind.name, kind.name)


_SHAPE_SYNONYMS = {"geometrycollection": "geomcollection"}


def mismatch(snapshot: Snapshot, columns: tuple[MappedColumn, ...], flavor: str) -> str | None:
    """Both sides, column by column, where a TABLE_MAP does not fit *snapshot*; None where it does."""
    snapshot = with_hidden_columns(snapshot)
    columns = columns[: len(columns) - hidden_columns(snapshot, columns, flavor)]
    key = _key(snapshot, columns)
    pairs = [
        _Pair(
            snapshot.columns[i] if i < len(snapshot.columns) else None, columns[i] if i < len(columns) else None, flavor
        )
        for i in range(max(len(snapshot.columns), len(columns)))
    ]
    if key is None and all(pair.fits for pair in pairs):
        return None
    counts = f"{len(snapshot.columns)} columns in the history, {len(columns)} in the log"
    lines = [f"{snapshot.name} does not fit its rows: {counts}"]
    lines += [f"  {'  ' if pair.fits else '! '}{number}. {pair}" for number, pair in enumerate(pairs, 1)]
    if key is not None:
        lines.append(f"  ! {key}")
    return "\n".join(lines)


class _Pair:
    """One column on both sides."""

    def __init__(self, recorded: Column | None, mapped: MappedColumn | None, flavor: str) -> None:
        self._recorded, self._mapped, self._flavor = recorded, mapped, flavor
        self.fits = recorded is not None and mapped is not None and self._is_same(recorded, mapped)

    def _is_same(self, recorded: Column, mapped: MappedColumn) -> bool:
        return (
            fits(recorded, mapped, self._flavor)
            and recorded.nullable == mapped.nullable
            and mapped.name in (None, recorded.name)
            and mapped.visible in (None, not recorded.invisible)
        )

    def __str__(self) -> str:
        left = "no column" if self._recorded is None else _recorded_text(self._recorded)
        right = "no column" if self._mapped is None else self._mapped_text(self._mapped)
        return f"{left} | {right}"

    def _mapped_text(self, mapped: MappedColumn) -> str:
        words = [
            mapped.name or "",
            _logged_text((mapped.type, mapped.metadata)),
            "unsigned" if mapped.unsigned else "",
            "" if mapped.charset is None else f"charset {_charset(mapped.charset, self._flavor)}",
            "" if mapped.labels is None else str(mapped.labels),
            "" if mapped.dimension is None else f"of {mapped.dimension} numbers",
            "" if mapped.nullable else "NOT NULL",
            "INVISIBLE" if mapped.visible is False else "",
        ]
        if self._recorded is not None:
            expected = logged_type(self._recorded.type, self._flavor)
            if expected != _plain(mapped, self._recorded.type):
                words.append(f"(expected {'no such type' if expected is None else _logged_text(expected)})")
        return " ".join(filter(None, words))


def _logged_text(logged: _Logged) -> str:
    code, metadata = logged
    name = _NAMES.get(code, f"type {code}")
    return f"{name} {metadata:#x}" if metadata else name


def _recorded_text(column: Column) -> str:
    words = [
        column.name,
        str(column.type),
        f"charset {column.type.charset}" if column.type.charset else "",
        "" if column.nullable else "NOT NULL",
        "INVISIBLE" if column.invisible else "",
    ]
    return " ".join(filter(None, words))


def _charset(number: int, flavor: str) -> str:
    return collation(number, flavor).charset


def _key(snapshot: Snapshot, columns: tuple[MappedColumn, ...]) -> str | None:
    """What is wrong with the primary key; None where nothing is, or where the log does not tell."""
    if not columns or columns[0].name is None or len(columns) != len(snapshot.columns):
        return None
    recorded = frozenset(snapshot.primary_key)
    logged = frozenset(own.id for own, mapped in zip(snapshot.columns, columns, strict=True) if mapped.primary_key)
    if recorded == logged or (not recorded and logged in _stand_ins(snapshot)):
        return None
    return f"primary key: {_named(snapshot, recorded)} in the history, {_named(snapshot, logged)} in the log"


def _stand_ins(snapshot: Snapshot) -> set[frozenset[int]]:
    """Unique keys of which MySQL may log one as the primary key, where there is none: of columns that are never NULL."""
    nullable = {column.id for column in snapshot.columns if column.nullable}
    return {frozenset(key.columns) for key in snapshot.unique_keys if nullable.isdisjoint(key.columns)}


def _named(snapshot: Snapshot, ids: frozenset[int]) -> str:
    return "(" + ", ".join(column.name for column in snapshot.columns if column.id in ids) + ")"
