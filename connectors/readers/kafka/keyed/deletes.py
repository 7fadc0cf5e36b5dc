"""Where a topic's deletes are: messages without a value, or rows that say so. Statelessly: a row by which they are not where the settings say is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from historian.errors import SourceError
from historian.names import TableName

__all__ = ["TOMBSTONES_DELETE", "Deletes", "DeletesElsewhere"]

_REWRITE = (
    "have the transform rewrite deletes (delete.tombstone.handling.mode=rewrite), and have the topic written anew"
)
_IGNORE = "set source.tombstones: ignore"


class DeletesElsewhere(SourceError):
    """A row says that deletes of its topic are not where the settings have them. No dead letter: the topic's other rows are as this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """Where deletes are.

    Attributes:
        tombstones: what a message without a value does. "delete": the row under its key is gone, of the topic's table. "ignore": nothing, and
            each row tells whether it is deleted. "refuse": there is none.
        normalized: which tables have a state of rows, so that one may be deleted again; None: none.
    """

    tombstones: str = "delete"
    normalized: Callable[[TableName], bool] | None = None

    def refuse(self, where: str) -> None:
        """Refuses a message without a value, where there is to be none. Raises :class:`DeletesElsewhere`."""
        if self.tombstones == "refuse":
            raise DeletesElsewhere(
                "a message without a value is in a topic that is to have none",
                where=where,
                expected="rows, as source.tombstones: refuse says",
                found="a key alone",
                next_step="set source.tombstones: ignore, if rows tell deletes; or delete, if all rows are of the table that their topic names",
            )

    def check(self, table: TableName, mark: str, fields: Mapping[str, Any], topics: TableName, where: str) -> None:
        """Refuses a row by which a delete would be lost, or taken for one of another row.

        Args:
            table: of the row; *topics*: that of its topic.
            mark: the field that says whether the row is deleted; *fields*: of the row.

        Raises:
            DeletesElsewhere: it is such a row.
        """
        if self.tombstones == "refuse":
            return
        is_told = fields.get(mark) is not None
        if self.tombstones == "ignore":
            if not is_told:
                raise DeletesElsewhere(
                    "a row does not tell whether it is deleted, and messages without a value are ignored",
                    where=where,
                    expected=f"`{mark}` in each row",
                    found=f"a row of {table} without it",
                    next_step=f"{_REWRITE}; or set source.tombstones: delete, if all rows are of the table that their topic names, "
                    "and refuse, if the topic has no messages without a value",
                )
        elif table != topics:
            one = "if the topic has no messages without a value, set source.tombstones: refuse"
            raise DeletesElsewhere(
                "a row names another table than its topic, and messages without a value delete rows of the topic's",
                where=where,
                expected=f"a row of {topics}",
                found=f"a row of {table}",
                next_step=_IGNORE if is_told else f"{_REWRITE}, then {_IGNORE}; {one}",
            )
        elif str(fields.get(mark)).lower() == "true" and (self.normalized is None or not self.normalized(table)):
            raise DeletesElsewhere(
                "a row tells a delete, and a message without a value may tell the same one again",
                where=where,
                expected="source.tombstones: ignore, or a normalised table",
                found=f"`{mark}` in a row of {table}",
                next_step=_IGNORE,
            )


TOMBSTONES_DELETE = Deletes()
"""Deletes are messages without a value, and no table has a state."""
