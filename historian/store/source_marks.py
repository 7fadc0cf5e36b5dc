"""How far each partition has come in the log of its source, as plans say it: the last one's mark counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from historian import codec
from historian.plans.plans import PartitionRange, Plan
from historian.plans.source_marks import SourceMark
from historian.store.facts import fact, set_fact

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["held_marks", "record_marks"]

_NAME = "source_marks"
_FORM: Any = dict[str, SourceMark]


def record_marks(connection: Connection, plan: Plan) -> None:
    """Adds the marks of *plan*, in its transaction."""
    parts = (part for part in plan.ranges if isinstance(part, PartitionRange))
    marks = {part.file: part.mark for part in parts if part.mark is not None}
    if marks:
        set_fact(connection, _NAME, codec.dump_short(_FORM, {**held_marks(connection), **marks}))


def held_marks(connection: Connection) -> dict[str, SourceMark]:
    """Of each partition, as ``topic:partition``, the last mark."""
    body = fact(connection, _NAME)
    found: dict[str, SourceMark] = {} if body is None else codec.load(_FORM, body)
    return found
