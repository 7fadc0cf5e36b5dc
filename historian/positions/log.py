"""Where a reader stands in a log: what was read is the identity, ``file:offset`` a hint that holds on one server.

Each flavor of log has a value of its own for what was read: a GTID set, the last GTID of each domain, or the next
offset of each partition. All of them know ``covers`` and a text; none has an order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from historian.errors import PositionError
from historian.names import TableName
from historian.positions.file import FilePosition
from historian.positions.gtid import GtidSet
from historian.positions.mariadb import MariadbGtids
from historian.positions.offsets import TopicOffsets

__all__ = [
    "KAFKA",
    "Gtids",
    "LogPosition",
    "PreparedXa",
    "TemporaryTable",
    "WhatWasRead",
    "missing_from",
    "parse_gtids",
    "parse_position",
    "parse_read",
]

KAFKA = "kafka"
"""The flavor of topics; all others are of binlogs."""

Gtids = GtidSet | MariadbGtids
"""What was read of a binlog."""

WhatWasRead = GtidSet | MariadbGtids | TopicOffsets
"""What was read of a log of any flavor."""


@lru_cache(maxsize=256)
def parse_gtids(text: str, flavor: str) -> Gtids:
    """The GTID position of that *text*: a MySQL set, or with *flavor* "mariadb" the last GTID of each domain."""
    return MariadbGtids.parse(text) if flavor == "mariadb" else GtidSet.parse(text)


@lru_cache(maxsize=256)
def parse_read(text: str, flavor: str) -> WhatWasRead:
    """What the position of that *text* has read, of a log of any *flavor*."""
    return TopicOffsets.parse(text) if flavor == KAFKA else parse_gtids(text, flavor)


def missing_from(wanted: Gtids, held: Gtids) -> Gtids | None:
    """What of *wanted* is not in *held*; None where nothing.

    A log from which *purged* is gone can be read behind *position* if nothing of *purged* is missing from *position*,
    and nothing of *position* from what the server has executed.

    Raises:
        PositionError: a MySQL set and a MariaDB position.
    """
    if isinstance(wanted, GtidSet) and isinstance(held, GtidSet):
        return wanted.subtract(held) or None
    if isinstance(wanted, MariadbGtids) and isinstance(held, MariadbGtids):
        return wanted.subtract(held) or None
    raise PositionError(
        "GTIDs of two kinds of server cannot be compared", where=str(wanted), expected=type(wanted).__name__, found=held
    )


class _Parsed:
    """Room for the parsed text, which a position is asked for again and again."""

    __slots__ = ("_read",)

    _read: WhatWasRead


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryTable:
    """A name that means a temporary table to one session.

    Attributes:
        session: the server's id in the high 32 bits, the thread's in the low ones.
        name: hides the real table of that name.
        doubtful: the log has no CREATE of it: what was marked as use of a temporary table was taken as done to the real one.
    """

    session: int
    name: TableName
    doubtful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedXa:
    """Where the rows of a prepared XA transaction stand in a log; they count when its XA COMMIT comes.

    Attributes:
        xid: as the log writes it, ``X'6162',X'',1``; it names one prepared transaction of a server at a time.
        gtid: of the transaction that ends with the PREPARE; "" where it has none.
        file, offset: of its first event; ``server``: whose file it is, as in positions.
        after: GTIDs of a log prefix from a little before it, from where another server finds it.
        tables: that have rows in it.
        rolled_back: first and last ordinal of events in it whose rows were taken back by ROLLBACK TO a savepoint.
        version: number of the last timeline entry before it; 0: not known yet.
    """

    xid: str
    gtid: str
    file: str
    offset: int
    server: str = ""
    after: str = ""
    tables: tuple[TableName, ...] = ()
    rolled_back: tuple[tuple[int, int], ...] = ()
    version: int = 0

    def __str__(self) -> str:
        return f"XA {self.xid}, prepared at {self.gtid or f'{self.file}:{self.offset}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition(_Parsed):
    """Everything up to here has been read, to the end of a transaction.

    Attributes:
        flavor: "mysql", "mariadb" or "kafka"; says how ``gtids`` reads.
        gtids: text of the GTID position; "" where the log has no GTIDs, or none yet. Of topics, the next offset of each partition
            (:class:`~historian.positions.offsets.TopicOffsets`), which ascends as the numbers of a MariaDB domain do.
        file, offset: the byte behind the last event that belongs to it; topics have no such place, and "" and 0.
        server: which server ``file`` and ``offset`` are of (MySQL: UUID, MariaDB: ``server_id``; "": bare files).
        pending: XA transactions prepared before it and not finished, as far as they are known.
        temporary: temporary tables that sessions have open, as far as they are known. Both follow from the log before it, so
            equality, ``covers`` and the text leave them out; JSON has them.
    """

    flavor: str
    gtids: str
    file: str
    offset: int
    server: str = ""
    pending: tuple[PreparedXa, ...] = field(default=(), compare=False)
    temporary: tuple[TemporaryTable, ...] = field(default=(), compare=False)

    @property
    def read(self) -> WhatWasRead:
        """What was read: ``gtids``, parsed."""
        try:
            return self._read
        except AttributeError:  # the first time
            object.__setattr__(self, "_read", parse_read(self.gtids, self.flavor))
            return self._read

    @property
    def gtid_set(self) -> Gtids:
        """``gtids`` of a binlog, parsed.

        Raises:
            PositionError: the position is not of a binlog.
        """
        read = self.read
        if isinstance(read, TopicOffsets):
            raise PositionError("topics have no GTIDs", where=str(self), expected="a position in a binlog")
        return read

    @property
    def offsets(self) -> TopicOffsets:
        """The next offset of each partition.

        Raises:
            PositionError: the position is of a binlog.
        """
        read = self.read
        if not isinstance(read, TopicOffsets):
            raise PositionError("a binlog has no topics", where=str(self), expected="TOPIC:PARTITION:OFFSET")
        return read

    @property
    def at(self) -> FilePosition:
        """``file`` and ``offset`` as a value."""
        return FilePosition(self.file, self.offset)

    def __str__(self) -> str:
        return self.gtids if self.gtids or self.flavor == KAFKA else str(self.at)

    def covers(self, other: LogPosition) -> bool:
        """Whether everything up to *other* lies at or before this position; by file only where neither has GTIDs.

        Raises:
            PositionError: the two are of different kinds, or files of two servers.
        """
        if self.gtids or other.gtids:
            return self._holds(other)
        if not self.file or not other.file:
            return not other.file
        if not self.of_one_server(other.server):
            raise PositionError(
                "files of two servers cannot be compared",
                where=f"{self.at} of server {self.server}",
                expected=f"a position on server {other.server}",
            )
        return self.at.covers(other.at)

    def _holds(self, other: LogPosition) -> bool:
        mine, theirs = self.read, other.read
        if isinstance(mine, TopicOffsets) and isinstance(theirs, TopicOffsets):
            return mine.covers(theirs)
        return missing_from(other.gtid_set, self.gtid_set) is None

    def transactions_since(self, start: LogPosition) -> int | None:
        """How many transactions up to here are not in *start*, by their GTIDs; None where the two are of different kinds.

        Of topics: how many offsets.
        """
        ended, begun = self.read, start.read
        if isinstance(ended, TopicOffsets) and isinstance(begun, TopicOffsets):
            return ended.since(begun)
        if isinstance(ended, GtidSet) and isinstance(begun, GtidSet):
            return len(ended.subtract(begun))
        if isinstance(ended, MariadbGtids) and isinstance(begun, MariadbGtids):
            return sum(max(0, sequence - begun.sequence(domain)) for domain, _, sequence in ended.last)
        return None

    def of_one_server(self, server: str) -> bool:
        """Whether ``file`` and ``offset`` may be of *server*'s log; a position that a person wrote names no server."""
        return not self.server or not server or self.server == server


def parse_position(text: str, flavor: str) -> LogPosition:
    """A position that a person wrote: ``file:offset``, or GTIDs of that *flavor*; white space around it is theirs.

    Of topics it is ``topic:partition:offset,…``, the next offset of each.

    >>> parse_position("binlog.000003:4711", "mysql").offset
    4711
    """
    text = text.strip()
    at = None if flavor == KAFKA else _file(text)
    if at is not None:
        return LogPosition(flavor=flavor, gtids="", file=at.file, offset=at.offset)
    read = parse_read(text, flavor)
    # A lone UUID is an empty set to servers; who writes one does not mean the beginning of the log.
    if text and not read:
        raise PositionError("a position that names no transaction", where=text, expected="GTIDs, or FILE:OFFSET")
    return LogPosition(flavor=flavor, gtids=str(read), file="", offset=0)


def _file(text: str) -> FilePosition | None:
    try:
        at = FilePosition.parse(text)
        at.number  # noqa: B018 raises where the name has none
    except PositionError:
        return None
    return at
