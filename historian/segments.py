"""Which schema versions a plan needs, and where a table's rows are cut into segments.

Rows of one segment can be brought to one schema by column id. A segment ends where that cannot be: rows go without row
events, the key changes, or the server computes values that the log does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.choices import NO_CHOICES, TypeChoices
from historian.edits import AddColumn, ChangeAttributes, ChangeType, CreateTable, DropTable, Edit, TruncateTable
from historian.errors import PositionUnknown
from historian.interruptions import ResumeTable
from historian.plans import Place, PlannedTable, PlannedVersion, Quarantine
from historian.positions import FilePosition, LogPosition
from historian.prefix import holds
from historian.schema import GEOMETRIES, ColumnType, Snapshot, TableName
from historian.versions import Version

if TYPE_CHECKING:
    from historian.history import History

__all__ = ["brings", "carries", "cuts", "planned_tables", "resumed_table", "retracts"]

_Captured = Callable[[TableName], bool]
_Aside = Callable[[TableName, TableName], bool]

_INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_BYTES = {"tinytext": 2**8 - 1, "text": 2**16 - 1, "mediumtext": 2**24 - 1, "longtext": 2**32 - 1}
_BLOB_BYTES = {"tinyblob": 2**8 - 1, "blob": 2**16 - 1, "mediumblob": 2**24 - 1, "longblob": 2**32 - 1}
_UNICODE = {"utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4}
_BASIC_PLANE = {"utf8mb3": 3, "utf8": 3, "ucs2": 2}
_ASCII_INCOMPATIBLE = {"utf16", "utf16le", "utf32", "ucs2", "swe7"}
_OTHER_WIDTHS = {
    "big5": 2,
    "gb2312": 2,
    "gbk": 2,
    "sjis": 2,
    "cp932": 2,
    "euckr": 2,
    "ujis": 3,
    "eucjpms": 3,
    "gb18030": 4,
}
_GEOMETRIES = {*GEOMETRIES[1:], "geometrycollection"}


def carries(old: ColumnType, new: ColumnType) -> bool:
    """Whether every value of *old* is the same value under *new*, so that rows of both may stand side by side.

    Text counts as what it says, whatever charset stores it; ENUM and SET values as their members' text.
    """
    if replace(old, form=old.shape) == replace(new, form=new.shape):
        return True
    for family in (_forms, _integers, _decimals, _floats, _texts, _bytes, _members, _temporals, _bits, _shapes):
        verdict = family(old, new)
        if verdict is not None:
            return verdict
    return False


def _forms(old: ColumnType, new: ColumnType) -> bool | None:
    """Types whose values are carried otherwise than by default, where that makes them others."""
    a, b = _shown(old), _shown(new)
    if not a and not b:
        return None
    # Text shows every fractional digit that its type has.
    return a == b and (old.name, old.unsigned, old.fraction) == (new.name, new.unsigned, new.fraction)


def _shown(kind: ColumnType) -> str:
    return kind.shape if kind.shape in ("text", "boolean") else ""


def _integers(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name not in _INTEGER_BITS or new.name not in _INTEGER_BITS:
        return None
    a, b = _INTEGER_BITS[old.name], _INTEGER_BITS[new.name]
    if old.unsigned:
        return b >= a if new.unsigned else b > a
    return b >= a and not new.unsigned


def _decimals(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != "decimal" or new.name != "decimal":
        return None
    a, b, p, q = old.scale or 0, new.scale or 0, old.precision or 10, new.precision or 10
    if new.unsigned and not old.unsigned:
        return False
    return b >= a and q - b >= p - a and (q <= _NUMBER_DIGITS or (p > _NUMBER_DIGITS and a == b))


_NUMBER_DIGITS = 38
"""Decimals of more digits travel as text, and text does not become a number side by side."""


def _floats(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name not in {"float", "double"} or new.name not in {"float", "double"}:
        return None
    rounds = new.precision is not None and (new.precision, new.scale) != (old.precision, old.scale)
    return not rounds and (old.unsigned or not new.unsigned) and (old.name, new.name) != ("double", "float")


def _texts(old: ColumnType, new: ColumnType) -> bool | None:
    """CHAR, VARCHAR and TEXTs: the longest old value fits. To CHAR only from CHAR, since CHAR drops trailing blanks."""
    kinds = {"char", "varchar", *_TEXT_BYTES}
    if old.name not in kinds or new.name not in kinds:
        return None
    if (new.name == "char" and old.name != "char") or not _charset_holds(old.charset, new.charset):
        return False
    narrowest = 1 if old.charset not in {"utf16", "utf16le", "ucs2", "utf32"} else 2
    characters = old.length or 0 if old.name in {"char", "varchar"} else _TEXT_BYTES[old.name] // narrowest
    if new.name in {"char", "varchar"}:
        return characters <= (new.length or 0)
    if old.name in _TEXT_BYTES and old.charset == new.charset:
        return _TEXT_BYTES[old.name] <= _TEXT_BYTES[new.name]
    return characters * _width(new.charset) <= _TEXT_BYTES[new.name]


def _charset_holds(old: str | None, new: str | None) -> bool:
    if old == new or new in _UNICODE:
        return True
    if old in _BASIC_PLANE and new in _BASIC_PLANE:
        return True
    return old == "ascii" and new not in _ASCII_INCOMPATIBLE


def _width(charset: str | None) -> int:
    """The most bytes that one character takes."""
    name = charset or ""
    return _UNICODE.get(name) or _BASIC_PLANE.get(name) or _OTHER_WIDTHS.get(name) or 1


def _bytes(old: ColumnType, new: ColumnType) -> bool | None:
    """BINARY, VARBINARY and BLOBs. A longer BINARY pads its values with zero bytes, so they change."""
    kinds = {"binary", "varbinary", *_BLOB_BYTES}
    if old.name not in kinds or new.name not in kinds:
        return None
    longest = _BLOB_BYTES.get(old.name) or old.length or 0
    return new.name != "binary" and longest <= (_BLOB_BYTES.get(new.name) or new.length or 0)


def _members(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != new.name or old.name not in {"enum", "set"}:
        return None
    if not _charset_holds(old.charset, new.charset):
        return False
    if old.name == "enum":
        return set(old.members) <= set(new.members)
    # A SET prints its members in the order of the definition.
    return [member for member in new.members if member in old.members] == list(old.members)


def _temporals(old: ColumnType, new: ColumnType) -> bool | None:
    if old.name != new.name or old.name not in {"time", "datetime", "timestamp"}:
        return None
    return new.fraction >= old.fraction


def _bits(old: ColumnType, new: ColumnType) -> bool | None:
    """BIT travels as bytes, BIT(1) as a boolean: values stay alike while the number of bytes does."""
    if old.name != "bit" or new.name != "bit":
        return None
    a, b = old.length or 1, new.length or 1
    return (a > 1 or old.shape == "binary") and a <= b and (a + 7) // 8 == (b + 7) // 8


def _shapes(old: ColumnType, new: ColumnType) -> bool | None:
    collections = {"geomcollection", "geometrycollection"}
    if old.name in _GEOMETRIES and new.name == "geometry":
        return True
    return True if {old.name, new.name} <= collections else None


def retracts(edit: Edit) -> bool:
    """Whether all rows of the table go by *edit*, without row events."""
    return isinstance(edit, (TruncateTable, DropTable))


def cuts(edit: Edit, before: Snapshot) -> bool:
    """Whether rows from before *edit* cannot be brought to the schema after it by column id.

    A change of the primary key cuts too; compare snapshots for that, since the key can lose columns by other edits.
    """
    if isinstance(edit, ChangeType):
        return not carries(edit.old, edit.new)
    if isinstance(edit, AddColumn):
        return not edit.column.initial_known
    if isinstance(edit, ChangeAttributes):
        held = before.column_by_id(edit.column.id)
        return held is not None and held.generation_expression != edit.column.generation_expression
    if isinstance(edit, ResumeTable):
        return edit.loses_rows
    return retracts(edit)


def brings(old: Snapshot, new: Snapshot) -> bool:
    """Whether rows written under *old* can be brought to *new*, the same table's, by column id."""
    if old.primary_key != new.primary_key:
        return False
    for column in new.columns:
        held = old.column_by_id(column.id)
        if held is None:
            if not column.initial_known:
                return False
        elif not carries(held.type, column.type) or held.generation_expression != column.generation_expression:
            return False
    return True


def planned_tables(  # noqa: PLR0913 each by name, and each is wanted
    history: History,
    *,
    base: int,
    last: int,
    captured: _Captured,
    touched: Collection[int],
    quarantines: Mapping[int, Quarantine],
    start: LogPosition | None = None,
    sets_aside: _Aside = lambda _table, _new: False,
    choices: TypeChoices = NO_CHOICES,
) -> tuple[PlannedTable, ...]:
    """The captured tables of a plan with the versions they need, by table id.

    Args:
        history: holds all entries up to *last*.
        base: number of the last entry at or before the plan's start.
        last: number of the last entry in the plan.
        captured: by a table's name.
        touched: ids of tables with rows in the plan; tables with edits there are added.
        quarantines: by table id; a table stopped at or before *start* has left and is not planned.
        start: where the plan starts.
        sets_aside: whether a captured table of the first name is still one under the second, for a moment.
        choices: how values are carried.
    """
    edited = {version.table_id for number in range(base + 1, last + 1) for version in history.versions_by(number)}
    tables = []
    for table_id in sorted({*touched, *edited}):
        stop = quarantines.get(table_id)
        if stop is not None and start is not None and _is_behind(start, stop.place):
            continue
        chain = [version for version in choices.applied(history.versions_of(table_id)) if version.number <= last]
        planned = _planned(chain, base, _wanted(chain, captured, sets_aside), stop)
        if planned is not None:
            tables.append(planned)
    return tuple(tables)


def resumed_table(chain: list[Version], base: int, captured: _Captured, stop: Quarantine | None) -> PlannedTable | None:
    """A stopped table's part in a plan of its own: *chain* holds its version before the stop, and those from there on.

    Args:
        chain: of one table, choices applied; those behind *base* are said or read anew.
        base: number of the last entry that was there before.
        captured: by a table's name.
        stop: where it stops again.
    """
    return _planned(chain, base, _wanted(chain, captured, lambda _table, _new: False), stop)


def _is_behind(start: LogPosition, place: Place) -> bool:
    try:
        return holds(start, place, "")
    except PositionUnknown:
        # Without GTID the stop was noted on some server's file before this one was read.
        return True


def _planned(chain: list[Version], base: int, wanted: frozenset[int], stop: Quarantine | None) -> PlannedTable | None:
    held = [version for version in chain if version.number <= base]
    versions: list[PlannedVersion] = []
    in_force: Snapshot | None = None
    if held and held[-1].number in wanted:
        in_force = held[-1].snapshot
        versions.append(_version(held[-1], None, (), 0))
    was_wanted = any(version.number in wanted for version in held)
    for version in chain[len(held) :]:
        place = _place(version)
        if stop is not None and not _is_before(place, stop.place):
            break
        if in_force is None and version.snapshot is not None and _resumes(version):
            known = next((v for v in reversed(held) if v.number in wanted), None)
            in_force = None if known is None else known.snapshot
            versions += [] if known is None else [_version(known, None, (), 0)]
        if in_force is None:
            if version.number not in wanted or version.snapshot is None:
                continue
            in_force = version.snapshot
            versions.append(_version(version, place, (CreateTable(snapshot=in_force),), 0))
            reason = f"{version.name} is captured again; its changes meanwhile were left out" if was_wanted else None
        else:
            reason = _left(version, wanted)
            if reason is None:
                versions.append(
                    _version(version, place, version.edits, versions[-1].segment + _is_cut(version, in_force))
                )
                in_force = version.snapshot
        if reason is not None:
            stop = Quarantine(place=place, reason=reason)
            break
    return PlannedTable(table_id=chain[0].table_id, versions=tuple(versions), quarantine=stop) if versions else None


def _resumes(version: Version) -> bool:
    return any(isinstance(edit, ResumeTable) for edit in version.edits)


def _wanted(chain: list[Version], captured: _Captured, sets_aside: _Aside) -> frozenset[int]:
    """Numbers of the versions under which the table's rows are wanted."""
    numbers: set[int] = set()
    name: TableName | None = None
    for version in chain:
        if version.snapshot is None:
            continue
        if captured(version.name):
            name = version.name
        elif name is None or not sets_aside(name, version.name):
            name = None
            continue
        numbers.add(version.number)
    return frozenset(numbers)


def _left(version: Version, wanted: frozenset[int]) -> str | None:
    """Why a captured table stops at *version*, if it does."""
    if version.unknown is not None:
        return version.unknown
    if version.snapshot is not None and version.number not in wanted:
        return f"renamed to {version.name}, which is not captured"
    return None


def _is_cut(version: Version, before: Snapshot) -> bool:
    if version.snapshot is not None and version.snapshot.primary_key != before.primary_key:
        return True
    return any(cuts(edit, before) for edit in version.edits)


def _version(version: Version, place: Place | None, edits: tuple[Edit, ...], segment: int) -> PlannedVersion:
    return PlannedVersion(
        version=version.number,
        place=place,
        edits=edits,
        snapshot=version.snapshot,
        segment=segment,
        statement=version.entry.statement,
        event_time_us=version.entry.event_time_us,
    )


def _place(version: Version) -> Place:
    """Where the version begins; a capture, which is no event, begins with whatever follows its position."""
    position = version.entry.position
    return version.entry.place or Place(gtid="", file=position.file, offset=position.offset, ordinal=0)


def _is_before(place: Place, other: Place) -> bool:
    """Whether *place* lies before *other*; both were read from one server's files in one walk."""
    at, limit = FilePosition(place.file, place.offset), FilePosition(other.file, other.offset)
    return limit.covers(at) and at != limit
