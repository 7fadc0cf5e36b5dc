"""What each merge strategy must do, as a table: a state, a batch, and the changelog rows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from historian.changelog.merging.strategies import Append, ChangelogStream, Ledger, Snapshot, Strategy, UpsertStream
from historian.changelog.operations import Op

__all__ = ["CASES", "COLUMNS", "DEFAULT", "SYSTEM", "Case", "at", "strategies", "table"]

SYSTEM = datetime(2026, 1, 1, tzinfo=timezone.utc)
DEFAULT = SYSTEM - timedelta(hours=1)
MS = pa.timestamp("ms", tz="UTC")
COLUMNS = {
    "event_time": MS,
    "case": pa.string(),
    "id": pa.int32(),
    "part": pa.string(),
    "name": pa.string(),
    "qty": pa.int64(),
}

KEY = ("case", "id", "part")
SNAPSHOT = Snapshot(key=KEY)
BY_NAME = Snapshot(key=KEY, compare_columns=("name",))
UPSERT = UpsertStream(key=KEY)
CHANGES = ChangelogStream(key=KEY)
LEDGER = Ledger(key=KEY)
APPEND = Append()

Row = Mapping[str, Any]


def at(hour: int) -> datetime:
    return datetime(2025, 1, 1, hour, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Case:
    """Rows as ``(id, name, qty, hour of event_time)``, where a batch has operations behind the sign: ``("-R", 1, ...)``."""

    name: str
    strategy: Strategy
    former: Sequence[tuple[Any, ...]]
    batch: Sequence[tuple[Any, ...]]
    expected: Sequence[tuple[Any, ...]]
    """With the sign; the hour is None where the event time is :data:`DEFAULT`."""


CASES = (
    # ---- snapshots
    Case("the first load", SNAPSHOT, [], [(2, "b", 20, 1), (1, "a", 10, 1)], [("+A", 1, "a", 10, 1), ("+A", 2, "b", 20, 1)]),
    Case("nothing changed", SNAPSHOT, [(1, "a", 10, 1), (2, "b", None, 1)], [(2, "b", None, 1), (1, "a", 10, 1)], []),
    Case(
        "one new, one gone, one changed, one not",
        SNAPSHOT,
        [(1, "a", 10, 1), (2, "b", 20, 1), (3, "c", 30, 1)],
        [(1, "a", 11, 2), (3, "c", 30, 1), (4, "d", 40, 2)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "a", 11, 2), ("-R", 2, "b", 20, 1), ("+A", 4, "d", 40, 2)],
    ),
    Case(
        "only the event time changed",
        SNAPSHOT,
        [(1, "a", 10, 1)],
        [(1, "a", 10, 2)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "a", 10, 2)],
    ),
    Case("a missing event time is no change", SNAPSHOT, [(1, "a", 10, 1)], [(1, "a", 10, None)], []),
    Case(
        "a missing event time is filled where something changed",
        SNAPSHOT,
        [(1, "a", 10, 1)],
        [(1, "a", 11, None), (2, "b", 20, None)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "a", 11, None), ("+A", 2, "b", 20, None)],
    ),
    Case(
        "a value comes, a value goes",
        SNAPSHOT,
        [(1, None, 10, 1), (2, "b", 20, 1)],
        [(1, "a", 10, 1), (2, "b", None, 1)],
        [("-C", 1, None, 10, 1), ("+C", 1, "a", 10, 1), ("-C", 2, "b", 20, 1), ("+C", 2, "b", None, 1)],
    ),
    Case("another key", SNAPSHOT, [(1, "a", 10, 1)], [(9, "a", 10, 1)], [("-R", 1, "a", 10, 1), ("+A", 9, "a", 10, 1)]),
    Case(
        "keys of two columns",
        SNAPSHOT,
        [((1, "x"), "a", 10, 1), ((1, "y"), "b", 10, 1)],
        [((1, "y"), "b", 11, 1), ((2, "x"), "c", 10, 1)],
        [
            ("-R", (1, "x"), "a", 10, 1),
            ("-C", (1, "y"), "b", 10, 1),
            ("+C", (1, "y"), "b", 11, 1),
            ("+A", (2, "x"), "c", 10, 1),
        ],
    ),
    Case("an empty snapshot", SNAPSHOT, [(1, "a", 10, 1)], [], [("-R", 1, "a", 10, 1)]),
    Case("columns that are not compared", BY_NAME, [(1, "a", 10, 1)], [(1, "a", 11, 1)], []),
    Case(
        "columns that are compared",
        BY_NAME,
        [(1, "a", 10, 1)],
        [(1, "b", 11, 1)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "b", 11, 1)],
    ),
    # ---- upserts
    Case("first upserts", UPSERT, [], [("+A", 1, "a", 10, 1), ("+A", 2, "b", 20, 1)], [("+A", 1, "a", 10, 1), ("+A", 2, "b", 20, 1)]),
    Case(
        "an upsert of a row that is there",
        UPSERT,
        [(1, "a", 10, 1), (2, "b", 20, 1)],
        [("+A", 1, "a", 11, 2), ("+A", 3, "c", 30, 2)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "a", 11, 2), ("+A", 3, "c", 30, 2)],
    ),
    Case("an upsert that changes nothing", UPSERT, [(1, "a", 10, 1)], [("+A", 1, "a", 10, 1)], []),
    Case("a delete carries the row that was there", UPSERT, [(1, "a", 2, 1)], [("-R", 1, None, 0, 5)], [("-R", 1, "a", 2, 1)]),
    Case("a delete of a row that is not there", UPSERT, [], [("-R", 1, "a", 2, 1)], []),
    Case(
        "the last of a batch counts",
        UPSERT,
        [(1, "a", 10, 1)],
        [("+A", 1, "b", 11, 2), ("-R", 1, None, None, 3), ("+A", 1, "c", 12, 4), ("+A", 2, "x", 1, 2), ("+A", 2, "y", 2, 3)],
        [("-C", 1, "a", 10, 1), ("+C", 1, "c", 12, 4), ("+A", 2, "y", 2, 3)],
    ),
    Case("an insert that goes in its batch", UPSERT, [], [("+A", 1, "a", 10, 1), ("-R", 1, "a", 10, 2)], []),
    Case("an update that is taken back in its batch", UPSERT, [(1, "a", 10, 1)], [("+A", 1, "b", 10, 2), ("+A", 1, "a", 10, 1)], []),
    Case(
        "upserts of keys of two columns",
        UPSERT,
        [((1, "x"), "a", 10, 1)],
        [("+A", (1, "y"), "a", 10, 1), ("-R", (1, "x"), None, None, None)],
        [("-R", (1, "x"), "a", 10, 1), ("+A", (1, "y"), "a", 10, 1)],
    ),
    # ---- changelogs
    Case(
        "several transitions of one key keep their order",
        CHANGES,
        [],
        [("+A", 1, "a", 1, 1), ("-C", 1, "a", 1, 1), ("+C", 1, "b", 2, 2), ("-R", 1, "b", 2, 2), ("+A", 1, "c", 3, 3)],
        [("+A", 1, "a", 1, 1), ("-C", 1, "a", 1, 1), ("+C", 1, "b", 2, 2), ("-R", 1, "b", 2, 2), ("+A", 1, "c", 3, 3)],
    ),
    Case(
        "changes go on where the state ends",
        CHANGES,
        [(1, "a", 1, 1), (2, "b", 2, 2)],
        [("-C", 2, "b", 2, None), ("+C", 2, "c", 3, None), ("-R", 1, "a", 1, None)],
        [("-C", 2, "b", 2, 2), ("+C", 2, "c", 3, None), ("-R", 1, "a", 1, 1)],
    ),
    # ---- ledgers
    Case("first records, by event time", LEDGER, [], [(1, "a", 1, 3), (2, "b", 2, 1)], [("+A", 2, "b", 2, 1), ("+A", 1, "a", 1, 3)]),
    Case("known records go", LEDGER, [(1, "a", 1, 1)], [(1, "a", 1, 1), (2, "b", 2, 2)], [("+A", 2, "b", 2, 2)]),
    Case("nothing but known records", LEDGER, [(1, "a", 1, 1)], [(1, "a", 1, 1)], []),
    Case("of a known key the first record stays", LEDGER, [(1, "a", 1, 1)], [(1, "z", 9, 9)], []),
    Case("one record twice in a batch", LEDGER, [], [(1, "a", 1, 1), (1, "a", 1, 1)], [("+A", 1, "a", 1, 1)]),
    Case("records without event time", LEDGER, [], [(1, "a", 1, None)], [("+A", 1, "a", 1, None)]),
    Case(
        "records with keys of two columns",
        LEDGER,
        [((1, "x"), "a", 1, 1)],
        [((1, "x"), "a", 1, 1), ((1, "y"), "a", 1, 1)],
        [("+A", (1, "y"), "a", 1, 1)],
    ),
    Case("an old record comes late", LEDGER, [(5, "e", 5, 5)], [(1, "a", 1, 1)], [("+A", 1, "a", 1, 1)]),
    # ---- appended rows
    Case("rows are added, equal ones too", APPEND, [], [(1, "a", 1, 2), (1, "a", 1, 2)], [("+A", 1, "a", 1, 2)] * 2),
    Case("rows are added by event time", APPEND, [], [(1, "a", 1, 2), (2, "b", 1, 1)], [("+A", 2, "b", 1, 1), ("+A", 1, "a", 1, 2)]),
)  # fmt: skip

_SIGNS = {op.sign: int(op) for op in Op}


def strategies() -> tuple[Strategy, ...]:
    """The strategies that the cases use, each once."""
    return tuple(dict.fromkeys(case.strategy for case in CASES))


def table(case: Case, rows: Sequence[tuple[Any, ...]], *, default: datetime | None = None) -> pa.Table:
    """*rows* of a case with its columns, ``op`` first where they have one."""
    has_ops = (
        isinstance(case.strategy, UpsertStream | ChangelogStream) and rows is case.batch
    ) or rows is case.expected
    dicts = []
    for row in rows:
        sign, (key, name, qty, hour) = (row[0], row[1:]) if has_ops else (None, row)
        number, part = key if isinstance(key, tuple) else (key, "")
        time = default if hour is None else at(hour)
        dicts.append(
            {"event_time": time, "case": case.name, "id": number, "part": part, "name": name, "qty": qty}
            | ({"op": _SIGNS[sign]} if has_ops else {})
        )
    fields = {"op": pa.int32(), **COLUMNS} if has_ops else COLUMNS
    return pa.Table.from_pylist(dicts, pa.schema(list(fields.items())))
