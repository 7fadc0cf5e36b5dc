"""How far a partition has come in the log of its source: by it messages are known that a producer sends again, and statements that come late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b

from historian.charsets.client_text import printable
from historian.names import TableName

__all__ = ["NO_PLACES", "ServerPass", "SourceMark", "SourceMarks", "TableMark", "latest_of", "stated_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPass:
    """Which transaction of a server stands in the partition last, be it one that came again.

    Attributes:
        server: a hash of what stands before the number in its GTIDs and in its log's files. Without GTIDs, file and offset are the number.
        highest: the highest number that was met; ``number``: of that transaction.
        at: where in the mark's ``seen`` what comes next stands at the earliest, where the transaction comes again; None: it comes first.
    """

    server: int
    highest: int
    number: int
    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMark:
    """When the source changed a row of a table last, of those in a partition under that name.

    Attributes:
        time_us: UTC microseconds.
        tells_all: its rows of that moment tell all columns of the table.
    """

    table: TableName
    time_us: int
    tells_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMark:
    """The last changes of a partition, and where its producer stands in the source's log.

    Attributes:
        passes: by server.
        server, number: of the last change that was new, with its place: the file's number, the event's offset, the row in it.
        time_us: of the latest change, UTC microseconds.
        is_spread: rows of its transaction stand at several offsets.
        seen: the last changes that were new, in order, in base64. Of each a hash of 8 bytes, of all but when it was sent. 0: it cannot be told
            apart, or may be there twice.
        tables: when rows changed last, by table, where messages tell no places.
        stated: where each partition has each statement: :func:`stated_id` of the last ones, which are of one moment, ``stated_us``.
    """

    passes: tuple[ServerPass, ...]
    server: int
    number: int
    file: int
    offset: int
    row: int
    time_us: int
    is_spread: bool
    seen: str
    tables: tuple[TableMark, ...] = ()
    stated_us: int = 0
    stated: tuple[str, ...] = ()


NO_PLACES = SourceMark(passes=(), server=0, number=0, file=0, offset=0, row=0, time_us=0, is_spread=False, seen="")
"""The mark of a partition whose messages tell no places."""


def latest_of(one: TableMark, other: TableMark) -> TableMark:
    """The later one of two marks of a table."""
    if one.time_us == other.time_us:
        return replace(one, tells_all=one.tells_all and other.tells_all)
    return max(one, other, key=lambda each: each.time_us)


def stated_id(sql: str, time_us: int) -> str:
    """By what a mark knows the statement *sql* of a moment."""
    return blake2b(f"{time_us} {printable(sql)}".encode(), digest_size=8).hexdigest()


SourceMarks = Mapping[str, SourceMark]
"""By partition, as ``topic:partition``."""
