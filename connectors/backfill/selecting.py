"""SELECTs of pieces, side by side: each over a connection and from a snapshot of its own."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from historian.errors import StoreError
from historian.plans.plans import CopiedPiece

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from historian.errors import SourceError
    from historian.plans.plans import Plan

__all__ = ["ByThreads", "Failures", "PieceCounts", "PieceSelects", "Selects", "read_piece"]

_log = logging.getLogger(__name__)
_TOLD_S = 1.0
"""Between two words on what SELECTs have given. Those that take less are told of by their plan alone."""


def _nobody(piece: Piece) -> None:
    """Is told that a piece was read."""


Failures = Mapping[int, "SourceError"]
"""Why pieces could not be read, by table id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSelects:
    """SELECTs of pieces from one server. It pickles, so that another process can make them.

    Attributes:
        server: that is asked; ``identity``: of it, since an address may lead to others; ``is_replica``: it is not the source itself.
        plan: as of whose end the rows are wanted; a SELECT may see later ones.
        numbered: the number of each piece among all that the plan reads.
        ended: is told of each piece that was read, in this process (see :meth:`elsewhere`).
    """

    server: ServerAddress
    identity: str
    is_replica: bool
    flavor: str
    plan: Plan
    numbered: Mapping[Piece, int]
    ended: Callable[[Piece], None] = _nobody

    def elsewhere(self) -> PieceSelects:
        """The same for another process, which tells nobody here."""
        return replace(self, ended=_nobody)

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
                        self.ended(piece)
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


class PieceCounts:
    """Counts what the SELECTs of a plan's pieces give, and tells it while they take long. Safe to share between the threads that read.

    Args:
        tell: is given that as JSON, a second apart at least, and "" behind the SELECTs.
        clock_s: a clock that never goes back.
    """

    def __init__(
        self, tell: Callable[[str], None] = lambda _: None, *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self._plan = 0
        self._pieces: dict[int, Piece] = {}
        self._numbers: Mapping[Piece, int] = {}
        self._rows: dict[int, int] = {}
        self._bytes: dict[int, int] = {}
        self._read: set[int] = set()
        self._next_s = 0.0
        self._is_told = self._is_telling = False

    @contextmanager
    def of(self, plan: int, numbered: Mapping[Piece, int]) -> Iterator[None]:
        """Counts those of plan number *plan*, by the number of each piece, inside the ``with``."""
        self._plan, self._numbers = plan, numbered
        self._pieces = {number: piece for piece, number in numbered.items()}
        self._rows, self._bytes = dict.fromkeys(self._pieces, 0), dict.fromkeys(self._pieces, 0)
        self._read.clear()
        self._next_s = self._clock_s() + _TOLD_S
        try:
            yield
        finally:
            if self._is_told:
                self._is_told = False
                self._say("")

    def adding(self, add: Callable[[Chunk], None]) -> Callable[[Chunk], None]:
        """*add* for chunks that count."""

        def counted(chunk: Chunk) -> None:
            add(chunk)
            if not chunk.stopped:
                number = chunk.sequence >> SEQUENCE_BITS
                with self._lock:
                    self._rows[number] += chunk.rows.num_rows
                    self._bytes[number] += chunk.rows.nbytes
                self._look()

        return counted

    def ended(self, piece: Piece) -> None:
        """The SELECT of *piece* has given all of its rows."""
        with self._lock:
            self._read.add(self._numbers[piece])
        self._look()

    def copied(self, piece: Piece) -> CopiedPiece:
        """What the SELECT of *piece* has given."""
        number = self._numbers[piece]
        return CopiedPiece(upto=piece.range.upto, rows=self._rows[number], size_bytes=self._bytes[number])

    def _look(self) -> None:
        with self._lock:
            now_s = self._clock_s()
            if self._is_telling or now_s < self._next_s:
                return
            self._next_s = now_s + _TOLD_S
            self._is_told = self._is_telling = True
            told = json.dumps({"plan": self._plan, "chunks": [self._chunk(number) for number in self._pieces]})
        # A store can be slow: of the threads that read, one waits for it.
        try:
            self._say(told)
        finally:
            self._is_telling = False

    def _chunk(self, number: int) -> dict[str, object]:
        piece = self._pieces[number]
        snapshot = piece.version.snapshot
        begun = "reading" if self._rows[number] else "waiting"
        return {
            "table": f"table {piece.table_id}" if snapshot is None else str(snapshot.name),
            "behind": piece.range.after,
            "upto": piece.range.upto,
            "state": "read" if number in self._read else begun,
            "rows": self._rows[number],
            "bytes": self._bytes[number],
        }

    def _say(self, text: str) -> None:
        try:
            self._tell(text)
        except StoreError as error:  # the copy itself does not need it, and its plan goes to the same store
            _log.info("what is read is not told: %s", error)


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
