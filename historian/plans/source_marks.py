"""How far a partition has come in the log of its source: by it messages are known that a producer sends again, and statements that come late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from historian.names import TableName

__all__ = ["NO_PLACES", "ServerPass", "SourceMark", "SourceMarks", "TableMark"]


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
    """When the source changed a row of a table last, of those in a partition under that name: ``time_us``, UTC microseconds."""

    table: TableName
    time_us: int


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


NO_PLACES = SourceMark(passes=(), server=0, number=0, file=0, offset=0, row=0, time_us=0, is_spread=False, seen="")
"""The mark of a partition whose messages tell no places."""

SourceMarks = Mapping[str, SourceMark]
"""By partition, as ``topic:partition``."""
