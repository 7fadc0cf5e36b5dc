"""Plans: what one micro-batch reads and under which schemas, fixed before it runs and never changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from historian.errors import PlanOutdated
from historian.names import TableName
from historian.plans.key_ranges import Key, KeyRange
from historian.plans.row_values import RowValues
from historian.positions import LogPosition, PreparedXa
from historian.positions.places import Place
from historian.schema.edits import Edit
from historian.schema.snapshots import Snapshot

__all__ = [
    "DOUBTFUL",
    "LATE",
    "LEAST_MESSAGE_BYTES",
    "REPEATED",
    "UNREADABLE",
    "CopiedPiece",
    "LogRange",
    "PartitionRange",
    "Passage",
    "Plan",
    "PlanHead",
    "PlannedRange",
    "PlannedTable",
    "PlannedVersion",
    "PreparedRows",
    "PreparedTable",
    "Quarantine",
    "RolledBack",
    "TableCopy",
    "has_unread",
    "version_in",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """Events whose rows were taken back in their own transaction: by ROLLBACK TO a savepoint, or by ROLLBACK at its end.

    Attributes:
        gtid: of the transaction; ``file``, ``offset``: of its first event.
        first, last: ordinals of the events in it.
    """

    gtid: str
    file: str
    offset: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedTable:
    """A table with rows in a prepared XA transaction, by the ``name`` that it had then.

    ``snapshot``: its schema at the PREPARE; None: the one in force at the XA COMMIT.
    """

    table_id: int
    name: TableName
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRows:
    """An XA transaction that was prepared before a range and is committed in it; ``tables``: those whose rows are wanted."""

    xa: PreparedXa
    tables: tuple[PreparedTable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """Events of one binlog file from ``start`` (an event bound, outside transactions) up to ``end``, in bytes.

    ``start`` 4 is the first event of a file. One partition reads one range; ranges of a plan follow each
    other in log order.

    Attributes:
        server: whose ``file`` and offsets these are (see :class:`~historian.positions.LogPosition`).
        after, upto: GTIDs of the log before and at the end of the range; on another server, after a failover, the range
            is the transactions of *upto* that are not in *after*. Both "" where the log has no GTIDs.
        rolled_back: events in the range whose rows do not count.
        prepared: XA transactions committed in the range whose rows lie before it. Those prepared in the range too are not named.
    """

    file: str
    start: int
    end: int
    server: str = ""
    after: str = ""
    upto: str = ""
    rolled_back: tuple[RolledBack, ...] = ()
    prepared: tuple[PreparedRows, ...] = ()

    @property
    def size_bytes(self) -> int:
        """How much log it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """From where on rows of a table in one partition are written under a version; partitions pass to it each at its own offset.

    Attributes:
        version: 0 where the rows are passed over: the table was dropped or emptied, behind them, by another partition before.
        offset: of the first message under it, or an earlier one behind the passage before.
        snapshot: its schema, where a plan has none of that version: the table has gone on by another partition.
    """

    table_id: int
    version: int
    offset: int
    snapshot: Snapshot | None = None

    @property
    def is_read(self) -> bool:
        """Whether its rows come to targets."""
        return self.version > 0


LEAST_MESSAGE_BYTES = 40
"""A message counts as so long at least where a plan ends at a limit: what a row takes does not shrink with its message."""

UNREADABLE = "unreadable"
"""The kind of messages that cannot be read, and are dead letters."""

LATE = "late"
"""The kind of messages with rows from before a watermark that stands before them: such as their producer sends again."""

REPEATED = "repeated"
"""The kind of messages that a producer has sent again, known by where their changes stand in the source's log, and by what they say."""

DOUBTFUL = "doubtful"
"""The kind of messages with rows that may have been sent again, and may be changes: they are read as such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """Messages of one partition of a topic, from the offset ``start`` up to and without ``end``; some offsets may be empty.

    Attributes:
        bytes_read: how much log it is, keys and values.
        passages: of each table with rows in it, ascending: the version in force at ``start``, and those that follow.
        passed_over: how many messages are no rows, by kind; :data:`UNREADABLE` are those that cannot be read. :data:`LATE` and
            :data:`DOUBTFUL` ones have rows.
        repeated: offsets of messages that came before, which are passed over: from one up to and without another one, ascending.
        ignores_tombstones: messages without a value change nothing, in formats where they may be deletes.
    """

    topic: str
    partition: int
    start: int
    end: int
    bytes_read: int
    passages: tuple[Passage, ...] = ()
    passed_over: tuple[tuple[str, int], ...] = ()
    repeated: tuple[tuple[int, int], ...] = ()
    ignores_tombstones: bool = False

    @property
    def unread(self) -> int:
        """How many messages cannot be read."""
        return dict(self.passed_over).get(UNREADABLE, 0)

    @property
    def file(self) -> str:
        """The partition as places and chunks name it: ``topic:partition``."""
        return f"{self.topic}:{self.partition}"

    @property
    def size_bytes(self) -> int:
        """How much log it is."""
        return self.bytes_read


PlannedRange = LogRange | PartitionRange


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedVersion:
    """A schema version in force for some rows of a plan.

    Attributes:
        version: its number in the history.
        place: of its DDL's event; None where it was in force before the plan's first event. It holds for rows behind
            that event.
        edits: that led from the version before to this one, where its DDL stands inside the plan; else empty.
        snapshot: None where the table does not exist from here on (dropped, or renamed out of what is tracked).
        segment: that rows under this version belong to.
        statement: the DDL's text, "" where none.
    """

    version: int
    place: Place | None
    edits: tuple[Edit, ...]
    snapshot: Snapshot | None
    segment: int
    statement: str = ""
    event_time_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Why a table stopped: its rows at and behind ``place`` are not delivered.

    Attributes:
        since: up to where its schema is known to be the history's; None: up to ``place``.
        repairable: its schema is known behind it too: rows alone changed that the log does not tell.
        is_cancelled: someone ended its copy, so that it is not repaired unless someone asks for it.
    """

    place: Place
    reason: str
    since: LogPosition | None = None
    repairable: bool = False
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedPiece:
    """A range of keys of a copied table that one SELECT gave; it begins where the piece before it ends.

    Attributes:
        upto: rows with keys up to here; None: all that are left.
        rows, size_bytes: that the SELECT gave. What changed behind the plan's end is brought back in the whole table's alone.
    """

    upto: Key | None
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCopy:
    """What a plan copies of a table, as of the plan's end, behind what plans before it copied.

    Attributes:
        key: ids of the columns in whose order it is copied; (): all in one go.
        behind: rows with keys up to here were copied before the plan; None: none were.
        upto: those up to here are copied with the plan, or before it; None: none are yet.
        is_done: all rows are copied with the plan.
        rows: how many are copied with the plan; ``size_bytes``: of them in memory, as Arrow; None: an older release did not say it.
        pieces: that they were read in, in the order of keys; (): not said.
        repairs: why targets are compared with what is copied, as of the plan's end, and given what differs. "": they hold none of it. A
            repair of a whole table, or of rows that :attr:`only` tells, is one plan, and none of that plan's log goes on. One by ranges of keys is
            a plan for each.
        estimate: how many rows the table holds, about, as its server says where the copy begins; 0: not said.
        clears: the first segment behind a statement that takes all rows: from that segment on nothing is left to copy; None: no such one.
        only: of a repair, the rows that are compared: those that one of these tells. All others stand in targets as they stand in the
            source. (): all rows in the range of keys. Amid a first copy, which goes on behind that, they are those with keys up to :attr:`upto`.
    """

    key: tuple[int, ...] = ()
    behind: Key | None = None
    upto: Key | None = None
    is_done: bool = False
    rows: int = 0
    repairs: str = ""
    estimate: int = 0
    clears: int | None = None
    only: tuple[RowValues, ...] = ()
    size_bytes: int | None = None
    pieces: tuple[CopiedPiece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """One captured table's part in a plan. ``versions`` in log order, at least one; only the first may lack a place.

    Attributes:
        proven: behind the last transaction whose rows were compared with the schema in force; None: none were.
        behind: of a plan that reads a table again, the plan that its targets hold: they go on from there, though others
            followed. 0: they begin anew, beside those that were. None: an ordinary plan. For other readers than sinks
            such rows are no news.
        seed: of targets that begin anew, the plan up to which they first take what those that were held; 0: nothing.
        copy: how far its rows are copied from the source; None: all of them are, or were never to be.
    """

    table_id: int
    versions: tuple[PlannedVersion, ...]
    quarantine: Quarantine | None = None
    proven: LogPosition | None = None
    behind: int | None = None
    seed: int = 0
    copy: TableCopy | None = None

    @property
    def repairs(self) -> str:
        """Why targets are compared with rows of :attr:`copied` as of the plan's end; "": they are not. A repair by ranges has plans in between."""
        copy = self.copy
        reads = copy is not None and copy.clears is None and (copy.is_done or copy.upto != copy.behind or copy.only)
        return copy.repairs if copy is not None and reads else ""

    @property
    def repairs_anew(self) -> bool:
        """Whether targets hold what the repair says, wherever they stood before; not where it compares :attr:`TableCopy.only` some rows."""
        return bool(self.repairs) and self.copy is not None and not self.copy.only

    @property
    def copied(self) -> KeyRange:
        """The keys of the rows that are copied with the plan; where none are, it says nothing."""
        return KeyRange() if self.copy is None else KeyRange(after=self.copy.behind, upto=self.copy.upto)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A micro-batch: position range, tables with the schema versions they need, ranges of the log to read.

    Attributes:
        number: from 1, without holes, given by the store once and for all.
        previous: number of the last plan before it with tables, 0: none. Plans without tables never reach a sink, so
            this is what a sink must hold before it takes the plan.
        connector: identity of the connector.
        start, end: the rows behind ``start`` up to and including ``end``.
        tables: every captured table that exists somewhere in the range, has rows or edits there.
        version: number of the last timeline entry at or before ``end``; 0 where there is none yet.
        system_time_us: UTC microseconds, the ``system_time`` of every changelog row of the plan.
        revision: hash of the configuration it was made under.
        captured: which tables it takes in, as a text that is the reader's own affair; "": it is not said.
        format: of this value's JSON.
    """

    number: int
    previous: int
    connector: str
    start: LogPosition
    end: LogPosition
    ranges: tuple[PlannedRange, ...]
    tables: tuple[PlannedTable, ...]
    version: int
    system_time_us: int
    revision: str
    captured: str = ""
    format: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanHead:
    """A plan without its tables, of which there can be thousands; ``tables``: how many. The others as of :class:`Plan`."""

    number: int
    end: LogPosition
    version: int
    system_time_us: int
    tables: int


def has_unread(plan: Plan) -> bool:
    """Whether messages of *plan* are dead letters."""
    return any(isinstance(part, PartitionRange) and part.unread for part in plan.ranges)


def version_in(tables: Iterable[PlannedTable], table_id: int, number: int) -> PlannedVersion:
    """The version of that number that a plan holds for a table: a reader compares, and needs no lock on the schema.

    Raises:
        PlanOutdated: the plan holds other versions; a new plan holds this one, if the history does.
    """
    planned = [version for table in tables if table.table_id == table_id for version in table.versions]
    for version in planned:
        if version.version == number:
            return version
    raise PlanOutdated(
        "rows are of a schema version that the plan does not hold",
        where=f"table id {table_id}",
        expected=f"one of the versions {[version.version for version in planned]}",
        found=number,
        next_step="make the plan again",
    )
