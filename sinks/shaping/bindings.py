"""Rules and columns meet: each column of a table gets what the rules say of the name with which it came, and keeps it by its id."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from historian.errors import SinkError
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable
from historian.schema.snapshots import Column
from sinks.contract.locations import TableLocation, TableLocations
from sinks.shaping.rules import PLAIN, Action, Rules

__all__ = ["Bindings", "bind", "check_bindings"]


@dataclass(frozen=True)
class Bindings:
    """What is done to the columns of one table.

    Attributes:
        rules: of the table.
        came: column id to the name with which the column came, and to the mark of what is done to it.
    """

    rules: Rules
    came: Mapping[int, tuple[str, str]]

    @classmethod
    def of(cls, location: TableLocation, rules: Rules) -> Bindings:
        """The bindings that *location* keeps."""
        return cls(
            rules, {int(number): (name, mark) for number, (name, mark) in json.loads(location.columns or "{}").items()}
        )

    @property
    def text(self) -> str:
        """As :attr:`sinks.contract.locations.TableLocation.columns` keeps them."""
        return json.dumps({str(number): self.came[number] for number in sorted(self.came)})

    @cached_property
    def actions(self) -> Mapping[int, Action]:
        """Column id to what is done to it."""
        return {number: self.rules.action(name) if mark else PLAIN for number, (name, mark) in self.came.items()}

    def action(self, column: Column) -> Action:
        """What is done to *column*."""
        return self.actions.get(column.id, PLAIN)

    def name(self, column: Column) -> str:
        """What expressions call *column*: the name with which it came."""
        return self.came[column.id][0] if column.id in self.came else column.name

    def differing(self) -> list[str]:
        """Columns of which the rules say something else than what was done to them."""
        return [
            f"{name}: {mark or 'as it is'}, now {now.mark or 'as it is'}"
            for name, mark in self.came.values()
            if not (now := self.rules.action(name)).has_mark(mark)
        ]


def bind(locations: TableLocations, plan: Plan, rules_of: Mapping[int, Rules]) -> TableLocations:
    """The locations with the bindings of columns that come in *plan*; pure, and the same when it is asked again.

    Raises:
        SinkError: the rules want something else of columns whose values are in the lake already.
    """
    if not rules_of:
        return locations  # They may be very many, of which a plan changes few.
    after = dict(locations)
    for table in plan.tables:
        location, rules = after.get(table.table_id), rules_of.get(table.table_id)
        if location is not None and rules is not None and location.stopped_in in (0, plan.number):
            bindings = Bindings.of(location, rules)
            # Without bindings the table was written as it is.
            held = _columns(table, first=True) if not location.columns and location.since < plan.number else ()
            came = {**bindings.came, **{c.id: (c.name, "") for c in held if c.id not in bindings.came}}
            for column in _columns(table):
                came.setdefault(column.id, (column.name, rules.action(column.name).mark))
            bound = Bindings(rules, came)
            check_bindings(location.name, bound)
            after[table.table_id] = replace(location, columns=bound.text)
    return after


def check_bindings(name: str | TableName, bindings: Bindings) -> None:
    """Raises :class:`SinkError` where the rules want something else of columns than what was done to them so far."""
    differing = bindings.differing()
    if differing:
        raise SinkError(
            "the values of a table's columns are in the lake in another form than the configuration wants",
            where=str(name),
            expected="for columns that are there already, the rules under which they came",
            found="; ".join(differing),
            next_step="go on with those rules, or give this connector a path of its own",
        )


def _columns(table: PlannedTable, *, first: bool = False) -> Iterable[Column]:
    versions = table.versions[:1] if first else table.versions
    return [column for v in versions if v.snapshot is not None for column in v.snapshot.columns]
