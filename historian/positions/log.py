"""The position of a binlog reader: GTIDs are the identity, ``file:offset`` a hint that holds on one server."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from historian.positions.file import FilePosition
from historian.positions.gtid import GtidSet
from historian.positions.mariadb import MariadbGtids

__all__ = ["Gtids", "LogPosition", "parse_gtids"]

Gtids = GtidSet | MariadbGtids


@lru_cache(maxsize=256)
def parse_gtids(text: str, flavor: str) -> Gtids:
    """The GTID position of that *text*: a MySQL set, or with *flavor* "mariadb" the last GTID of each domain."""
    return MariadbGtids.parse(text) if flavor == "mariadb" else GtidSet.parse(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """Everything up to here has been read, to the end of a transaction.

    Attributes:
        flavor: "mysql" or "mariadb"; says how ``gtids`` reads.
        gtids: text of the GTID position; "" where the log has no GTIDs, or none yet.
        file, offset: the byte behind the last event that belongs to it.
        server: which server ``file`` and ``offset`` are of (MySQL: UUID, MariaDB: ``server_id``; "": bare files).
    """

    flavor: str
    gtids: str
    file: str
    offset: int
    server: str = ""

    @property
    def gtid_set(self) -> Gtids:
        """``gtids``, parsed."""
        return parse_gtids(self.gtids, self.flavor)

    @property
    def at(self) -> FilePosition:
        """``file`` and ``offset`` as a value."""
        return FilePosition(self.file, self.offset)

    def __str__(self) -> str:
        return self.gtids or str(self.at)

    def covers(self, other: LogPosition) -> bool:
        """Whether everything up to *other* lies at or before this position; by file only where neither has GTIDs."""
        if self.gtids or other.gtids:
            mine, theirs = self.gtid_set, other.gtid_set
            if isinstance(mine, GtidSet) and isinstance(theirs, GtidSet):
                return mine.covers(theirs)
            if isinstance(mine, MariadbGtids) and isinstance(theirs, MariadbGtids):
                return mine.covers(theirs)
        return self.at.covers(other.at)
