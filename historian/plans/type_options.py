"""How values are carried where users have a choice: which choices there are, and for which columns each was made.

A choice becomes the ``form`` of a column's type in plans (:class:`historian.schema.snapshots.ColumnType`), never in the history, which
says what the server has. So a plan that is run again gives the same rows, whatever the configuration says by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from historian.globs import matches
from historian.history.versions import Version
from historian.names import TableName
from historian.plans.plans import Plan
from historian.schema.edits import AddColumn, ChangeAttributes, ChangeType, CreateTable, Edit
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import TEXT_TYPES, Column, ColumnType, Snapshot
from historian.values.policies import POLICIES, REASONS, is_possible

__all__ = ["NO_TYPE_OPTIONS", "TYPE_OPTIONS", "TypeOptions", "TypeRule", "planned_type_options", "type_options_of"]

TYPE_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "bigint_unsigned": {"decimal": "", "int64": "int64", "text": "text"},
    "tinyint1": {"int8": "", "boolean": "boolean"},
    "bit1": {"boolean": "", "binary": "binary"},
    "time": {"microseconds": "", "text": "text"},
    "json": {"text": "", "variant": "variant"},
    **POLICIES,
    "zero_dates": {**POLICIES["zero_dates"], "text": "text"},
}
"""A choice's name to its values, the default one first, and the word of each in a form; a shape's stands first in it."""

_DATES = frozenset(("date", "datetime", "timestamp"))
_BYTES = frozenset(("varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_Formed = Callable[[int, ColumnType], ColumnType]
_TYPE_OPTIONS_OF = {
    **dict.fromkeys(_DATES, ("zero_dates",)),
    **dict.fromkeys(TEXT_TYPES, ("invalid_text", "invalid_compressed")),
    **dict.fromkeys(_BYTES, ("invalid_compressed",)),
    **dict.fromkeys(("enum", "set"), ("invalid_member",)),
    "char": ("invalid_text",),
    "time": ("time",),
    "json": ("json", "invalid_variant", "invalid_json"),
}


def type_options_of(kind: ColumnType) -> tuple[str, ...]:
    """The choices that there are for columns of that type; the one of a shape first.

    >>> type_options_of(ColumnType(name="bigint", unsigned=True)), type_options_of(ColumnType(name="bigint"))
    (('bigint_unsigned', 'int64_overflow'), ())
    """
    if kind.name == "bigint" and kind.unsigned:
        return "bigint_unsigned", "int64_overflow"
    if kind.name == "tinyint" and kind.length == 1 and not kind.unsigned:
        return "tinyint1", "invalid_boolean"
    if kind.name == "bit" and kind.length in (None, 1):
        return ("bit1",)
    return _TYPE_OPTIONS_OF.get(kind.name, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """Choices for the columns that a pattern matches.

    Attributes:
        pattern: "" for all; else globs on ``database.table`` or ``database.table.column``.
        values: names of choices with a value of each, see :data:`TYPE_OPTIONS`.
    """

    pattern: str = ""
    values: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        for name, value in self.values:
            if value not in TYPE_OPTIONS.get(name, {}):
                raise ValueError(
                    f"expected one of {', '.join(TYPE_OPTIONS.get(name, TYPE_OPTIONS))}, not {name}: {value}"
                )
        if self.pattern and len(self.parts) not in (2, 3):
            raise ValueError("expected DATABASE.TABLE or DATABASE.TABLE.COLUMN, each with * and ? as wildcards")

    @property
    def parts(self) -> tuple[str, ...]:
        """The pattern's globs: none, of database and table, or of the column too."""
        parts = tuple(self.pattern.split(".")) if self.pattern else ()
        return parts if all(parts) else ("",)


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """All choices of a connector. One for columns wins over one for tables, that over one for all; a later one over an earlier.

    Names are those under which a column came into the history: a choice stays with its column through every RENAME.
    """

    rules: tuple[TypeRule, ...] = ()

    def form(self, table: TableName, column: str, kind: ColumnType) -> str:
        """The form of a column of that type and those names."""
        words: list[str] = []
        for choice in type_options_of(kind):
            word = self._word(choice, (*table, column))
            if word and (choice not in REASONS or is_possible(choice, words[0] if words else "")):
                words.append(word)
        return " ".join(words)

    def _word(self, choice: str, names: tuple[str, ...]) -> str:
        found, depth = "", -1
        for rule in self.rules:
            value = dict(rule.values).get(choice)
            parts = rule.parts
            if value is not None and len(parts) >= depth and matches(parts, names):
                found, depth = value, len(parts)
        return TYPE_OPTIONS[choice][found] if found else ""

    def applied(self, versions: Sequence[Version]) -> list[Version]:
        """*versions*, all of one table's in order, with the forms of its columns."""
        if not self.rules:
            return list(versions)
        formed = self._formed(versions)
        return [
            replace(
                version,
                snapshot=None if version.snapshot is None else _snapshot(version.snapshot, formed),
                edits=tuple(_edit(edit, formed) for edit in version.edits),
            )
            for version in versions
        ]

    def with_type_options(self, snapshot: Snapshot, versions: Sequence[Version]) -> Snapshot:
        """*snapshot*, of the table of *versions*, with the forms of its columns."""
        return _snapshot(snapshot, self._formed(versions)) if self.rules else snapshot

    def _formed(self, versions: Sequence[Version]) -> _Formed:
        names: dict[int, tuple[TableName, str]] = {}
        for version in versions:
            for column in () if version.snapshot is None else version.snapshot.columns:
                names.setdefault(column.id, (version.name, column.name))

        def formed(column_id: int, kind: ColumnType) -> ColumnType:
            known = names.get(column_id)
            return kind if known is None else replace(kind, options=self.form(*known, kind))

        return formed


NO_TYPE_OPTIONS = TypeOptions()
"""Everything as it is by default."""


def planned_type_options(plan: Plan) -> dict[str, str]:
    """What of the choices decides the shape of targets: column id and choice, such as ``7 time``, to the shape in *plan*."""
    found: dict[str, str] = {}
    for table in plan.tables:
        for version in table.versions:
            for column in () if version.snapshot is None else version.snapshot.columns:
                for choice in type_options_of(column.type):
                    if not set(TYPE_OPTIONS[choice].values()) <= set(POLICIES.get(choice, {}).values()):
                        found[f"{column.id} {choice}"] = column.type.shape
    return found


def _column(column: Column, formed: _Formed) -> Column:
    return replace(column, type=formed(column.id, column.type))


def _snapshot(snapshot: Snapshot, formed: _Formed) -> Snapshot:
    return replace(snapshot, columns=tuple(_column(column, formed) for column in snapshot.columns))


def _edit(edit: Edit, formed: _Formed) -> Edit:
    if isinstance(edit, (CreateTable, ResumeTable)):
        return replace(edit, snapshot=_snapshot(edit.snapshot, formed))
    if isinstance(edit, (AddColumn, ChangeAttributes)):
        return replace(edit, column=_column(edit.column, formed))
    if isinstance(edit, ChangeType):
        return replace(edit, old=formed(edit.column_id, edit.old), new=formed(edit.column_id, edit.new))
    return edit
