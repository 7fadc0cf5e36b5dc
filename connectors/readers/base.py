"""What a pipeline knows of a reader. Binlogs of servers and of directories implement it, and topics of change events.

A *scan* says on the driver which statements and schemas the log holds. Of a binlog it reads event headers, GTIDs, TABLE_MAPs and
statements, never row bytes; of topics it looks at each message's schema. A *read* decodes the rows of one range on an
executor, with the schemas that the plan holds. Both start outside a transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from historian.changelog.chunks import Chunk
from historian.ddl import StatementContext
from historian.names import TableName
from historian.plans.plans import PartitionRange, PlannedRange, PlannedTable, RolledBack
from historian.plans.source_marks import SourceMarks
from historian.positions import LogPosition, PreparedXa
from historian.positions.places import Place
from historian.schema.snapshots import Column

__all__ = [
    "Bound",
    "CachedLog",
    "LogMark",
    "MappedColumn",
    "PartitionLag",
    "PartitionedLog",
    "Reader",
    "Scanned",
    "SchemaMet",
    "Statement",
    "TableMapped",
    "TimedLog",
    "TransactionLog",
    "Wake",
    "XaCommitted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A place between transactions where a batch may end or be cut into ranges.

    Attributes:
        event_time_us: of the last transaction before it, UTC microseconds; 0 where there is none.
        skipped: nothing between the bound before and this one is to be read. The start was given without a file and lies here, or
            transactions stand there that the start's GTIDs contain. A range never spans such a bound.
        restarted: the server was started with the file that begins here: sessions before it are gone.
        partitions: of topics, what lies between the scan's start and this one, which is its only bound. No range is cut.
        marks: how far the partitions with messages have come in the source's log by then.
    """

    position: LogPosition
    event_time_us: int
    skipped: bool = False
    restarted: bool = False
    partitions: tuple[PartitionRange, ...] = ()
    marks: SourceMarks = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement in the log other than BEGIN, COMMIT, ROLLBACK and savepoints.

    Attributes:
        place: of its event; ``event_time_us``: UTC microseconds, of its execution.
        sql: its text, decoded from the client's charset.
        context: what the event says of the session: default database, sql_mode, charsets.
        apart: it stands in a partition of its own, so that its time alone says where it is among rows.
        source: where the source's log has it, as :attr:`historian.history.TimelineEntry.source`; then ``event_time_us`` follows that order.
        passed_by: partitions, as ``topic:partition``, of which a former plan has rows from behind it.
        passed_tables: where messages tell no places: tables of which it has such rows of other partitions.
        met_in_moment: as ``passed_tables``, with rows of the statement's very moment: they may be from before it, or from behind it.
            Each with whether all those rows tell all columns.
        among: as ``source``, of a statement that stands among rows of one partition; "": that is not told.
        has_place: its text names its place in the source's log, so that this alone tells whether it comes again.
    """

    place: Place
    event_time_us: int
    sql: str
    context: StatementContext
    apart: bool = False
    source: str = ""
    passed_by: frozenset[str] = frozenset()
    passed_tables: frozenset[TableName] = frozenset()
    met_in_moment: Mapping[TableName, bool] = field(default_factory=dict)
    among: str = ""
    has_place: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedColumn:
    """One column as a TABLE_MAP describes it; None where the event does not say.

    Attributes:
        type: the binlog's type number (MYSQL_TYPE_*), the real one for ENUM, SET and STRING.
        metadata: the type's metadata as one number, as written.
        nullable: from the null bitmap.
        unsigned, charset, name, labels, primary_key, visible, geometry, dimension: from the optional metadata. ``charset`` is
            the collation's number, ``geometry`` that of the shape's kind, ``dimension`` a VECTOR's.
    """

    type: int
    metadata: int
    nullable: bool
    unsigned: bool | None = None
    charset: int | None = None
    name: str | None = None
    labels: tuple[str, ...] | None = None
    primary_key: bool | None = None
    visible: bool | None = None
    geometry: int | None = None
    dimension: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapped:
    """A TABLE_MAP whose bytes were not seen before for its table number since the last statement."""

    place: Place
    table: TableName
    columns: tuple[MappedColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class XaCommitted:
    """An XA COMMIT: the rows of a transaction that was prepared before it count from here on.

    Attributes:
        place: of its event.
        xid: as in :class:`~historian.positions.PreparedXa`.
        xa: where the rows are; None: it was neither pending at the scan's start nor prepared behind it.
    """

    place: Place
    xid: str
    xa: PreparedXa | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMet:
    """The schema that rows of a table have from a message on, in that message's partition; a partition's first one too.

    Attributes:
        place: of the message, which is itself written under it.
        columns: in order, with ids of 0: who follows the history knows them by name.
        key: names of the columns that are its key; None where the message does not tell.
        event_time_us: of the change in the source, UTC microseconds.
        certainty: what is known of the columns. "exact": all. "types": all columns, and their types but for charsets. "type_names": all
            columns, and of some types the name alone. "columns": all columns, and types of those that are not known otherwise, or whose
            values the known type would change. "names": some columns, and of what kind their values are.
        advice: what to do where they tell too little for a version, for people.
        has_statements: each statement stands in this partition too, before the rows that are behind it.
        is_of_its_time: the source tells when it made the change, which is no row of a snapshot: the source's schema was this one then.
        transaction: a hash of the server, and the number of the change's transaction in its log; None: it is not told.
        stated: :func:`historian.plans.source_marks.stated_id` of the last ones that former plans have of this partition.
    """

    place: Place
    table: TableName
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None
    event_time_us: int
    certainty: str = "exact"
    advice: str = ""
    has_statements: bool = False
    is_of_its_time: bool = False
    transaction: tuple[int, int] | None = None
    stated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """What one partition of topics holds behind a position.

    Attributes:
        partition: ``topic:partition``.
        messages: how many offsets, those without a message among them.
        since_us: when the broker dates the first of them, UTC microseconds; None: there is none, or it has no date.
    """

    partition: str
    messages: int
    since_us: int | None = None


Scanned = Bound | Statement | TableMapped | RolledBack | XaCommitted | SchemaMet


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMark:
    """What tells one log file from another of the same name.

    Attributes:
        server: whose file it is, as in positions; ``version``: of the server, as text.
        made_s: when the file was begun, seconds since 1970.
        topics: of topics, the id that each was given when it was made; they have no file.
    """

    server: str
    version: str
    file: str
    made_s: int
    topics: Mapping[str, str] = field(default_factory=dict)


class CachedLog(Protocol):
    """A part of a log that a scan has kept, so that it need not be read again. It pickles; how it is laid out is the reader's."""

    @property
    def size_bytes(self) -> int:
        """How much log it is."""


class Reader(Protocol):
    """A log that can be scanned and read. Connections are opened when needed and closed by ``close``.

    Attributes:
        on_bound: is told the position of each bound as a scan comes to it; None: nobody is.
        keeps_scans: whether :meth:`cached` has what a scan has read, however much. That is of use where rows are read in the same process.
    """

    on_bound: Callable[[LogPosition], None] | None
    keeps_scans: bool

    @property
    def flavor(self) -> str:
        """The servers whose logs it reads: "mysql" or "mariadb"; "kafka" of topics."""

    def server(self) -> str:
        """Identity of the server whose log it is; "" for files. What is read up to the next error is of that one. Retryable."""

    def start(self) -> LogPosition:
        """The earliest position that can be read from. Retryable."""

    def end(self) -> LogPosition:
        """The log's end now: everything committed before the call lies at or before it. Retryable."""

    def near_end(self) -> LogPosition:
        """About the log's end, to tell how far somebody is behind: cheap, and what is being committed may be missing from its GTIDs. Retryable."""

    def mark(self, file: str) -> LogMark | None:
        """What the log says of a file; None where it has none of that name. Retryable."""

    def locate(self, position: LogPosition) -> LogPosition:
        """The same place between transactions with GTIDs, file, offset and server all filled in.

        *position* has either GTIDs (``file`` "") or ``file`` and ``offset``.

        Raises:
            LogPurged: the log behind it is no longer all there.
            SourceError: it was never executed here, or no transaction ends there.
        """

    def scan(
        self,
        start: LogPosition,
        *,
        limit_bytes: int | None = None,
        until: LogPosition | None = None,
    ) -> Iterator[Scanned]:
        """What stands in the log behind *start*, in order, up to its present end.

        Yields a :class:`Bound` at least before each statement's transaction, about every 8 MB, behind the last transaction of each
        file, and last of all. Ends at the first transaction end at or behind *limit_bytes* bytes, and at the transaction end that
        first covers *until*. Without new transactions it yields nothing. The positions of bounds name the XA transactions that are
        pending there, *start*'s included.

        Raises:
            LogPurged: *start* is no longer in the log, or was never executed there; or an XA COMMIT stands behind it whose rows
                are no longer there.
            UnsupportedEvent: an event that this release does not read.
            LogCorrupt: bytes that are no valid log.
        """

    def look_back(self, xid: str, before: Place) -> tuple[PreparedXa, tuple[TableMapped, ...]]:
        """The last XA transaction of that xid prepared before a place of the log, and the first TABLE_MAP of each table in it.

        Raises:
            LogPurged: the log holds none.
        """

    def read(
        self,
        planned: PlannedRange,
        tables: Sequence[PlannedTable],
        *,
        sequence: int = 0,
        as_text: bool = False,
        stops: bool = False,
        log: Sequence[CachedLog] | None = None,
        begun: dict[str, int] | None = None,
    ) -> Iterator[Chunk]:
        """Rows of *tables* in *planned*, in log order, as chunks numbered from *sequence*.

        Rows of a prepared XA transaction come at its XA COMMIT, under that one's place and time; rows that were rolled back do not
        come. A table's rows at and behind its quarantine are left out. With *as_text* temporal columns are the server's own text
        (zero dates included) instead of Arrow temporals. Reading a range again gives the same chunks. Where the server is not
        the range's own (after a failover), the range is read by GTID membership instead of by file and offset.

        With *stops* a value that cannot be represented ends its table's rows in the range: a chunk without rows says why
        (:attr:`historian.changelog.chunks.Chunk.stopped`), and the other tables go on.

        *begun* is filled with the place in the log of each transaction that has a GTID, by that: a number that ascends. In the
        range's own file the offset, which rows without GTIDs have as their sequence.

        With *log*, which :meth:`cached` gave for the range, the rows are made of it, without a look at the log. It may be gone then: for another
        reading copy the sequence.

        Raises:
            ValueUnrepresentable: such a value, without *stops*.
        """

    def cached(self, planned: PlannedRange) -> Sequence[CachedLog] | None:
        """The range's part of the log, where the last scan kept it; else None. It may be given once."""

    def forget(self) -> None:
        """Frees what the last scan kept and nobody was given."""

    def waiting_bytes(self, position: LogPosition) -> int:
        """How much log stands behind *position* now, about; 0 where that is not known, as on another server. Cheap. Retryable."""

    def partition_lags(self, position: LogPosition) -> tuple[PartitionLag, ...]:
        """What each partition holds behind *position*; none of a log that is in one piece. Retryable."""

    def wait(self, position: LogPosition, timeout_s: float, wake: Wake | None = None) -> bool:
        """Returns when the log may hold more behind *position*, at once when *wake* is set, after *timeout_s* at the latest.

        False: it is certain that nothing came, or it was woken.
        """

    def take_over(self, connector: str) -> None:
        """Ends what an earlier run of *connector* left at the server. For whoever holds the connector's lease. Retryable."""

    def close(self) -> None:
        """Closes connections; the reader can be used again."""


class Wake(Protocol):
    """An event that wakes up who waits for a log, in whichever way."""

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it is set within that time."""

    def fileno(self) -> int:
        """A file that can be read from, as polls tell, once it is set."""


@runtime_checkable
class TimedLog(Protocol):
    """A log that finds its places by time too."""

    def at_time(self, moment_us: int) -> LogPosition:
        """Before the first message that is dated at *moment_us* (UTC microseconds) or later; the log's end where none is. Retryable."""


@runtime_checkable
class TransactionLog(Protocol):
    """A log whose transactions have an order and names of their own."""

    def behind(self, transaction: LogPosition) -> LogPosition:
        """The place behind the one *transaction* that a position's GTIDs name, with all that stands before it in the log. Retryable.

        Raises:
            LogPurged: the log behind it is no longer all there, or it was never executed here.
        """


@runtime_checkable
class PartitionedLog(Protocol):
    """A log whose partitions have no common order.

    Attributes:
        stated: asked by a scan when statements were executed that the history has, UTC microseconds, and where the source's log has them;
            "": that is not told. The schema of rows from each of these moments on is told again. None: of no other statements than the
            scan's own.
        marks: asked by a scan how far those partitions have come in the source's log by its start that have messages; None: nobody knows.
        holds: asked by a scan whether the history has a table of that name now, with these columns and maybe others; None: nobody knows.
    """

    stated: Callable[[], Iterable[tuple[int, str]]] | None
    marks: Callable[[Collection[str]], SourceMarks] | None
    holds: Callable[[TableName, Collection[str]], bool] | None
