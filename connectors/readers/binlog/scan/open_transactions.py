"""Transactions whose rows may come later, or not at all: prepared XA transactions, and parts that were rolled back.

What MySQL and MariaDB write of an XA transaction is ``XA START`` (MariaDB: a flag of the GTID event), its events,
``XA END`` and an XA_PREPARE event. ``XA COMMIT`` or ``XA ROLLBACK`` follow as transactions of their own. A transaction that
cannot be taken back whole is logged with its ROLLBACK and each ROLLBACK TO a savepoint.
"""

from __future__ import annotations

import re
import struct
from dataclasses import replace

from connectors.readers.binlog.events.layout import HEADER_BYTES
from historian.errors import LogCorrupt
from historian.names import TableName
from historian.positions import PreparedXa

__all__ = ["OpenTransactions", "outcome", "prepared_xid"]

_OUTCOME = re.compile(rb"XA (COMMIT|ROLLBACK) X'([0-9A-Fa-f]*)',X'([0-9A-Fa-f]*)',(-?[0-9]+)")
_SAVEPOINT = re.compile(rb"(ROLLBACK TO|SAVEPOINT) (?:SAVEPOINT )?(.+)", re.DOTALL)
_QUERY_BYTES = 13
_XID_AT = 13


def prepared_xid(event: bytes, where: str | None = None) -> str:
    """The xid of an XA_PREPARE event: one byte, format, length of the global and of the branch part, both parts.

    Raises:
        LogCorrupt: lengths that do not fit; it stands at *where*.
    """
    if len(event) < HEADER_BYTES + _XID_AT:
        raise LogCorrupt("an XA_PREPARE event is shorter than its own fields", where=where)
    kind, first, second = struct.unpack_from("<III", event, HEADER_BYTES + 1)
    parts = event[HEADER_BYTES + _XID_AT :]
    if first + second != len(parts):
        raise LogCorrupt(
            "an XA_PREPARE event is longer or shorter than it says",
            where=where,
            expected=first + second,
            found=len(parts),
        )
    return _xid(parts[:first].hex(), parts[first:].hex(), kind)


def outcome(event: bytes, where: str | None = None) -> tuple[bool, str]:
    """Of a QUERY event with XA COMMIT or XA ROLLBACK: whether it commits, and the xid.

    Raises:
        LogCorrupt: the statement is not as servers write it; it stands at *where*.
    """
    text = _text(event)
    found = _OUTCOME.match(text)
    if found is None:
        raise LogCorrupt(
            "an XA statement without the xid as servers write it", where=where, found=text.decode("utf-8", "replace")
        )
    return found[1] == b"COMMIT", _xid(found[2].decode().lower(), found[3].decode().lower(), int(found[4]))


def _xid(first: str, second: str, kind: int) -> str:
    return f"X'{first}',X'{second}',{kind & 0xFFFFFFFF}"


def _text(event: bytes) -> bytes:
    _, _, database, _, variables = struct.unpack_from("<IIBHH", event, HEADER_BYTES)
    text: bytes = event[HEADER_BYTES + _QUERY_BYTES + variables + database + 1 :]
    return text


class OpenTransactions:
    """What a scan remembers of the transaction that it is in, and of XA transactions that are pending.

    Attributes:
        pending: by xid, in the order of their PREPAREs.
        unknown: xids that were committed or rolled back without having been pending.
    """

    def __init__(self, pending: tuple[PreparedXa, ...]) -> None:
        self.pending = {xa.xid: xa for xa in pending}
        self.unknown: set[str] = set()
        self._transaction: tuple[str, int] | None = None
        self._tables: dict[TableName, None] = {}
        self._savepoints: dict[bytes, int] = {}
        self._rolled_back: list[tuple[int, int]] = []

    def enter(self, file: str, offset: int) -> None:
        """What follows is about the transaction that begins there."""
        if self._transaction != (file, offset):
            self._transaction = file, offset
            self._tables, self._savepoints, self._rolled_back = {}, {}, []

    def touch(self, table: TableName) -> None:
        """Notes a TABLE_MAP of an XA transaction."""
        self._tables[table] = None

    def savepoint(self, event: bytes, ordinal: int) -> tuple[int, int] | None:
        """Takes SAVEPOINT, or ROLLBACK TO one: then first and last ordinal of the events that no longer count.

        Raises:
            LogCorrupt: there is no such savepoint.
        """
        text = _text(event)
        found = _SAVEPOINT.match(text)
        # Quotes are of the session, and case does not tell savepoints apart.
        name = b"" if found is None else found[2].strip(b'`" ').lower()
        if found is not None and found[1] == b"SAVEPOINT":
            self._savepoints.pop(name, None)
            self._savepoints[name] = ordinal
            return None
        begin = self._savepoints.get(name)
        if begin is None:
            raise LogCorrupt(
                "a ROLLBACK TO names a savepoint that its transaction has not set",
                found=text.decode("utf-8", "replace"),
            )
        self._savepoints = {each: at for each, at in self._savepoints.items() if at <= begin}
        self._rolled_back.append((begin + 1, ordinal - 1))
        return begin + 1, ordinal - 1

    def prepare(self, xa: PreparedXa) -> PreparedXa:
        """*xa*, with what was noted of it, is pending from now on."""
        held = replace(xa, tables=tuple(self._tables), rolled_back=tuple(self._rolled_back))
        self.pending.pop(xa.xid, None)
        self.pending[xa.xid] = held
        return held

    def settle(self, xid: str) -> PreparedXa | None:
        """That one is pending no longer; None where it was not known."""
        found = self.pending.pop(xid, None)
        if found is None:
            self.unknown.add(xid)
        return found
