"""Columns that come to a target with a part, and that rows from before it read a default in.

A table that stopped in the middle of a plan holds the parts before its stop. The plan that brings it back begins with the schema from
before them. So it adds columns that the targets have already, with values that rows were given since: those are not new.
"""

from __future__ import annotations

from collections.abc import Sequence

from historian.schema.snapshots import Column
from sinks.contract.parts import Part, Step
from sinks.delta.log.target import Target
from sinks.delta.log.time_travel import view_before
from sinks.rows.intervals import Added

__all__ = ["added_columns", "filled_columns"]


def added_columns(target: Target, part: Part) -> Added:
    """Those of :attr:`Part.added` that *target* lacked before *part*.

    Raises:
        ChainBroken: its log does not reach back there.
    """
    if not part.added:
        return ()
    held = _held(target, part)
    return tuple((column, since) for column, since in part.added if column.id not in held)


def filled_columns(target: Target, part: Part) -> Sequence[Column]:
    """Those of :attr:`Part.filled` that *target* lacked before *part*; errors as of :func:`added_columns`."""
    if not part.filled:
        return ()
    held = _held(target, part)
    return tuple(column for column in part.filled if column.id not in held)


def _held(target: Target, part: Part) -> frozenset[int]:
    view = view_before(target, part.transaction(Step.SCHEMA))
    return frozenset() if view is None else frozenset(f.column_id for f in view.schema().fields if f.column_id)
