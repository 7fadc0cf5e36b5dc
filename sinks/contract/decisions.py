"""What a sink once decided about edits of a table, kept with the table's location, so that a replay decides nothing anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from historian.plans.evolution import STOPS
from historian.schema.snapshots import Snapshot

__all__ = ["GENERATION", "Decision", "Decisions", "VersionChange"]

GENERATION = 100_000_000
"""A column that is set aside leaves its place to one with an id that is higher by this; ids of a history lie below."""

_NEW_VALUES = ("new_column", "repair")
"""What rows from before hold in the column is not what the log told of them."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about an edit; edits that are followed have none.

    Attributes:
        version: that the edit leads to.
        column_id: of the history; 0 where it is about no column.
        edit, action: see :mod:`historian.plans.evolution`. ``repair``: as ``new_column``, and a mirror keeps no former column, since what
            rows from before hold comes with a repair. ``add_column`` with ``new_column``: the column is added, and what rows from
            before read in it is not known.
    """

    version: int
    column_id: int
    edit: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """All decisions about a table, in order.

    Attributes:
        upto: the last version whose edits were decided about.
    """

    upto: int = 0
    made: tuple[Decision, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Decisions:
        """The decisions of a text that :meth:`text` gave; "" has none."""
        if not text:
            return cls()
        held = json.loads(text)
        return cls(upto=held["upto"], made=tuple(Decision(*made) for made in held["made"]))

    def text(self) -> str:
        """As JSON; "" where nothing was decided about yet."""
        if not self.upto:
            return ""
        made = [[d.version, d.column_id, d.edit, d.action] for d in self.made]
        return json.dumps({"upto": self.upto, "made": made}, separators=(",", ":"))

    @property
    def stops(self) -> bool:
        """Whether one of them is that the table is not written any more."""
        return any(decision.action in STOPS for decision in self.made)

    def until(self, version: int) -> Decisions:
        """What was decided about edits up to the one that leads to *version*."""
        return Decisions(upto=min(self.upto, version), made=tuple(self._upto(version)))

    def action(self, version: int, edit: str, column_id: int = 0) -> str:
        """What was decided about an edit."""
        for made in self.made:
            if (made.version, made.column_id, made.edit) == (version, column_id, edit):
                return made.action
        return "apply"

    def is_one_of(self, edit: str, *actions: str, before: int | None = None) -> bool:
        """Whether one of *actions* was decided about an edit of that kind, before a version."""
        return any(d.edit == edit and d.action in actions and (before is None or d.version < before) for d in self.made)

    def left_out(self, version: int) -> frozenset[int]:
        """Ids of the history's columns that targets do not have at *version*."""
        return frozenset(d.column_id for d in self._upto(version, "ignore") if d.edit == "add_column")

    def shown_id(self, column_id: int, version: int) -> int:
        """The id that a column of the history has in targets at *version*."""
        return column_id + GENERATION * sum(d.column_id == column_id for d in self._replaced(version))

    def set_aside(self, version: int) -> tuple[int, ...]:
        """Ids, in targets, of columns whose place another one has at *version*."""
        return tuple(self.shown_id(d.column_id, d.version) - GENERATION for d in self._replaced(version))

    def kept(self, version: int) -> frozenset[int]:
        """Ids, in targets, of columns that a mirror has although its table does not have them at *version*."""
        dropped = (self.shown_id(d.column_id, d.version) for d in self._upto(version, "keep") if d.column_id)
        replaced = (d for d in self._replaced(version) if d.action == "new_column")
        return frozenset((*dropped, *(self.shown_id(d.column_id, d.version) - GENERATION for d in replaced)))

    def shown(self, snapshot: Snapshot, version: int, *, whole: bool = False) -> Snapshot:
        """*snapshot* as targets have it at *version*; *whole*: with the columns that are left out."""
        gone = frozenset() if whole else self.left_out(version)
        added = (d for d in self._upto(version) if d.edit == "add_column")
        unknown = {d.column_id for d in added if d.action in _NEW_VALUES}
        columns = []
        for column in snapshot.columns:
            shown = replace(column, id=self.shown_id(column.id, version))
            if shown.id != column.id or column.id in unknown:
                shown = replace(shown, initial=None, initial_known=True)
            if column.id not in gone:
                columns.append(shown)
        key = tuple(self.shown_id(column_id, version) for column_id in snapshot.primary_key)
        return replace(snapshot, columns=tuple(columns), primary_key=key)

    def _replaced(self, version: int) -> Iterator[Decision]:
        """By which another column has the place of one that was there."""
        return (d for d in self._upto(version) if d.edit != "add_column" and d.action in _NEW_VALUES)

    def _upto(self, version: int, action: str = "") -> Iterator[Decision]:
        return (d for d in self.made if d.action == (action or d.action) and d.version <= version)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """How a target goes from one version of a table to the next where something was decided about the table.

    Attributes:
        before: the table as it was, as targets have it; None: it was not there.
        kept: ids of columns that a mirror keeps.
        unnamed: ids of columns whose new name is not taken.
        moves: whether columns take the table's order; else they stay as they stand.
    """

    before: Snapshot | None
    kept: frozenset[int]
    unnamed: frozenset[int]
    moves: bool
