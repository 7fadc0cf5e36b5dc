"""Where a history begins: the first schema of a source, exact or not at all.

A capture of the database's present schemas serves the start of the log only for tables that no statement in the log
between start and capture is on. A table whose CREATE is in the log begins there. Every other table needs a schema by
hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.readers.base import Statement, TimedLog, TransactionLog
from historian.ddl import resolve
from historian.errors import LogPurged, PositionError
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import GtidSet, LogPosition, MariadbGtids, parse_position
from historian.positions.moments import moment_us
from historian.schema.applying import apply_all
from historian.schema.edits import CreateTable, Edit, ForgetTable, RenameTable, SetDatabase
from historian.schema.snapshots import Catalog

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.tracking.capture.catalog import Capture

__all__ = ["begins_with_copies", "first_entry", "origin_of", "place_of", "touched_behind"]

_TRIES = 20


def first_entry(
    reader: Reader,
    start: str,
    capture: Capture | None,
    schema: Catalog | None,
) -> TimelineEntry:
    """The timeline's first entry: tables and databases that exist at *start*, and the position itself.

    Args:
        reader: of the log.
        start: "earliest", "latest", "initial" or "initial_only" (the latest, where the rows of tables are copied), a position, or a
            moment (ISO 8601 with its zone) of topics.
        capture: reads a server's present schemas; None for a log without a server.
        schema: tables given by hand; they win over a capture.

    Raises:
        LogPurged: the log behind *start* is not all there.
    """
    for _ in range(_TRIES):
        origin = origin_of(reader, start)
        edits, is_known = _first_edits(reader, origin, capture, schema)
        # Where the connector may begin anywhere, it begins at a moment that is not amid statements on tables.
        if is_known or not begins_with_copies(start):
            break
    return TimelineEntry(
        number=1,
        place=None,
        position=origin,
        edits=tuple(edits),
        statement="",
        database="",
        event_time_us=0,
        server=origin.server,
    )


def begins_with_copies(start: str) -> bool:
    """Whether a connector that begins like this copies the rows that its tables hold."""
    return start in ("initial", "initial_only")


def _first_edits(
    reader: Reader, origin: LogPosition, capture: Capture | None, schema: Catalog | None
) -> tuple[list[Edit], bool]:
    """The edits that make what exists at *origin*, and whether the schema there of each table is known."""
    given = () if schema is None else tuple(schema.tables.values())
    edits: list[Edit] = [] if schema is None else [SetDatabase(database=d) for d in schema.databases.values()]
    edits += [CreateTable(snapshot=snapshot) for snapshot in given]
    if capture is None:
        return edits, True
    captured, is_known = _captured_edits(reader, origin, capture, apply_all(tuple(edits), Catalog()))
    return [*edits, *captured], is_known


def origin_of(reader: Reader, start: str) -> LogPosition:
    """The position at which a connector without history begins.

    Args:
        start: as of :func:`first_entry`.

    Raises:
        LogPurged: the log does not hold that position.
    """
    try:
        return place_of(reader, "latest" if begins_with_copies(start) else start)
    except LogPurged as error:
        others = "a moment, or offsets that the topics hold"
        if not isinstance(reader, TimedLog):
            others = "initial, or a position that the log holds"
        error.next_step = f"choose another source.start: earliest, changes_only, {others}"
        raise


def place_of(reader: Reader, text: str) -> LogPosition:
    """The position in the log that *text* names: "earliest", "latest", a position, or of topics a moment.

    The GTID of one transaction, as the ``position`` of a row has it, names the place behind that.

    Raises:
        LogPurged: the log does not hold that position.
    """
    if text == "earliest":
        return reader.start()
    if text == "latest":
        return reader.end()
    if isinstance(reader, TimedLog):
        if (moment := moment_us(text)) is not None:
            return reader.at_time(moment)
        if moment_us(f"{text}Z") is not None:  # reads as an offset of a topic, too
            raise PositionError("a moment without its zone", where=text, expected=f"{text}Z or {text}+01:00")
    position = parse_position(text, reader.flavor)
    if isinstance(reader, TransactionLog) and _names_one(position):
        return reader.behind(position)
    return reader.locate(position)


def _names_one(position: LogPosition) -> bool:
    """Whether the GTIDs are those of one transaction. A MariaDB position of one domain reads like that, and ends where it stands."""
    read = position.read
    if isinstance(read, GtidSet):
        return len(read) == 1
    return isinstance(read, MariadbGtids) and len(read.last) == 1


def _captured_edits(reader: Reader, origin: LogPosition, capture: Capture, known: Catalog) -> tuple[list[Edit], bool]:
    """Edits that make the tables of a capture that are known to have stood as they are since *origin*.

    The scan for statements begins at *origin* and ends behind the capture, so a DDL that runs meanwhile is seen too.
    """
    present = capture(known.next_table_id, known.next_column_id)
    if not origin.covers(reader.end()):
        touched, databases = touched_behind(reader, origin, known)
    else:
        touched, databases = {}, set()
    edits: list[Edit] = [
        SetDatabase(database=database)
        for name, database in present.databases.items()
        if name not in databases and name not in known.databases
    ]
    for name, snapshot in present.tables.items():
        if name not in touched and name not in known.tables:
            edits.append(CreateTable(snapshot=snapshot))
    for name, reason in present.unknown.items():
        if name not in touched and name not in known.tables and known.unknown.get(name) != reason:
            edits.append(ForgetTable(table=name, reason=reason))
    for name, statement in touched.items():
        if statement is not None and name not in known.tables:
            reason = (
                f"its schema at the start is not known: the log holds {statement[:120]!r} and no CREATE TABLE before"
            )
            edits.append(ForgetTable(table=name, reason=reason))
    return edits, all(statement is None for statement in touched.values())


def touched_behind(
    reader: Reader, origin: LogPosition, known: Catalog, *, until: LogPosition | None = None
) -> tuple[dict[TableName, str | None], set[str]]:
    """Tables that statements behind *origin* (up to *until*) are on, those of *known* apart, and databases.

    A table is None where its CREATE is the first statement on it, else that statement's text.
    """
    catalog = known
    touched: dict[TableName, str | None] = {}
    databases: set[str] = set()
    for item in reader.scan(origin, until=until):
        if not isinstance(item, Statement):
            continue
        resolution = resolve(item.sql, item.context, catalog)
        for edit in resolution.edits:
            if isinstance(edit, SetDatabase):
                databases.add(edit.database.name)
            elif isinstance(edit, CreateTable):
                touched.setdefault(edit.snapshot.name, None)
            elif isinstance(edit, RenameTable):
                touched.setdefault(edit.new, None)
        if resolution.kind == "not_understood":
            for table in resolution.tables:
                touched.setdefault(table, item.sql)
        catalog = apply_all(resolution.edits, catalog)
    return touched, databases
