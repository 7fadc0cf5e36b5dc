"""What a run with a configuration would do, table by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

__all__ = ["ACTIONS", "Action", "Effects", "TableEffect", "strongest"]

Action = Literal["nothing", "changed", "repaired", "copied", "anew", "stopped", "refused"]
ACTIONS: tuple[Action, ...] = get_args(Action)
"""What becomes of a table, the weakest first.

``nothing``: it goes on as it does. ``changed``: it goes on with other settings. ``repaired``: a stopped one is compared with the
source, and goes on. ``copied``: its rows are read from the source. ``anew``: targets are made that are not there yet, from the
log. ``stopped``: its targets stand as they are. ``refused``: the run ends before it does anything.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEffect:
    """What becomes of one table.

    Attributes:
        table: as ``database.table``.
        why: for people; "" where nothing happens.
        rows: that are read from the source, about; None: none are, or it is not known.
        seconds: that this takes at most, about.
    """

    table: str
    action: Action
    why: str = ""
    rows: int | None = None
    seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a run would do.

    Attributes:
        connector: its name.
        behind: the plan and the position that the run goes on behind; "" where the connector has not begun.
        tables: by name.
        settings: other settings that differ from those of the last run, each with both values.
        refused: why the run would do nothing at all, each reason whole.
        notes: what else there is to know.
    """

    connector: str
    behind: str
    tables: tuple[TableEffect, ...]
    settings: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether a run with the configuration would end before it does anything."""
        return bool(self.refused)

    @property
    def is_nothing(self) -> bool:
        """Whether a run with the configuration goes on as the last one did."""
        return not (self.refused or self.settings or any(table.action != "nothing" for table in self.tables))

    def summary(self) -> str:
        """How many tables each action has, in one line."""
        counts = Counter(table.action for table in self.tables)
        rows = sum(table.rows or 0 for table in self.tables)
        seconds = sum(table.seconds or 0 for table in self.tables)
        about = f"; about {rows:,} rows to read, {timedelta(seconds=seconds)} at most" if rows else ""
        listed = ", ".join(f"{counts[word]} {word}" for word in reversed(ACTIONS) if counts[word]) or "no table"
        if self.is_refused:
            return f"{listed}; a run with this configuration is refused, and changes nothing"
        return f"{listed}{about}"


def strongest(effects: Iterable[TableEffect]) -> TableEffect:
    """Of several effects on one table, as several sinks have them, the one that matters most, with the reasons of all that are as strong."""
    found = list(effects)
    first = max(found, key=lambda effect: ACTIONS.index(effect.action))
    reasons = dict.fromkeys(each.why for each in found if each.action == first.action and each.why)
    return TableEffect(
        table=first.table, action=first.action, why="; ".join(reasons), rows=first.rows, seconds=first.seconds
    )
