"""Forgetting what lies before a position: versions that nobody can ask for any more, and plans that nobody needs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, select

from historian import codec
from historian.errors import PositionAhead
from historian.history.history import History
from historian.history.prefix import covers
from historian.history.stored_timeline import edit_rows
from historian.history.timeline import Gap, Horizon
from historian.positions import LogPosition
from historian.store.contents import loosened
from historian.store.facts import set_fact
from historian.store.recording import forget_plans, forget_snapshots
from historian.store.tables import edits, entries, gaps, plans, progress
from historian.store.timelines import insert_entries

__all__ = ["ForgetResult", "forget", "forget_purged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetResult:
    """What was forgotten.

    Attributes:
        position: where the history begins now; before what was asked for where someone needs more.
        needed: the last plan that everyone has behind him; None where no plan is stored.
        entries, edits, plans: how many of each.
    """

    position: LogPosition
    needed: int | None
    entries: int
    edits: int
    plans: int


def forget(connection: Connection, history: History, before: LogPosition, held: Iterable[int]) -> ForgetResult:
    """Forgets versions that went out of force before *before*, and plans that everyone has behind him.

    Args:
        history: all that is stored, read in the same transaction.
        before: the first position that is to have a schema.
        held: the last plan that each target holds. What streams have committed is known from the store.

    Raises:
        PositionAhead: the log has not been read up to *before*.
        PositionUnknown: a statement cannot be compared with *before*.
    """
    if not covers(history.resolved, before):
        raise PositionAhead(
            "the log has not been read up to there", where=str(before), found=f"{history.resolved} read"
        )
    needed = _needed(connection, held)
    start = None if needed is None else _end_of(connection, needed)
    begin = before if start is None or covers(start, before) else start
    gone = 0 if needed is None else forget_plans(connection, needed)
    earlier = _count(connection)
    if covers(begin, history.origin):
        horizon, left = history.cut_at(begin)
        connection.execute(delete(edits).where(edits.c.number <= horizon.number))
        connection.execute(delete(entries).where(entries.c.number <= horizon.number))
        # A name that was not known then may be another table's by now.
        insert_entries(connection, [(entry, *edit_rows(entry, lambda _: 0)) for entry in left])
        set_fact(connection, "horizon", codec.dump(Horizon, horizon))
        for row in connection.execute(select(gaps)).all():
            if covers(begin, codec.load(Gap, row.body).end):
                connection.execute(delete(gaps).where(gaps.c.number == row.number))
    else:
        begin = history.origin
    forget_snapshots(connection)
    now = _count(connection)
    return ForgetResult(
        position=begin, needed=needed, entries=earlier[0] - now[0], edits=earlier[1] - now[1], plans=gone
    )


def forget_purged(connection: Connection, start: LogPosition) -> int:
    """Deletes plans that every stream has behind it and that end at or before *start*; says how many."""
    needed = _needed(connection, ())
    if needed is None:
        return 0
    query = select(plans.c.number, plans.c.body).where(plans.c.number < needed).order_by(plans.c.number)
    first = needed
    for number, body in connection.execute(query):
        if not covers(start, _position(body, "end")):
            first = number
            break
    return forget_plans(connection, first)


def _needed(connection: Connection, held: Iterable[int]) -> int | None:
    """The last plan that every target holds and every stream has committed; None where there are no plans."""
    oldest = connection.execute(select(func.min(plans.c.number))).scalar()
    if oldest is None:
        return None
    done: list[int] = [*held, *connection.execute(select(progress.c.plan)).scalars()]
    return min(done, default=int(oldest) - 1)


def _end_of(connection: Connection, number: int) -> LogPosition:
    """Where the plan behind plan *number* starts."""
    query = select(plans.c.body).where(plans.c.number >= number).order_by(plans.c.number).limit(1)
    body = connection.execute(query).scalar()
    if body is None:  # everyone is beyond the newest plan, as another store numbered it
        body = connection.execute(select(plans.c.body).order_by(plans.c.number.desc()).limit(1)).scalar_one()
    reached = json.loads(loosened(body))["number"] <= number
    return _position(body, "end" if reached else "start")


def _position(body: str, which: str) -> LogPosition:
    """The start or end of a stored plan."""
    return codec.load(LogPosition, json.dumps(json.loads(loosened(body))[which]))


def _count(connection: Connection) -> tuple[int, int]:
    heads, rows = (
        connection.execute(select(func.count()).select_from(table)).scalar_one() for table in (entries, edits)
    )
    return heads, rows
