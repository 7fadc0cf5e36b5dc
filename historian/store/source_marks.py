"""How far each partition has come in the log of its source, up to the last plan."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from historian import codec
from historian.plans.source_marks import SourceMark, SourceMarks
from historian.store.facts import fact, set_fact

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import Connection

__all__ = ["held_marks", "record_marks"]

_PREFIX = "source_mark:"
_FORM: Any = dict[str, SourceMark]


def record_marks(connection: Connection, marks: SourceMarks) -> None:
    """Puts the marks of a plan in the place of those before."""
    for partition, mark in marks.items():
        set_fact(connection, _name(partition), codec.dump_short(_FORM, {partition: mark}))


def held_marks(connection: Connection, partitions: Collection[str]) -> dict[str, SourceMark]:
    """Of each of *partitions*, as ``topic:partition``, the last mark; those without one are left out."""
    bodies = (fact(connection, _name(partition)) for partition in partitions)
    return {partition: mark for body in bodies if body for partition, mark in codec.load(_FORM, body).items()}


def _name(partition: str) -> str:
    # A topic's name may be as long as a fact's.
    return _PREFIX + blake2b(partition.encode(), digest_size=16).hexdigest()
