"""XA transactions that are prepared and neither committed nor rolled back."""

from __future__ import annotations

from dataclasses import dataclass

from historian.names import TableName

__all__ = ["PreparedXa"]


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
