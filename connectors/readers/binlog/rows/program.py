"""What a table's rows are decoded by: one step a column, from the snapshot and the TABLE_MAP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.columns import arrays as arrow
from connectors.readers.binlog.columns import type_options as forms
from connectors.readers.binlog.columns.arrays import Finish
from connectors.readers.binlog.columns.charsets import text_finish
from connectors.readers.binlog.columns.compressed import unpacked
from connectors.readers.binlog.columns.dead_letters import lettered
from connectors.readers.binlog.columns.fixed import FIXED_TEXTS, fixed_text
from connectors.readers.binlog.columns.json import json_finish, within_variant
from connectors.readers.binlog.columns.labels import enum, flags
from connectors.readers.binlog.columns.lenient import lenient
from connectors.readers.binlog.columns.old_temporal import old_temporal, old_temporal_text, old_width
from connectors.readers.binlog.events.table_maps import COMPRESSED, OLD_TEMPORAL, ColumnCode
from connectors.readers.binlog.kernels.values import layout as at
from historian.errors import ValueUnrepresentable
from historian.plans.type_options import type_options_of
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import MAX_DECIMAL_DIGITS, arrow_type
from historian.values.policies import DEAD_LETTER, FAIL, policy_of

__all__ = ["Step", "Style", "program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How values are wanted.

    Attributes:
        as_text: temporal columns as the server's own text.
        bare_json: JSON as MySQL 5.7 prints it.
    """

    as_text: bool = False
    bare_json: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How one column is decoded.

    Attributes:
        kind, size, meta, width: see :mod:`connectors.readers.binlog.kernels.values.layout`.
        arrow: the resulting type.
        finish: makes the Arrow array of what the kernel wrote.
    """

    kind: int
    size: int
    meta: int = 0
    width: int
    arrow: pa.DataType
    finish: Finish


_C = ColumnCode
_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_INTEGERS = {
    "tinyint": (1, (at.COPY_1, 1), (at.U8_TO_16, 2)),
    "smallint": (2, (at.COPY_2, 2), (at.U16_TO_32, 4)),
    "mediumint": (3, (at.I24_TO_32, 4), (at.U24_TO_32, 4)),
    "int": (4, (at.COPY_4, 4), (at.U32_TO_64, 8)),
    "bigint": (8, (at.COPY_8, 8), (at.U64_TO_128, 16)),
}


class _Case(NamedTuple):
    """A column to be decoded: the snapshot's type, the TABLE_MAP's, how values are wanted, and whether the key has it."""

    type: ColumnType
    wire: MappedColumn
    style: Style
    in_key: bool

    @property
    def as_text(self) -> bool:
        """Whether the server's own text is wanted of a temporal column."""
        return self.style.as_text or self.type.shape == "text"

    def policy(self, reason: str) -> str:
        """What becomes of values that cannot be represented; in a primary key NULL would make one row of two."""
        return FAIL if self.in_key else policy_of(self.type, reason)

    def policies(self, *reasons: str) -> dict[str, str]:
        """By reason those that are not ``fail``."""
        found = {reason: self.policy(reason) for reason in reasons}
        return {reason: policy for reason, policy in found.items() if policy != FAIL}


def _integer(case: _Case) -> Step:
    size, signed, unsigned = _INTEGERS[case.type.name]
    kind, width = signed if case.type.shape or not case.type.unsigned else unsigned
    finish: Finish = arrow.plain
    if case.type.shape == "int64":
        finish = forms.signed(case.policy("int64_overflow"))
    elif case.type.shape == "boolean":
        finish = forms.truth(case.policy("invalid_boolean"))
    elif case.type.shape == "text":
        finish = forms.unsigned_text
    return Step(kind=kind, size=size, width=width, arrow=arrow_type(case.type), finish=finish)


def _float(case: _Case) -> Step:
    single = case.type.name == "float"
    size = 4 if single else 8
    return Step(
        kind=at.COPY_4 if single else at.COPY_8,
        size=size,
        width=size,
        arrow=arrow_type(case.type),
        finish=arrow.plain,
    )


def _decimal(case: _Case) -> Step:
    digits, scale = divmod(case.wire.metadata, 256)
    whole = digits - scale
    lead, tail = whole % 9, scale % 9
    groups = whole // 9 + scale // 9
    size = _DIGITS_BYTES[lead] + 4 * groups + _DIGITS_BYTES[tail]
    if digits > MAX_DECIMAL_DIGITS:
        return Step(
            kind=at.BYTES_FIXED, size=size, width=0, arrow=pa.string(), finish=arrow.wide_decimal(digits, scale)
        )
    meta = _DIGITS_BYTES[lead] | groups << 8 | _DIGITS_BYTES[tail] << 16 | tail << 24 | lead << 32
    kind = at.DECIMAL_18 if digits <= 18 else at.DECIMAL_38
    return Step(kind=kind, size=size, meta=meta, width=16, arrow=arrow_type(case.type), finish=arrow.plain)


def _bit(case: _Case) -> Step:
    bits = (case.wire.metadata & 0xFF) + 8 * (case.wire.metadata >> 8)
    if bits == 1 and case.type.shape != "binary":
        return Step(kind=at.COPY_1, size=1, width=1, arrow=pa.bool_(), finish=arrow.bits)
    return Step(kind=at.BYTES_FIXED, size=(bits + 7) // 8, width=0, arrow=pa.binary(), finish=arrow.plain)


_TEMPORAL = {
    "date": (at.DATE, 3, 4),
    "datetime": (at.DATETIME, 5, 8),
    "timestamp": (at.TIMESTAMP, 4, 8),
    "time": (at.TIME, 3, 8),
}


def _temporal(case: _Case) -> Step:
    name = case.type.name
    if case.wire.type in OLD_TEMPORAL:
        return _old_temporal(case)
    kind, size, width = _TEMPORAL[name]
    digits = case.wire.metadata
    fraction = (digits + 1) // 2
    if case.as_text:
        kind = at.WORD if name == "date" else at.BIG_WORD
        return Step(
            kind=kind, size=size + fraction, width=8, arrow=pa.string(), finish=arrow.temporal_text(name, digits)
        )
    if case.policy("zero_dates") == DEAD_LETTER:
        kind = at.WORD if name == "date" else at.BIG_WORD
        finish = lettered(name, arrow.temporal_text(name, digits), size + fraction, is_big=kind == at.BIG_WORD)
        return Step(kind=kind, size=size + fraction, width=8, arrow=arrow_type(case.type), finish=finish)
    finish = arrow.plain if name == "time" else _dated(case, arrow.dates)
    return Step(kind=kind, size=size + fraction, meta=fraction, width=width, arrow=arrow_type(case.type), finish=finish)


def _old_temporal(case: _Case) -> Step:
    """The log does not say how many fractional digits there are; the schema does."""
    name, digits = case.type.name, case.type.fraction
    kind, size = old_width(name, digits)
    if case.as_text:
        return Step(kind=kind, size=size, width=8, arrow=pa.string(), finish=old_temporal_text(name, digits))
    if case.policy("zero_dates") == DEAD_LETTER:
        finish = lettered(name, old_temporal_text(name, digits), size, is_big=kind == at.BIG_WORD)
    else:
        finish = _dated(case, old_temporal(name, digits))
    return Step(kind=kind, size=size, width=8, arrow=arrow_type(case.type), finish=finish)


def _dated(case: _Case, finish: Finish) -> Finish:
    """Zero dates become NULL, unless the user or the key does not let them."""
    if policy_of(case.type, "zero_dates") == FAIL:
        why, mend = "none, as types.zero_dates says", "choose null_and_count, dead_letter or text for the column"
        return forms.no_missing_dates(finish, why, f"mend the value at the source, or {mend}, for new targets")
    if case.in_key:
        why = "none in a primary key, where NULL would make one row of two"
        return forms.no_missing_dates(finish, why, "choose types.zero_dates: text for the column, for new targets")
    return finish


def _prefix(wire: MappedColumn) -> tuple[int, int]:
    """Bytes of the length prefix, and of the longest value where the TABLE_MAP says it."""
    if wire.type in (_C.VARCHAR, _C.VARCHAR_COMPRESSED):
        longest = wire.metadata
    elif wire.type == _C.STRING:
        # Two bits of the length hide, inverted, in the type's byte.
        longest = wire.metadata & 0xFF | (wire.metadata >> 4 & 0x300 ^ 0x300)
    else:
        return wire.metadata, 0
    return (1 if longest < 256 else 2), longest


_VARYING = ("invalid_text", "invalid_compressed", "invalid_json", "invalid_variant")


def _varying(case: _Case) -> Step:
    """Text, bytes, JSON, geometry and the like: a length prefix and data."""
    name, kind = case.type.name, arrow_type(case.type)
    size, longest = _prefix(case.wire)
    finish: Finish = arrow.plain
    if case.wire.type == _C.JSON:
        finish = json_finish(bare=case.style.bare_json)
    elif name in FIXED_TEXTS:
        finish = fixed_text(name)
    elif pa.types.is_string(kind):
        # MariaDB's JSON is text.
        finish = text_finish(case.type.charset or ("utf8mb4" if name == "json" else "binary"))
    if case.wire.type in COMPRESSED:
        finish = unpacked(finish)
    policies = case.policies(*(reason for reason in _VARYING if reason in type_options_of(case.type)))
    if policies:
        finish = lenient(finish, policies)
        if "invalid_variant" in policies:
            finish = within_variant(finish, policies["invalid_variant"])
    # Zero bytes at the end of these stay out of the log.
    padded = longest if name == "binary" or name in FIXED_TEXTS else 0
    return Step(kind=at.TEXT, size=size, meta=padded, width=0, arrow=kind, finish=finish)


def _labels(case: _Case) -> Step:
    size = case.wire.metadata & 0xFF
    make = enum if case.type.name == "enum" else flags
    finish = make(case.type.labels, size, case.policy("invalid_member"))
    return Step(kind=at.WORD, size=size, width=8, arrow=pa.string(), finish=finish)


_MAKERS: dict[str, Callable[[_Case], Step]] = {
    **dict.fromkeys(_INTEGERS, _integer),
    **dict.fromkeys(("float", "double"), _float),
    **dict.fromkeys(_TEMPORAL, _temporal),
    **dict.fromkeys(("enum", "set"), _labels),
    "decimal": _decimal,
    "bit": _bit,
    "year": lambda _: Step(kind=at.YEAR, size=1, width=2, arrow=pa.int16(), finish=arrow.plain),
}


_HASH = Step(kind=at.COPY_8, size=8, width=8, arrow=pa.int64(), finish=arrow.plain)
"""Of a hidden column, whose values nobody asks for."""


def program(snapshot: Snapshot, wire: tuple[MappedColumn, ...], *, style: Style) -> tuple[Step, ...]:
    """The steps of *snapshot*'s columns, in order; *wire* is a TABLE_MAP's columns that fit it, hidden ones at its end.

    A virtual generated column stands in the row image like any other, on every server tried (MySQL 5.7, 8.0, 9.7,
    MariaDB 10.11 and 11.8). The hidden column behind a functional index does not.

    Raises:
        ValueUnrepresentable: a column type or character set that is not read yet.
    """
    shown = tuple(
        _step(snapshot, column, described, style)
        for column, described in zip(snapshot.columns, wire)  # noqa: B905 - they fit
    )
    return shown + (_HASH,) * (len(wire) - len(shown))


def _step(snapshot: Snapshot, column: Column, wire: MappedColumn, style: Style) -> Step:
    try:
        arrow_type(column.type)
        case = _Case(column.type, wire, style, column.id in snapshot.primary_key)
        return _MAKERS.get(column.type.name, _varying)(case)
    except ValueUnrepresentable as error:
        error.where = f"{snapshot.name}.{column.name}, {error.where}"
        raise
