"""What a validation finds, and the two profiles that it may hold a changelog to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from historian.changelog.operations import SYSTEM_COLUMNS, data_columns

__all__ = ["Finding", "Profile", "Rule", "in_order"]


class Profile(str, Enum):
    """What a changelog must be like."""

    BINLOG = "binlog"
    """Ours, decoded from a log: with ``schema_version``. It may begin in the middle of a table's life. Rows of -R and
    -C have the event time of the change that takes the row back. They hold the row as the schema in force there has it."""

    ODF = "odf"
    """Open Data Fabric's, to the letter: begins with the table, and -R and -C carry all that the row they take back has,
    ``event_time`` too; no ``schema_version``; times in milliseconds."""

    @property
    def system_columns(self) -> tuple[str, ...]:
        """The columns before the data, in order."""
        return SYSTEM_COLUMNS if self is Profile.BINLOG else SYSTEM_COLUMNS[:4]

    def data(self, names: Iterable[str]) -> tuple[str, ...]:
        """The data columns among all *names*."""
        if self is Profile.BINLOG:
            return data_columns(names)
        return tuple(name for name in names if name not in self.system_columns)


class Rule(str, Enum):
    """What a finding is about."""

    COLUMNS = "columns"
    """A system column is missing, stands elsewhere, or has another type."""
    SYSTEM = "system"
    """A system column is NULL, or finer than the profile has it."""
    OPERATION = "operation"
    """A code that is none."""
    OFFSET = "offset"
    """Offsets do not ascend by one."""
    KEY = "key"
    """NULL in a key."""
    PAIR = "pair"
    """A -C without its +C directly behind it, or the other way round."""
    PRESENCE = "presence"
    """A +A of a key that is there, or a row taken back that is not."""
    IMAGE = "image"
    """A -R or -C that does not carry the row it takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        rule: that is broken.
        offset: of the row; None where it has none, or where it is about the columns.
        expected, found: in words, or as ``column=value`` of the columns that differ.
    """

    rule: Rule
    offset: int | None
    expected: str
    found: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at offset {self.offset}"
        return f"{self.rule.value}{where}: expected {self.expected}, found {self.found}"


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """*findings* by offset and rule."""
    return tuple(sorted(findings, key=lambda f: (f.offset is not None, f.offset or 0, f.rule.value, f.expected)))
