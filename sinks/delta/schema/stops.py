"""What stops a table: changes of its schema that its targets cannot follow without a wrong value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from historian.changelog.missing_columns import WHOLE_IMAGES
from historian.errors import TableStopped, ValueUnrepresentable
from historian.plans.evolution import STOPS, EvolutionSettings, action_for
from historian.plans.key_ranges import NOT_BY_RANGES
from historian.plans.plans import PlannedVersion
from historian.schema.edits import AddColumn
from historian.values.texts import initial_scalar
from historian.values.variant import encoded
from sinks.contract.decisions import Decisions
from sinks.contract.parts import Part
from sinks.delta.schema.changes import Change, changes
from sinks.rows.variant import is_variant

if TYPE_CHECKING:
    from sinks.contract.locations import TableLocation
    from sinks.delta.settings import DeltaSettings

__all__ = ["ROWS_UNSEEN", "check", "check_whole", "inherited_stop", "is_repairable", "repairable"]

ROWS_UNSEEN = "a statement has changed rows without row events"
_REWRITTEN = "a column's values are rewritten by the server"
_NOT_WIDENED = "a column gets a type that Delta does not widen to"
_COMPUTED = "the server computes a column's values in rows that are there already"
_INHERITED = "a table's targets are those of a stopped one"
_TOLD = re.compile(rf"{re.escape(_INHERITED)} \((?P<path>[^()]*)\); found (?P<reason>.*)", re.DOTALL)


def inherited_stop(table: str, stopped: str) -> TableStopped:
    """The error of *table*, whose targets are those of one that has stopped; *stopped* is that one's reason.

    A reason that was inherited already is told once, behind the names of the tables through which it came.

    >>> print(inherited_stop("shop.c", str(inherited_stop("shop.b", "a row was lost (shop.a)"))))
    a table's targets are those of a stopped one (shop.c, after shop.b); found a row was lost (shop.a)
    """
    path = [table]
    while (told := _TOLD.fullmatch(stopped)) is not None:
        path += told["path"].split(", after ")
        stopped = told["reason"]
    return TableStopped(_INHERITED, where=", after ".join(path), found=stopped)


def is_repairable(reason: str, evolution: EvolutionSettings) -> bool:
    """Whether a table that stopped for *reason* goes on once it is compared with the rows that the source holds.

    One whose targets are those of a stopped one goes on behind that one.

    Args:
        evolution: of the table: an edit may be said to stop it for good.
    """
    if (told := _TOLD.fullmatch(reason)) is not None:
        reason = told["reason"]
    if reason.startswith((ROWS_UNSEEN, NOT_BY_RANGES)):
        return True
    asked = {_REWRITTEN: "change_type", _NOT_WIDENED: "change_type", _COMPUTED: "computed_values"}
    return any(reason.startswith(what) and action_for(evolution, edit) == "repair" for what, edit in asked.items())


def repairable(locations: Iterable[TableLocation], settings: DeltaSettings) -> dict[int, int]:
    """The tables that go on once they are compared with the source, by id: the last plan that each holds, as of :meth:`sinks.contract.base.Sink.repairable`."""
    stopped = sorted((h for h in locations if h.stopped and not h.is_replaced), key=lambda h: h.table_id)
    firsts = {directory: h.table_id for h in reversed(stopped) for directory in h.directories}
    return {
        location.table_id: location.stopped_in - 1
        for location in stopped
        # The table that had its targets before comes first.
        if {firsts[directory] for directory in location.directories} <= {location.table_id}
        and location.table_id > 0
        and not location.quarantined
        and is_repairable(location.stopped, settings.for_table(location.came_as).evolution)
    }


def check(part: Part) -> None:
    """Raises :class:`TableStopped`, naming the statement, where it was decided that an edit of *part* stops the table.

    Args:
        part: as planned.
    """
    made = Decisions.parse(part.location.evolved)
    before = part.base
    for version in part.versions:
        if before is not None and version.place is not None:
            for change in changes(before, version):
                action = made.action(version.version, change.noted, change.column_id)
                if action in STOPS:
                    raise _stopped(part, version, change, action)
        for edit in version.edits:
            if isinstance(edit, AddColumn):
                _check_initial(part, version, edit, made)
        before = version.snapshot
    after = part.last
    lost = [key for key in part.location.key_columns if after is not None and after.column_by_id(key) is None]
    if lost:
        held = None if part.base is None else part.base.column_by_id(lost[0])
        column = "" if held is None else held.name
        raise _stop(part, part.versions[-1], "a column of the configured key is dropped", where=column)


def check_whole(part: Part, whose: str) -> None:
    """Raises :class:`TableStopped` where rows of *part* have absent columns, which *whose* table cannot do without."""
    if part.partial:
        raise TableStopped(
            "rows have columns that the log does not tell",
            where=part.location.name,
            expected=f"for {whose} {WHOLE_IMAGES}",
            next_step="set binlog_row_image=FULL, then `historian heal`; or leave those columns out under sinks[].tables",
        )


def _stopped(part: Part, version: PlannedVersion, change: Change, action: str) -> TableStopped:
    whose = "a mirrored table" if part.location.mirror else "a table with a history"
    what = {
        "change_type": _REWRITTEN if change.rewritten else _NOT_WIDENED,
        "computed_values": _COMPUTED,
        "change_key": f"the primary key of {whose if part.location.mirror or part.location.history else 'a table'} changes",
    }.get(change.edit, "an edit stops its table")
    return _stop(
        part,
        version,
        what,
        where=change.column,
        expected=change.expected,
        found=change.found,
        next_step=f"{_ANEW}; its evolution says {action} of {change.edit} (docs/explanation/evolution.md)",
    )


def _check_initial(part: Part, version: PlannedVersion, edit: AddColumn, made: Decisions) -> None:
    if made.action(version.version, "add_column", edit.column.id) != "apply":
        return  # Nobody reads it.
    try:
        value = initial_scalar(edit.column).as_py()
        if is_variant(edit.column.type) and value is not None:
            encoded(value)
    except ValueUnrepresentable as error:
        raise _stop(
            part,
            version,
            error.what,
            where=edit.column.name,
            expected=error.expected or edit.column.type,
            found=error.found,
        ) from error


def _stop(
    part: Part,
    version: PlannedVersion,
    what: str,
    *,
    where: str = "",
    expected: object = None,
    found: object = None,
    next_step: str = "",
) -> TableStopped:
    return TableStopped(
        what,
        where=f"{part.location.name}{'.' + where if where else ''}: {version.statement}",
        expected=expected,
        found=found,
        next_step=next_step or _ANEW,
    )


_ANEW = (
    "where no repair brings it back by itself (docs/reference/stops.md), rebuild the table's targets from a new start"
)
