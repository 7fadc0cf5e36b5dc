"""How far tables are copied from the source, and the rows that the last plans copy.

The rows stand beside their plan until it is written and the next one is made, since the source may not be able to give them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select, update

from historian import codec
from historian.plans.key_ranges import Key
from historian.plans.plans import CopiedPiece, Plan, TableCopy
from historian.store.tables import copied_rows, copies, open_copies, progress

__all__ = [
    "CopyProgress",
    "begin_repair_anew",
    "copied_chunk",
    "copy_progress",
    "left_s",
    "note_open",
    "open_progress",
    "record_copies",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """How far a table is copied.

    Attributes:
        plan: the last plan that said so.
        key: ids of the columns in whose order it is copied; (): in one go, or not begun.
        upto: rows with keys up to here are copied; None: none are.
        is_done: all of them are.
        rows: copied so far.
        begun_us: when its first plan was made, UTC microseconds; ``since_us``: the first one that copied rows; ``noted_us``: its last.
        noted_rows: copied before its last plan.
        size_bytes: of the rows that are copied, in memory, as Arrow; ``noted_bytes``: of ``noted_rows``. None: not known, since a plan of a
            release that did not say it is among those that copied them.
        pieces: of a table that is not whole, those of the last plan that read some; ``read``: that plan's number, 0: none.
        behind: up to where the rows were copied before that one.
        estimate: how many rows the table held where the copy began, about; 0: not known.
        repairs: why targets are compared with what is copied; "": they are not, or are no more.
    """

    plan: int
    key: tuple[int, ...] = ()
    upto: Key | None = None
    is_done: bool = False
    rows: int = 0
    begun_us: int = 0
    since_us: int = 0
    noted_us: int = 0
    noted_rows: int = 0
    estimate: int = 0
    repairs: str = ""
    size_bytes: int | None = None
    noted_bytes: int | None = None
    pieces: tuple[CopiedPiece, ...] = ()
    read: int = 0
    behind: Key | None = None

    @property
    def rows_per_s(self) -> float:
        """How fast rows came so far; 0: not known yet."""
        passed_us = self.noted_us - self.since_us
        return self.noted_rows * 1e6 / passed_us if passed_us > 0 else 0.0

    @property
    def bytes_per_s(self) -> float:
        """How fast their bytes came so far; 0: not known."""
        passed_us = self.noted_us - self.since_us
        return (self.noted_bytes or 0) * 1e6 / passed_us if passed_us > 0 else 0.0

    @property
    def estimated_bytes(self) -> int | None:
        """About how many bytes all rows have, if the others are as wide as those that were copied; None: not known."""
        if not (self.estimate and self.rows and self.size_bytes):
            return None
        return round(self.size_bytes / self.rows * self.estimate)

    @property
    def left_s(self) -> int | None:
        """In about how many seconds the rest is copied, at that rate; None: not known."""
        if self.is_done or not self.estimate or not self.rows_per_s:
            return None
        return round(max(self.estimate - self.rows, 0) / self.rows_per_s)


def left_s(progress: Collection[CopyProgress]) -> int | None:
    """In about how many seconds all is copied that *progress* tells of, at the rate of all together; None: not known."""
    begun = [each.since_us for each in progress if each.since_us]
    passed_us = max((each.noted_us for each in progress), default=0) - min(begun, default=0)
    copied = sum(each.noted_rows for each in progress)
    if not begun or passed_us <= 0 or not copied:
        return None
    left = sum(max(each.estimate - each.rows, 0) for each in progress if not each.is_done)
    return round(left * passed_us / copied / 1e6)


def record_copies(connection: Connection, plan: Plan, chunks: Iterable[bytes]) -> None:
    """Notes what *plan* copies, with its rows in place of those of plans that are written. Once a plan."""
    written = connection.execute(select(progress.c.plan).where(progress.c.name == "")).scalar()
    connection.execute(delete(copied_rows).where(copied_rows.c.plan <= (written or 0)))
    for number, body in enumerate(chunks):
        connection.execute(insert(copied_rows).values(plan=plan.number, number=number, body=body))
    for table in plan.tables:
        if table.copy is None:
            if table.behind is not None:  # Its targets do not hold what was repaired.
                begin_repair_anew(connection, table.table_id)
            continue
        held = _held(connection, table.table_id)
        copy = table.copy
        # Targets that begin anew begin with none of the rows that were copied before.
        before = CopyProgress(plan=plan.number, begun_us=plan.system_time_us, size_bytes=0)
        compares_all = bool(copy.repairs) and copy.behind is None and copy.clears is None and not copy.only
        begins = compares_all or (not copy.is_done and copy.upto is None)
        before = before if held is None or begins else held
        now = replace(
            _with_pieces(before, copy, plan.number),
            plan=plan.number,
            key=copy.key,
            upto=copy.upto,
            is_done=copy.is_done,
            rows=before.rows + (0 if copy.only else copy.rows),
            since_us=before.since_us or (plan.system_time_us if copy.rows else 0),
            noted_us=plan.system_time_us,
            noted_rows=before.rows,
            size_bytes=_sum(before.size_bytes, copy),
            noted_bytes=before.size_bytes,
            estimate=copy.estimate or before.estimate,
            # A first copy goes on as one behind a comparison of some rows.
            repairs="" if copy.is_done else before.repairs if copy.only else copy.repairs,
        )
        text = codec.dump(CopyProgress, now)
        if held is None:
            connection.execute(insert(copies).values(table_id=table.table_id, body=text))
        else:
            _set(connection, table.table_id, text)
        was_open = held is not None and not held.is_done
        if was_open and now.is_done:
            connection.execute(delete(open_copies).where(open_copies.c.table_id == table.table_id))
        elif not was_open and not now.is_done:
            note_open(connection, [table.table_id])


def begin_repair_anew(connection: Connection, table_id: int) -> None:
    """Forgets how far a table was repaired, which stops meanwhile: its rows up to there may be others by the time it goes on."""
    held = _held(connection, table_id)
    if held is not None and held.repairs:
        _set(connection, table_id, codec.dump(CopyProgress, _anew(held)))


def _anew(held: CopyProgress) -> CopyProgress:
    none = replace(held, key=(), upto=None, rows=0, noted_rows=0, size_bytes=0, noted_bytes=0)
    return replace(none, pieces=(), read=0, behind=None)


def _with_pieces(before: CopyProgress, copy: TableCopy, number: int) -> CopyProgress:
    """*before* with the pieces of a plan that reads some; of a table that is whole none are kept, since there are many."""
    if copy.is_done:
        return replace(before, pieces=(), read=0, behind=None)
    if not copy.pieces:
        return before
    return replace(before, pieces=copy.pieces, read=number, behind=copy.behind)


def _sum(before: int | None, copy: TableCopy) -> int | None:
    """The bytes of the rows copied before and with *copy*; None where either's are not known."""
    if not copy.rows or copy.only:
        return before
    return None if before is None or copy.size_bytes is None else before + copy.size_bytes


def copy_progress(connection: Connection) -> dict[int, CopyProgress]:
    """How far tables are copied, by table id; those that never were to be are left out."""
    return _progress(connection, select(copies))


def open_progress(connection: Connection, unless_more_than: int = 0) -> dict[int, CopyProgress]:
    """The same of tables whose copy is not done; of all where there are no more than so many."""
    few = connection.execute(select(copies.c.table_id).limit(unless_more_than + 1)).all() if unless_more_than else ()
    if few and len(few) <= unless_more_than:
        return copy_progress(connection)
    return _progress(connection, select(copies).join(open_copies, copies.c.table_id == open_copies.c.table_id))


def note_open(connection: Connection, table_ids: Iterable[int]) -> None:
    """Notes that the copies of these are not done, none of which was noted."""
    new = [{"table_id": table_id} for table_id in table_ids]
    if new:
        connection.execute(insert(open_copies), new)


def _progress(connection: Connection, query: Select[Any]) -> dict[int, CopyProgress]:
    return {int(row.table_id): _loaded(row.body) for row in connection.execute(query).all()}


@lru_cache(maxsize=16_384)
def _loaded(body: str) -> CopyProgress:
    """Most of many tables are as they were when they were last asked for."""
    return codec.load(CopyProgress, body)


def copied_chunk(connection: Connection, plan: int, number: int) -> bytes | None:
    """The chunk of that number, from 0, among the rows that plan *plan* copies; None where there is none."""
    query = select(copied_rows.c.body).where(copied_rows.c.plan == plan, copied_rows.c.number == number)
    body = connection.execute(query).scalar()
    return None if body is None else bytes(body)


def _set(connection: Connection, table_id: int, body: str) -> None:
    connection.execute(update(copies).where(copies.c.table_id == table_id).values(body=body))


def _held(connection: Connection, table_id: int) -> CopyProgress | None:
    body = connection.execute(select(copies.c.body).where(copies.c.table_id == table_id)).scalar()
    return None if body is None else codec.load(CopyProgress, body)
