"""The statements and TABLE_MAPs that a running server has logged, read from its newest binlog file as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from connectors.readers.binlog.events.layout import (
    HEADER_BYTES,
    MAGIC,
    EventType,
    FormatDescription,
    format_description,
    header,
)
from connectors.readers.binlog.events.statements import LoggedStatement, logged_statement
from connectors.readers.binlog.events.table_maps import TableMap, table_map
from databases.servers import Server

__all__ = ["StatementLog"]


class StatementLog:
    """Reads each statement once, from the end that the log had when this was made. ``maps``: the TABLE_MAPs on the way."""

    def __init__(self, server: Server) -> None:
        server.sql("FLUSH BINARY LOGS")
        self._path: Path = server.binlog_files()[-1]
        self._at = len(MAGIC)
        ((self._lower_case,),) = server.sql("SELECT @@lower_case_table_names")
        self._description: FormatDescription | None = None
        self.maps: list[TableMap] = []
        for _ in self.new():
            pass

    def new(self) -> Iterator[LoggedStatement]:
        """Statements that were logged since the last look, without BEGIN and COMMIT."""
        data = self._path.read_bytes()[self._at :]
        at = 0
        while at + HEADER_BYTES <= len(data):
            first = header(data[at:])
            event = data[at : at + first.size_bytes]
            if len(event) < first.size_bytes:
                break
            at += first.size_bytes
            if first.type == EventType.FORMAT_DESCRIPTION:
                self._description = format_description(event)
            elif first.type == EventType.QUERY:
                assert self._description is not None
                body = event[:-4] if self._description.checksum else event
                statement = logged_statement(body, self._description, lower_case_table_names=self._lower_case)
                if statement.sql not in ("BEGIN", "COMMIT", "ROLLBACK"):
                    yield statement
            elif first.type == EventType.TABLE_MAP:
                assert self._description is not None
                body = event[:-4] if self._description.checksum else event
                self.maps.append(table_map(body, self._description.flavor))
        self._at += at
