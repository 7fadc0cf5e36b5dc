"""Which tables become one table, and by which columns their rows are told apart there."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass

from historian.changelog.operations import RESERVED_COLUMNS
from historian.names import TableName
from historian.plans.evolution import RULES, STOPS, EvolutionSettings, action_for
from historian.schema.snapshots import Column, ColumnType

__all__ = ["SHARD_IDS", "Into", "IntoSettings", "evolution_problems", "group_problems"]

SHARD_IDS = 1_950_000_000
"""Ids of shard columns are above, those of the source's columns below, and those of computed columns above theirs."""

IntoSettings = tuple[str, tuple[tuple[str, str], ...]]
"""What a configuration says: ``database.table`` of the one table, and shard columns with their patterns."""

_TEXT = ColumnType(name="varchar", length=255, charset="utf8mb4", collation="utf8mb4_bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Into:
    """The one table, and the columns that say which of its source's tables a row is from.

    Attributes:
        name: of the one table; no table of the source needs to have it, and one that has it is among the shards.
        columns: names of shard columns, each with its pattern of ``{database}`` and ``{table}``.
    """

    name: TableName
    columns: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, settings: IntoSettings) -> Into:
        """What *settings* means."""
        database, _, table = settings[0].partition(".")
        return cls(name=TableName(database, table), columns=tuple(settings[1]))

    @property
    def shape(self) -> str:
        """As a lake keeps it."""
        return f"into {self.name} ({', '.join(f'{name} = {pattern}' for name, pattern in self.columns)})"

    @property
    def shard_columns(self) -> tuple[Column, ...]:
        """The shard columns, in order."""
        return tuple(
            Column(id=SHARD_IDS + at, name=name, type=_TEXT, nullable=False)
            for at, (name, _) in enumerate(self.columns, 1)
        )

    def values(self, name: TableName) -> tuple[str, ...]:
        """What the shard columns hold in rows of the table that came under *name*."""
        return tuple(pattern.format(database=name.database, table=name.table) for _, pattern in self.columns)


def group_problems(glob: str, settings: IntoSettings) -> Iterator[str]:
    """What of *settings*, for tables that match *glob*, cannot work; each with the key that it stands under."""
    name, columns = settings
    if not all(name.partition(".")[::2]):
        yield f"expected DATABASE.TABLE @ $.into.name (got {name!r})"
    if not columns:
        yield "expected at least one column @ $.into.shard_columns (got none)"
    lower = [column.lower() for column, _ in columns]
    if len(set(lower)) < len(lower):
        yield f"expected each column once @ $.into.shard_columns (got {', '.join(column for column, _ in columns)})"
    yield from (
        f"expected another name than the changelog's own columns have @ $.into.shard_columns (got {column})"
        for column in lower
        if column in RESERVED_COLUMNS
    )
    fields: set[str] = set()
    for column, pattern in columns:
        found = _fields(pattern)
        if found is None or not found <= {"database", "table"}:
            yield f"expected a text with {{database}} or {{table}} @ $.into.shard_columns.{column} (got {pattern!r})"
        fields |= found or set()
    for key, part in zip(("database", "table"), glob.split(".", 1), strict=False):
        if ("*" in part or "?" in part) and key not in fields:
            yield (
                f"expected {{{key}}} in a shard column, since {glob} matches tables that differ in it "
                f"@ $.into.shard_columns (got {', '.join(pattern for _, pattern in columns)})"
            )


def evolution_problems(settings: EvolutionSettings) -> Iterator[str]:
    """Words of *settings* that one table of many cannot follow."""
    allowed = ("apply", "repair", *STOPS)
    wrong = [f"{action} of {edit}" for edit in RULES if (action := action_for(settings, edit)) not in allowed]
    if wrong:
        yield f"expected {', '.join(allowed)}, where into is set @ $.evolution (got {', '.join(wrong)})"


def _fields(pattern: str) -> set[str] | None:
    try:
        return {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}
    except ValueError:
        return None
