"""A run as one look at it: numbers, tables and schema changes, as plain values that somebody shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from historian.schema.diff import Difference

__all__ = ["CopyPicture", "RunPicture", "SchemaChange", "TablePicture", "TableState"]


class TableState(IntEnum):
    """How a table stands, what needs a person first."""

    STOPPED = 0
    CANCELLED = 1
    COPYING = 2
    REPAIRING = 3
    WAITING = 4
    DEFERRED = 5
    STREAMING = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPicture:
    """How far a table's rows are copied or compared, as :func:`connectors.monitoring.copies.copies_state` tells.

    Attributes:
        rows: so far; ``estimate``: in the end, about; None: not known.
        size_bytes, estimated_bytes: the same of their bytes in memory; None: not known.
        left_s: in about how many seconds; None: not known.
    """

    rows: int
    estimate: int | None = None
    rows_per_s: int = 0
    left_s: int | None = None
    size_bytes: int | None = None
    estimated_bytes: int | None = None
    bytes_per_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePicture:
    """A captured table.

    Attributes:
        rows: changelog rows in this process; ``rows_per_s``: of late.
        reason: why it is stopped; "": it is not.
        copy: of a table that is being copied or repaired, or waits for that.
        due_us: of one that is deferred, when its mirror takes up what its changelog has, UTC microseconds.
    """

    name: str
    state: TableState = TableState.STREAMING
    rows: int = 0
    rows_per_s: float = 0.0
    reason: str = ""
    copy: CopyPicture | None = None
    due_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """A statement on captured tables; ``number``: of its entry in the history; ``time_us``: of its event, UTC microseconds; ``changes``: what it did to the first of them."""

    number: int
    time_us: int
    tables: tuple[str, ...]
    statement: str
    changes: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPicture:
    """A run at one moment.

    Attributes:
        taken_us: the moment, UTC microseconds.
        connector: its name; ``source``: where its log is; ``sinks``: the kind of each.
        stage: what it is about: "starts", "runs", "tries again", "has ended".
        plan: the last one that all sinks hold, 0: none; ``position``: up to where.
        lag_s, lag_bytes: how old the sinks are, and how much log waits.
        log_bytes_per_s, copied_rows_per_s, copied_bytes_per_s: that come in, of late; ``rows_per_s``: changelog rows that go out.
        rows: changelog rows in this process.
        tables: the captured ones, in no order.
        changes: the last ones, the newest first.
        notes: what a person should know, as sentences; ``warnings``: what should worry one.
    """

    taken_us: int
    connector: str
    source: str
    sinks: tuple[str, ...]
    stage: str = "starts"
    plan: int = 0
    position: str = ""
    lag_s: float = 0.0
    lag_bytes: int = 0
    log_bytes_per_s: float = 0.0
    copied_rows_per_s: float = 0.0
    copied_bytes_per_s: float = 0.0
    rows_per_s: float = 0.0
    rows: int = 0
    tables: tuple[TablePicture, ...] = ()
    changes: tuple[SchemaChange, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
