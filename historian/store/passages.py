"""From which offset on each partition's rows of a table are of which version: what plans of topics say, kept beyond them."""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from historian.plans.plans import PartitionRange, Passage, Plan
from historian.store.tables import passages

__all__ = ["held_passages", "record_passages"]


def record_passages(connection: Connection, plan: Plan) -> None:
    """Adds the passages of *plan*, in its transaction. Those that are there stay, but for rows that were passed over and are read now."""
    parts = [part for part in plan.ranges if isinstance(part, PartitionRange) and part.passages]
    if not parts:
        return
    known = {(*key, each.offset): each.is_read for key, found in held_passages(connection).items() for each in found}
    for part in parts:
        for passage in part.passages:
            place = (part.file, passage.table_id, passage.offset)
            if place in known and passage.is_read and not known[place]:
                connection.execute(
                    update(passages)
                    .where(
                        passages.c.part == part.file,
                        passages.c.table_id == passage.table_id,
                        passages.c.first_offset == passage.offset,
                    )
                    .values(version=passage.version)
                )
            elif place not in known:
                connection.execute(
                    insert(passages).values(
                        part=part.file,
                        table_id=passage.table_id,
                        first_offset=passage.offset,
                        version=passage.version,
                    )
                )
            known[place] = known.get(place, False) or passage.is_read


def held_passages(connection: Connection) -> dict[tuple[str, int], tuple[Passage, ...]]:
    """All passages of all plans so far."""
    found: dict[tuple[str, int], tuple[Passage, ...]] = {}
    query = select(passages).order_by(passages.c.part, passages.c.table_id, passages.c.first_offset)
    for row in connection.execute(query):
        passage = Passage(table_id=row.table_id, version=row.version, offset=row.first_offset)
        key = (row.part, row.table_id)
        found[key] = (*found.get(key, ()), passage)
    return found
