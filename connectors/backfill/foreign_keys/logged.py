"""Whether a log has row events of what foreign keys changed: the server says it of itself as it is now, and files are of servers as they were."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from connectors.readers.binlog.transport.connection import answered, server_identity
from connectors.tracking.cascades import logs_cascades
from historian.ddl.parsing.context import version_number
from historian.plans.plans import LogRange

if TYPE_CHECKING:
    from connectors.readers.base import Reader
    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["LoggedCascades"]


class _ServerRun(NamedTuple):
    """A server from one start to its next: its identity, when it started by its own clock, and whether InnoDB acts for foreign keys."""

    server: str
    started_s: int
    has_native_keys: bool


class LoggedCascades:
    """Tells it of files of the log of the server at *address*, of which each is asked for once.

    A file's version stands in it. The setting ``innodb_native_foreign_keys`` does not, and can change with a start alone, which begins a
    new file. So what the server says now holds for files that are no older than its start. Of older ones nothing is known.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._known: dict[tuple[str, str], bool] = {}

    def are_in(self, reader: Reader, ranges: Iterable[LogRange]) -> bool:
        """Whether all of *ranges* surely have them; False: some may lack them.

        Raises:
            ConnectionLost, SourceError: the server cannot be asked.
        """
        if reader.flavor != "mysql":
            return False
        files = {(each.server, each.file) for each in ranges}
        # Rows of a prepared transaction were logged where it was prepared.
        files |= {(rows.xa.server, rows.xa.file) for each in ranges for rows in each.prepared}
        return all(self._has_all(reader, *file) for file in sorted(files))

    def _has_all(self, reader: Reader, server: str, file: str) -> bool:
        known = self._known.get((server, file))
        if known is not None:
            return known
        mark = reader.mark(file)
        if mark is None or server not in ("", mark.server):
            return False
        if not logs_cascades(reader.flavor, version_number(mark.version)):
            found = False
        else:
            run = _server_run(self._address, reader.flavor)
            if run.server != mark.server:
                return False  # the address leads elsewhere since
            found = run.started_s <= mark.made_s and not run.has_native_keys
        self._known[server, file] = found
        return found


def _server_run(address: ServerAddress, flavor: str) -> _ServerRun:
    with closing(address.connect()) as connection, connection.cursor() as cursor, answered(str(address)):
        server = server_identity(connection, flavor, str(address))
        cursor.execute("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
        is_native = [value for _, value in cursor.fetchall()] == ["ON"]
        while True:
            cursor.execute("SELECT UNIX_TIMESTAMP()")
            ((before,),) = cursor.fetchall()
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
            ((_, uptime),) = cursor.fetchall()
            cursor.execute("SELECT UNIX_TIMESTAMP()")
            ((after,),) = cursor.fetchall()
            if before == after:  # else the second of the start is not known
                return _ServerRun(server, int(after) - int(uptime), is_native)
