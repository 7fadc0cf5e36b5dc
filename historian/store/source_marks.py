"""How far each partition has come in the log of its source, up to the last plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from historian import codec
from historian.plans.source_marks import SourceMark, SourceMarks
from historian.store.facts import set_fact
from historian.store.tables import facts

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["held_marks", "record_marks"]

_PREFIX = "source_mark "


def record_marks(connection: Connection, marks: SourceMarks) -> None:
    """Puts the marks of a plan in the place of those before."""
    for partition, mark in marks.items():
        set_fact(connection, _PREFIX + partition, codec.dump_short(SourceMark, mark))


def held_marks(connection: Connection) -> dict[str, SourceMark]:
    """Of each partition, as ``topic:partition``, the last mark."""
    named = select(facts.c.name, facts.c.body).where(facts.c.name.startswith(_PREFIX, autoescape=True))
    return {name.removeprefix(_PREFIX): codec.load(SourceMark, body) for name, body in connection.execute(named)}
