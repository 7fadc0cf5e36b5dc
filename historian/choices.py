"""How values are carried where users have a choice: which choices there are, and for which columns each was made.

A choice becomes the ``form`` of a column's type in plans (:class:`historian.schema.ColumnType`), never in the history, which
says what the server has. So a plan that is run again gives the same rows, whatever the configuration says by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from historian.edits import AddColumn, ChangeAttributes, ChangeType, CreateTable, Edit
from historian.globs import matches
from historian.interruptions import ResumeTable
from historian.plans import Plan
from historian.schema import Column, ColumnType, Snapshot, TableName
from historian.versions import Version

__all__ = [
    "CHOICES",
    "DEAD_LETTER",
    "HOLDS_ALL",
    "NO_CHOICES",
    "NULL",
    "REASONS",
    "TypeChoices",
    "TypeRule",
    "choice_of",
    "forms_of",
]

DEAD_LETTER = "dead_letter"
"""The form of columns whose values go to the dead letters where they cannot be represented."""

NULL = "null"
"""The form of columns whose values become NULL, counted, where they cannot be represented, and by default do not."""

CHOICES: Mapping[str, Mapping[str, str]] = {
    "bigint_unsigned": {"decimal": "", "int64": "int64", "text": "text"},
    "tinyint1": {"int8": "", "boolean": "boolean"},
    "bit1": {"boolean": "", "binary": "binary"},
    "time": {"microseconds": "", "text": "text"},
    "zero_dates": {"null": "", "text": "text", "dead_letter": DEAD_LETTER, "error": "error"},
    "invalid_text": {"error": "", "null": NULL, "dead_letter": DEAD_LETTER},
    "json": {"text": "", "variant": "variant"},
}
"""A choice's name to its values, the default one first, and the form of each."""

REASONS: Mapping[str, str] = {
    "zero_dates": "a date that the calendar does not have",
    "invalid_text": "bytes that are no text",
}
"""Choices by which values become dead letters, and why their values do."""

HOLDS_ALL: Mapping[str, str] = {"zero_dates": "text"}
"""Of such a choice the form that holds every value, where there is one."""

_DATES = frozenset(("date", "datetime", "timestamp"))
_TEXTS = frozenset(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"))
_Formed = Callable[[int, ColumnType], ColumnType]
_SHAPELESS = frozenset(("", "error", NULL, DEAD_LETTER))
"""Forms that leave a column's Arrow type as it is by default."""


def choice_of(kind: ColumnType) -> str | None:
    """The choice that there is for columns of that type; None where there is none.

    >>> choice_of(ColumnType(name="bigint", unsigned=True)), choice_of(ColumnType(name="bigint"))
    ('bigint_unsigned', None)
    """
    if kind.name == "bigint" and kind.unsigned:
        return "bigint_unsigned"
    if kind.name == "tinyint" and kind.length == 1 and not kind.unsigned:
        return "tinyint1"
    if kind.name == "bit" and kind.length in (None, 1):
        return "bit1"
    if kind.name in _TEXTS:
        return "invalid_text"
    return kind.name if kind.name in ("time", "json") else "zero_dates" if kind.name in _DATES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRule:
    """Choices for the columns that a pattern matches.

    Attributes:
        pattern: "" for all; else globs on ``database.table`` or ``database.table.column``.
        values: names of choices with a value of each, see :data:`CHOICES`.
    """

    pattern: str = ""
    values: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        for name, value in self.values:
            if value not in CHOICES.get(name, {}):
                raise ValueError(f"expected one of {', '.join(CHOICES.get(name, CHOICES))}, not {name}: {value}")
        if self.pattern and len(self.parts) not in (2, 3):
            raise ValueError("expected DATABASE.TABLE or DATABASE.TABLE.COLUMN, each with * and ? as wildcards")

    @property
    def parts(self) -> tuple[str, ...]:
        """The pattern's globs: none, of database and table, or of the column too."""
        parts = tuple(self.pattern.split(".")) if self.pattern else ()
        return parts if all(parts) else ("",)


@dataclass(frozen=True, slots=True)
class TypeChoices:
    """All choices of a connector. One for columns wins over one for tables, that over one for all; a later one over an earlier.

    Names are those under which a column came into the history: a choice stays with its column through every RENAME.
    """

    rules: tuple[TypeRule, ...] = ()

    def form(self, table: TableName, column: str, kind: ColumnType) -> str:
        """The form of a column of that type and those names."""
        choice = choice_of(kind)
        found, depth = "", -1
        for rule in self.rules if choice is not None else ():
            value = dict(rule.values).get(choice or "")
            parts = rule.parts
            if value is not None and len(parts) >= depth and matches(parts, (*table, column)):
                found, depth = value, len(parts)
        return CHOICES[choice][found] if choice is not None and found else ""

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

    def in_forms(self, snapshot: Snapshot, versions: Sequence[Version]) -> Snapshot:
        """*snapshot*, of the table of *versions*, with the forms of its columns."""
        return _snapshot(snapshot, self._formed(versions)) if self.rules else snapshot

    def _formed(self, versions: Sequence[Version]) -> _Formed:
        names: dict[int, tuple[TableName, str]] = {}
        for version in versions:
            for column in () if version.snapshot is None else version.snapshot.columns:
                names.setdefault(column.id, (version.name, column.name))

        def formed(column_id: int, kind: ColumnType) -> ColumnType:
            known = names.get(column_id)
            return kind if known is None else replace(kind, form=self.form(*known, kind))

        return formed


NO_CHOICES = TypeChoices()
"""Everything as it is by default."""


def forms_of(plan: Plan) -> dict[str, str]:
    """What of the choices decides the shape of targets: column id and choice, such as ``7 time``, to the form in *plan*."""
    found: dict[str, str] = {}
    for table in plan.tables:
        for version in table.versions:
            for column in () if version.snapshot is None else version.snapshot.columns:
                choice = choice_of(column.type)
                if choice is not None and not _SHAPELESS.issuperset(CHOICES[choice].values()):
                    form = column.type.form
                    found[f"{column.id} {choice}"] = "" if form in _SHAPELESS else form
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
