"""The reader of a live server's binlog."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.events.layout import ROTATE_BYTES
from connectors.readers.binlog.log_reader import FIRST_EVENT, BinlogReader, Windows, foreign_range
from connectors.readers.binlog.transport.connection import (
    ConnectionLost,
    ServerAddress,
    answered,
    same_server,
    server_id_lock,
    server_identity,
)
from connectors.readers.binlog.transport.diverged import Gtid, other_transaction
from connectors.readers.binlog.transport.dump_places import may_start
from connectors.readers.binlog.transport.stream import WindowStream
from historian.ddl.parsing.context import version_number
from historian.errors import LogPurged, SourceError
from historian.plans.plans import LogRange, PlannedTable
from historian.positions import Gtids, GtidSet, LogPosition, MariadbGtids, PreparedXa, missing_from, parse_gtids

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.readers.base import Wake
    from connectors.readers.binlog.scan.scanner import Scanner
    from connectors.readers.binlog.transport.dump import Dump

__all__ = ["MOST_DUMPS", "BinlogServerReader"]

_COMMIT_LAG_S = 5.0
_LAG_STEP_S = 0.02
_WOKEN_PAUSE_S = 1.0
MOST_DUMPS = 32
"""That one reader has open at a time. Ranges are read by a few threads, so more are a mistake of ours: the source must not pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a server says of itself."""

    identity: str
    version: str
    lower_case_table_names: int


class BinlogServerReader(BinlogReader):
    """Reads the log of a live server over the replication protocol.

    One connection is kept for questions; each scan and each range opens another for its dump.

    Args:
        address: of the server; ``flavor``: "mysql" or "mariadb", which the server must be.
    """

    _waits_for_bytes = True

    def __init__(self, address: ServerAddress, *, flavor: str) -> None:
        super().__init__()
        self.address = address
        self.flavor = flavor
        self._connection: Connection[Any] | None = None
        self._facts: _Facts | None = None
        self._waiting: tuple[LogPosition, Dump] | None = None
        self._woken_at: LogPosition | None = None
        self._end_seen = ("", 0)
        self._empty: tuple[tuple[str, int], tuple[str, int]] | None = None
        self._waits_as = "historian waits"
        self._dumps: list[Dump] = []
        self._asks = False
        self._nameable: dict[str, int] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), flavor=self.flavor), (self.address,)

    # ---- questions -------------------------------------------------------------------------------------------------
    def _ask(self, question: str, *arguments: object) -> tuple[tuple[Any, ...], ...]:
        import pymysql

        for attempt in (1, 2):
            fresh = self._connection is None
            connection = self._connected()
            try:
                with connection.cursor() as cursor:
                    self._asks = True
                    cursor.execute(question, arguments or None)
                    answer = tuple(cursor.fetchall())
                    self._asks = False
                    return answer
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
                number = error.args[0] if error.args else 0
                if number in _NO_PRIVILEGE:
                    raise _no_privilege(question, self.address, error) from error
                self.close()
                if fresh or attempt == 2 or number not in _GONE:
                    raise ConnectionLost(
                        "the server did not answer", where=f"{self.address}: {question}", found=str(error)
                    ) from error
            except pymysql.err.MySQLError as error:
                raise SourceError(
                    "the server refuses a question", where=f"{self.address}: {question}", found=str(error)
                ) from error
        raise AssertionError("unreachable")

    def _connected(self) -> Connection[Any]:
        if self._connection is None:
            connection = self.address.connect()
            try:
                facts = self._learn(connection)
                self._check_same(facts.identity)
            except BaseException:
                cut: Any = connection
                cut._force_close()  # noqa: SLF001
                raise
            self._connection, self._facts = connection, facts
        return self._connection

    def _check_same(self, identity: str) -> None:
        """Raises where another server answers than the one that files and offsets were learned from; what is asked next is asked anew."""
        if self._facts is None or identity == self._facts.identity:
            return
        before = self._facts.identity
        self.close()
        self._facts = None
        same_server(before, identity, str(self.address))

    def _learn(self, connection: Connection[Any]) -> _Facts:
        with answered(str(self.address)), connection.cursor() as cursor:
            cursor.execute("SELECT @@version, @@lower_case_table_names, @@log_bin")
            version, lower_case, log_bin = cursor.fetchone() or ("", 0, 0)
            found = "mariadb" if "mariadb" in version.lower() else "mysql"
            if found != self.flavor:
                raise SourceError(
                    "a server of another kind",
                    where=str(self.address),
                    expected=self.flavor,
                    found=f"{found} {version}",
                )
            if not log_bin:
                raise SourceError(
                    "the server writes no binlog",
                    where=str(self.address),
                    expected="log_bin=ON",
                    next_step="start it with --log-bin",
                )
        return _Facts(
            identity=server_identity(connection, self.flavor, str(self.address)),
            version=version,
            lower_case_table_names=int(lower_case),
        )

    def _known(self) -> _Facts:
        self._connected()
        assert self._facts is not None  # noqa: S101 - set with the connection
        return self._facts

    def _server(self) -> str:
        return self._known().identity

    def _lower_case_table_names(self) -> int:
        return self._known().lower_case_table_names

    def _files(self) -> Sequence[str]:
        return [str(row[0]) for row in self._ask("SHOW BINARY LOGS")]

    def _sizes(self, file: str) -> Sequence[int]:
        newest, offset = self._status()
        if newest == file:
            return [offset]
        sizes = {str(name): int(size) for name, size, *_ in self._ask("SHOW BINARY LOGS")}
        return list(sizes.values())[list(sizes).index(file) :] if file in sizes else []

    def _gtids_before(self, file: str) -> Gtids:
        if self.flavor == "mariadb":
            # A domain's last entry is its latest.
            latest = {gtid[0]: gtid for gtid in self._listed(file)}
            return MariadbGtids(tuple(latest[domain] for domain in sorted(latest)))
        return GtidSet.parse(self._told(file, "Previous_gtids"))

    def _listed(self, file: str) -> list[Gtid]:
        """What the GTID_LIST of a MariaDB file says: the last transactions before it, by domain and server."""
        return _gtids(self._told(file, "Gtid_list").strip("[]"))

    def _told(self, file: str, kind: str) -> str:
        """The text of an event at the file's begin."""
        rows = self._ask("SHOW BINLOG EVENTS IN %s LIMIT 4", file)
        return next((str(row[5]) for row in rows if str(row[2]) == kind), "")

    def _status(self) -> tuple[str, int]:
        """File and offset behind everything committed so far."""
        file, offset = self._status_row()[:2]
        return str(file), int(offset)

    def _status_row(self) -> tuple[Any, ...]:
        question = "SHOW MASTER STATUS"
        if self.flavor == "mysql" and version_number(self._known().version) >= 80200:
            question = "SHOW BINARY LOG STATUS"
        return self._ask(question)[0]

    def _executed(self, wanted: Gtids) -> Gtids:
        variable = "@@gtid_binlog_pos" if self.flavor == "mariadb" else "@@GLOBAL.gtid_executed"
        # A dump can run ahead: a transaction is in the log before the server counts it as executed.
        deadline = time.monotonic() + _COMMIT_LAG_S
        while True:
            executed = parse_gtids(str(self._ask(f"SELECT {variable}")[0][0]), self.flavor)
            if missing_from(wanted, executed) is None or time.monotonic() > deadline:
                return executed
            time.sleep(_LAG_STEP_S)

    def _check_executed(self, position: LogPosition) -> None:
        super()._check_executed(position)
        wanted = position.gtid_set
        if not isinstance(wanted, MariadbGtids) or not wanted:
            return
        # A number alone does not tell a transaction: after a failover another server may have given it out again.
        known = {(d, s): n for d, s, n in _gtids(str(self._ask("SELECT @@gtid_binlog_state")[0][0] or ""))}
        for domain, server, number in wanted.last:
            last = known.get((domain, server), number)
            if last < number:
                found = f"{domain}-{server}-{last} is the last one of that server"
                raise _diverged(position, (domain, server, number), found)

    def _find(self, position: LogPosition) -> LogPosition:
        place = super()._find(position)
        if isinstance(wanted := position.gtid_set, MariadbGtids):
            own = {
                gtid
                for gtid in wanted.last
                if gtid not in _gtids(str(self._ask("SELECT @@gtid_slave_pos")[0][0] or ""))
            }
            file = self._file_before(wanted, position)
            with closing(self._stream(file, FIRST_EVENT)) as stream:
                other = other_transaction(own, self._listed(file), stream.windows())
            if other is not None:
                raise _diverged(position, other[0], f"{_text(other[1])} stands there")
        return place

    # ---- the log ---------------------------------------------------------------------------------------------------
    def _stream(self, file: str, offset: int) -> WindowStream:
        if not may_start(offset):
            file, offset = self._behind_rotation(file, offset)
        return self._dump(lambda dump: dump.from_file(file, offset))

    def _behind_rotation(self, file: str, offset: int) -> tuple[str, int]:
        """The next file's begin where no transaction has room between *offset* and the file's end.

        A file beyond 4 GB is closed behind the transaction that made it so large.
        """
        sizes = {str(name): int(size) for name, size, *_ in self._ask("SHOW BINARY LOGS")}
        names = list(sizes)
        if file not in sizes or file == names[-1]:
            return file, offset
        following = names[names.index(file) + 1]
        left = sizes[file] - offset
        return (following, FIRST_EVENT) if 0 <= left <= ROTATE_BYTES + len(following) else (file, offset)

    def _dump(self, begin: Any) -> Dump:
        import pymysql

        from connectors.readers.binlog.transport.dump import Dump

        self._dumps = [dump for dump in self._dumps if dump.is_open]
        if len(self._dumps) >= MOST_DUMPS:
            raise SourceError(
                "this reader has too many dumps open",
                where=str(self.address),
                expected=f"fewer than {MOST_DUMPS}",
                found=str(len(self._dumps)),
                next_step="start again, and report this as a mistake in historian",
            )
        dump = Dump(self.address, self.flavor, self._nameable)
        self._dumps.append(dump)
        try:
            # Each connection may lead to another server, where the same file and offset are other bytes.
            self._check_same(dump.identity())
            begin(dump)
        except pymysql.err.MySQLError as error:
            dump.close()
            raise ConnectionLost("a dump could not be started", where=str(self.address), found=str(error)) from error
        except BaseException:
            dump.close()
            raise
        return dump

    def _complete(self, position: LogPosition) -> LogPosition:
        if position.gtids:
            self._check_executed(position)
        return super()._complete(position)

    def _is_end(self, place: LogPosition) -> bool:
        self._end_seen = self._status()
        here = (place.file, place.offset)
        return self._end_seen == here or self._empty == (here, self._end_seen)

    def _note_empty(self, place: LogPosition) -> None:
        # What a new file begins with, and MariaDB's checkpoints, stand behind the last transaction: a dump for each look would
        # be one a second.
        self._empty = ((place.file, place.offset), self._end_seen)

    def _check_end(self, scanner: Scanner) -> None:
        """A dump ends where the server says; a transaction that is not whole yet comes with the next scan."""

    def end(self) -> LogPosition:
        """The log's end now, with the GTIDs of everything before it."""
        file, offset = self._status()
        if self.flavor == "mariadb":
            gtids = self._gtids_at(file, offset)
            return self._at(file, offset, ",".join(sorted(gtids.split(","))) and str(MariadbGtids.parse(gtids)))
        mode, executed = self._ask("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_executed")[0]
        if not executed:
            return self._at(file, offset, "")
        if mode != "ON":
            return self._count(self._at(file, offset, ""))
        return self._end_behind(GtidSet.parse(executed))

    def near_end(self) -> LogPosition:
        """About the log's end now, by what the server says of it, without a look at the log."""
        file, offset, *_, executed = self._status_row()
        if self.flavor == "mariadb":
            executed = self._ask("SELECT @@gtid_binlog_pos")[0][0]
        return self._at(str(file), int(offset), parse_gtids(str(executed or ""), self.flavor))

    def _gtids_at(self, file: str, offset: int) -> str:
        """MariaDB's position there, which is the log's end or was a moment ago."""
        if may_start(offset):
            return str(self._ask("SELECT BINLOG_GTID_POS(%s, %s)", file, offset)[0][0] or "")
        from connectors.readers.binlog.scan.scanner import Scanner

        # The function takes four bytes of an offset.
        begin = self._gtids_before(file)
        scanner = Scanner(self._at(file, FIRST_EVENT, begin), count_only=True)
        with closing(self._stream(file, FIRST_EVENT)) as stream:
            scanner.pass_over(stream, end=offset)
        return scanner.position.gtids

    def _end_behind(self, executed: GtidSet) -> LogPosition:
        """The end of a log that holds *executed*, and perhaps transactions that are not counted as executed yet."""
        from connectors.readers.binlog.scan.scanner import Scanner

        with closing(self._dump(lambda dump: dump.from_gtids(str(executed)))) as dump:
            scanner: Scanner | None = None
            for window in dump.windows():
                if scanner is None:
                    begin = self._at(window.file, FIRST_EVENT, executed)
                    scanner = Scanner(begin, count_only=True)
                for _ in scanner.feed(window, dump.formats[window.file]):
                    pass
            gtids = executed if scanner is None else scanner.position.gtids
            return self._at(dump.file, self._whole_offset(dump.file, dump.offset), gtids)

    def _whole_offset(self, file: str, offset: int) -> int:
        """An *offset* near the log's end of which a server before 8.0.26 has told the low half alone."""
        newest, end = self._status()
        return offset + ((end - offset) & ~0xFFFFFFFF) if newest == file and end > offset else offset

    def wait(self, position: LogPosition, timeout_s: float, wake: Wake | None = None) -> bool:
        """Returns when the server sends something behind *position*, see :class:`connectors.readers.base.Reader`.

        Of a position that it has returned for already it sleeps a second: what came brought no plan, and may go on coming.
        """
        cannot_start = position.server != self._server() or not may_start(position.offset)
        if cannot_start or position == self._woken_at:
            return super().wait(position, timeout_s if cannot_start else min(timeout_s, _WOKEN_PAUSE_S), wake)
        if self._waiting is None or self._waiting[0] != position:
            self._end_waiting()
            begin = lambda dump: dump.from_file(position.file, position.offset, waits_as=self._waits_as)  # noqa: E731
            dump = self._dump(begin)
            self._waiting = (position, dump)
        if not self._waiting[1].rings(timeout_s, wake):
            return False
        self._woken_at = position
        self._end_waiting()
        return True

    def _end_waiting(self) -> None:
        """Ends the dump that waits, on both sides: a server that has nothing to send would not notice a closed socket."""
        if self._waiting is None:
            return
        dump = self._waiting[1]
        self._waiting = None
        self._kill(server_id_lock(dump.server_id))
        dump.close()

    def take_over(self, connector: str) -> None:
        """Ends the dump that an earlier run of *connector* left waiting, see :class:`connectors.readers.base.Reader`."""
        self._connected()
        self._waits_as = f"historian waits {connector}"
        self._kill(self._waits_as)

    def _kill(self, lock: str) -> None:
        """Ends the connection that holds a user lock of ours, if the server answers and allows it.

        A user may end its own connections without a privilege. By its lock a connection is found through proxies too.
        """
        import pymysql

        if self._connection is None or self._asks:
            return  # whoever was interrupted in a question has its answer before them
        with contextlib.suppress(pymysql.err.MySQLError, OSError), self._connection.cursor() as cursor:
            cursor.execute("SELECT IS_USED_LOCK(%s)", (lock,))
            (holder,) = cursor.fetchone() or (None,)
            if holder is not None:
                cursor.execute(f"KILL {int(holder)}")

    def _elsewhere(self, planned: LogRange, tables: Sequence[PlannedTable]) -> tuple[Windows, Sequence[PlannedTable]]:
        if not planned.upto:
            raise foreign_range(f"{planned.file}:{planned.start}", planned.server, self._server())
        from connectors.readers.binlog.transport.failover import translate
        from connectors.readers.binlog.transport.unpacking import unpacked

        here = translate(tables, planned, unpacked(self._members(planned), rows=False), self.flavor)
        return self._members(planned), here

    def _stream_behind(self, xa: PreparedXa) -> WindowStream:
        if not xa.gtid:
            raise foreign_range(str(xa), xa.server, self._server())
        return self._dump(lambda dump: dump.from_gtids(xa.after))

    def _members(self, planned: LogRange) -> Windows:
        from connectors.readers.binlog.transport.membership import members

        with closing(self._dump(lambda dump: dump.from_gtids(planned.after))) as dump:
            yield from members(dump.windows(), after=planned.after, upto=planned.upto, flavor=self.flavor)

    def close(self) -> None:
        """Closes the connection for questions and one that waits; the reader can be used again."""
        self._end_waiting()
        if self._connection is not None:
            connection: Any = self._connection
            connection._force_close()  # noqa: SLF001 - COM_QUIT would wait for a server that may be gone
            self._connection = None
            self._asks = False


_GONE = frozenset((0, 2006, 2013, 2014, 4031, 1053, 1927))
_NO_PRIVILEGE = frozenset((1044, 1142, 1227, 1045))


def _no_privilege(question: str, address: ServerAddress, error: Exception) -> SourceError:
    return SourceError(
        "the user may not ask for the log",
        where=f"{address}: {question}",
        found=str(error),
        next_step="GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO the user (MariaDB: also BINLOG MONITOR)",
    )


def _gtids(text: str) -> list[Gtid]:
    """MariaDB's GTIDs, several of a domain among them."""
    parts = (part.strip().split("-") for part in text.split(",") if part.strip())
    return [(int(domain), int(server), int(number)) for domain, server, number in parts]


def _text(gtid: Gtid) -> str:
    return "-".join(map(str, gtid))


def _diverged(position: LogPosition, gtid: Gtid, found: str) -> LogPurged:
    return LogPurged(
        "the server has another transaction under the position's number",
        where=str(position),
        expected=_text(gtid),
        found=found,
        next_step="go back to the server that the position is of, or start anew: what it logged last is lost",
    )
