"""SELECTs of pieces, side by side: each over a connection and from a snapshot of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.snapshots import NotVisible, SourceSnapshot, VisibleLog, later_moment, snapshot_behind
from connectors.backfill.splits import Piece, groups
from connectors.readers.binlog.selected.failures import SelectInterrupted, TableChanged
from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.chunks import Chunk

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from historian.errors import SourceError
    from historian.plans.plans import Plan

__all__ = ["ByThreads", "Failures", "PieceSelects", "Selects", "read_piece"]

Failures = Mapping[int, "SourceError"]
"""Why pieces could not be read, by table id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSelects:
    """SELECTs of pieces from one server. It pickles, so that another process can make them.

    Attributes:
        server: that is asked; ``identity``: of it, since an address may lead to others; ``is_replica``: it is not the source itself.
        plan: as of whose end the rows are wanted; a SELECT may see later ones.
        numbered: the number of each piece among all that the plan reads.
    """

    server: ServerAddress
    identity: str
    is_replica: bool
    flavor: str
    plan: Plan
    numbered: Mapping[Piece, int]

    def read(self, pieces: Iterable[Piece], add: Callable[[Chunk], None], visible: VisibleLog) -> Failures:
        """Gives the rows of *pieces* to *add*, over one connection. What a table that failed has given is a part of its rows.

        Each piece is read at a moment of its own, so that no table is locked longer than a SELECT of it takes.

        Args:
            visible: what others have found out about the server.

        Raises:
            ConnectionLost: the source does not answer, or another server does.
            SourceError: the server refuses a SELECT.
        """
        failures: dict[int, SourceError] = {}
        all_pieces = list(pieces)
        rest = list(all_pieces)
        end, is_replica = self.plan.end, self.is_replica
        try:
            while rest:
                with snapshot_behind(
                    self.server, self.flavor, end, server=self.identity, is_replica=is_replica, visible=visible
                ) as snapshot:
                    prepare_session(snapshot.connection)
                    while rest:
                        piece = rest.pop(0)
                        try:
                            read_piece(snapshot, self.flavor, self.plan, piece, self.numbered[piece], add)
                        except (TableChanged, SelectInterrupted) as error:
                            failures[piece.table_id] = error
                            break  # its connection is closed
                        if not snapshot.connection.open:
                            break  # behind a value that cannot be represented
                        later_moment(snapshot)
        except NotVisible as error:
            if is_replica:
                raise
            failures |= {piece.table_id: error for piece in all_pieces}
        except ConnectionLost as error:
            if not is_replica:
                raise
            # The log can be followed without it.
            failures |= {piece.table_id: error for piece in all_pieces}
        return failures


class Selects(Protocol):
    """Makes SELECTs of pieces side by side."""

    def __call__(self, selects: PieceSelects, pieces: Sequence[Piece], add: Callable[[Chunk], None]) -> list[Failures]:
        """Gives the rows of *pieces* to *add*, from several threads at once. Errors are those of :meth:`PieceSelects.read`."""


@dataclass(frozen=True, slots=True)
class ByThreads:
    """Makes them by threads of this process, over so many ``connections``."""

    connections: int = 1

    def __call__(self, selects: PieceSelects, pieces: Sequence[Piece], add: Callable[[Chunk], None]) -> list[Failures]:
        """See :class:`Selects`."""
        if not pieces:
            return []
        with ThreadPoolExecutor(self.connections, "copies") as pool:
            read = partial(selects.read, add=add, visible=VisibleLog())
            return list(pool.map(read, groups(pieces, self.connections)))


def read_piece(
    snapshot: SourceSnapshot, flavor: str, plan: Plan, piece: Piece, number: int, add: Callable[[Chunk], None]
) -> None:
    """Gives the rows of *piece* to *add*, as those of that *number* among all that the plan reads."""
    chunks = select_rows(
        snapshot.connection,
        piece.version,
        table_id=piece.table_id,
        where=piece.where,
        flavor=flavor,
        position=plan.end,
        event_time_us=plan.system_time_us,
        sequence=number << SEQUENCE_BITS,
    )
    for chunk in chunks:
        add(chunk)
