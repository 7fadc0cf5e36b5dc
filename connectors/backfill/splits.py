"""What a plan reads of which tables: pieces, each a range of keys."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.backfill.estimates import estimated_rows
from connectors.backfill.keys.boundaries import boundaries
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.predicates import where
from connectors.backfill.keys.split_key import SplitKey
from connectors.config import CopyLimits
from connectors.readers.binlog.selected.failures import is_interrupted, is_of_a_changed_table
from historian.errors import SourceError
from historian.plans.key_order import has_plain_order
from historian.plans.key_ranges import Key, KeyRange
from historian.plans.plans import PlannedVersion

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from historian.schema.snapshots import Snapshot

__all__ = ["LAST_PIECES", "Piece", "even_pieces", "groups", "next_pieces", "repaired_by_ranges", "whole_table"]

_log = logging.getLogger(__name__)
_EVEN_FROM_ROWS = 100_000
"""Fewer are read sooner than it is found out where to cut them."""
LAST_PIECES = 100
"""So many tables at most end in one plan: each takes a SELECT and a commit or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows of one table that one SELECT gives.

    Attributes:
        version: of the table, in force where it is read.
        key: in whose order the table is copied; None: it is one piece.
        range: of its keys.
        of_source: whether only the source says what the rows are: statements can leave others at a replica.
        condition: of the SELECT, in place of one for the range.
    """

    table_id: int
    version: PlannedVersion
    key: SplitKey | None
    range: KeyRange
    of_source: bool = False
    condition: str = ""

    @property
    def key_ids(self) -> tuple[int, ...]:
        """The ids of the key's columns; () without a key."""
        return () if self.key is None else tuple(column.id for column in self.key.columns)

    @property
    def where(self) -> str:
        """The condition of its SELECT; "": all rows."""
        if self.condition:
            return self.condition
        return "" if self.key is None or self.range == KeyRange() else where(self.key, self.range)


def next_pieces(
    address: ServerAddress,
    flavor: str,
    tables: Mapping[int, tuple[PlannedVersion, Key | None]],
    limits: CopyLimits,
    chunk_rows: Mapping[int, int],
) -> list[Piece]:
    """The next pieces of *tables*, those of one behind each other, as many as one plan takes.

    Args:
        tables: id to the version in force and up to where it is copied; None: not at all.
        chunk_rows: id to how many rows of it a piece takes, where that is known.

    Raises:
        ConnectionLost, SourceError: the source cannot be asked. What is left of a table that is not what it was is one piece; one that
            is locked has none now.
    """
    found: list[Piece] = []
    full = ended = 0
    with closing(address.connect()) as connection:
        prepare_session(connection)
        for table_id, (version, after) in tables.items():
            if full >= limits.connections or ended >= LAST_PIECES:
                break
            assert version.snapshot is not None  # noqa: S101 - tables that are copied exist
            key = SplitKey.of(version.snapshot, flavor)
            bounds: list[Key | None] = [None]
            if key is not None:
                rows = min(chunk_rows.get(table_id, limits.chunk_rows), limits.chunk_rows)
                try:
                    bounds = boundaries(connection, key, after, rows=rows, count=limits.connections - full)
                except SourceError as error:
                    if is_interrupted(error):
                        _log.info("table %s: its rows are read with a later plan: %s", key.table, error)
                        continue
                    # One that is not as the schema says fails at its SELECT too, which says why.
                    if not is_of_a_changed_table(error):
                        raise
            for begin, upto in zip((after, *bounds), bounds, strict=False):
                found.append(Piece(table_id=table_id, version=version, key=key, range=KeyRange(after=begin, upto=upto)))
            full += sum(bound is not None for bound in bounds)
            ended += bounds[-1] is None
    return found


def whole_table(table_id: int, version: PlannedVersion, flavor: str, *, of_source: bool = True) -> Piece:
    """All rows of a table as one piece."""
    assert version.snapshot is not None  # noqa: S101 - the table exists
    key = SplitKey.of(version.snapshot, flavor)
    return Piece(table_id=table_id, version=version, key=key, range=KeyRange(), of_source=of_source)


def even_pieces(
    address: ServerAddress, table_id: int, version: PlannedVersion, flavor: str, connections: int
) -> list[Piece]:
    """All rows of a table, of many rows a piece for each of *connections*.

    Raises:
        ConnectionLost, SourceError: the source cannot be asked.
    """
    assert version.snapshot is not None  # noqa: S101 - the table exists
    name = version.snapshot.name
    rows = estimated_rows(address, (name,)).get(name, 0) // connections
    if connections < 2 or rows < _EVEN_FROM_ROWS:
        return [whole_table(table_id, version, flavor)]
    limits = CopyLimits(connections=connections, chunk_rows=rows)
    found = next_pieces(address, flavor, {table_id: (version, None)}, limits, {})
    last = found.pop() if found else whole_table(table_id, version, flavor)
    return [*found, replace(last, range=KeyRange(after=last.range.after))]


def repaired_by_ranges(snapshot: Snapshot | None, flavor: str) -> bool:
    """Whether a table can be repaired range by range: what tells its rows apart is what it is read by, in an order that targets have too."""
    key = None if snapshot is None else SplitKey.of(snapshot, flavor)
    if snapshot is None or key is None or tuple(column.id for column in key.columns) != snapshot.primary_key:
        return False
    return all(has_plain_order(column.type) for column in key.columns)


def groups(pieces: Sequence[Piece], count: int) -> Iterator[Sequence[Piece]]:
    """*pieces* dealt to *count* connections."""
    for first in range(min(count, len(pieces))):
        yield pieces[first::count]
