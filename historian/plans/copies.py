"""How far the rows of a table are copied from the source: a table's part in a plan of its backfill.

A table is gone through in the order of a key, so that one key says what is copied. The order is the server's.
"""

from __future__ import annotations

from dataclasses import dataclass

from historian.plans.key_ranges import Key

__all__ = ["TableCopy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCopy:
    """What a plan copies of a table, as of the plan's end, behind what plans before it copied.

    Attributes:
        key: ids of the columns in whose order it is copied; (): all in one go.
        behind: rows with keys up to here were copied before the plan; None: none were.
        upto: those up to here are copied with the plan, or before it; None: none are yet.
        is_done: all rows are copied with the plan.
        rows: how many are copied with the plan.
        repairs: why targets are compared with all rows of the table as of the plan's end, and given what differs. "": they hold
            none of what is copied. With a repair all rows are copied with the plan, and none of its log goes on.
        clears: the first segment behind a statement that takes all rows: from that segment on nothing is left to copy; None: no such one.
    """

    key: tuple[int, ...] = ()
    behind: Key | None = None
    upto: Key | None = None
    is_done: bool = False
    rows: int = 0
    repairs: str = ""
    clears: int | None = None
