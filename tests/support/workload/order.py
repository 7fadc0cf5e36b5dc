"""The order of transactions in the log, as the server itself lists its events."""

from __future__ import annotations

import re

from databases.servers import Server

__all__ = ["LogPlace", "gtids_behind", "log_end"]

LogPlace = tuple[str, int]

_GTID = re.compile(r"GTID_NEXT= '([^']+)'|^(?:BEGIN )?GTID (\d+-\d+-\d+)")


def log_end(server: Server) -> LogPlace:
    """File and offset of the end of the log now."""
    name, size, *_ = server.sql("SHOW BINARY LOGS")[-1]
    return str(name), int(size)


def gtids_behind(server: Server, place: LogPlace) -> list[str]:
    """GTIDs of all transactions behind *place*, in the log's order."""
    first, offset = place
    found: list[str] = []
    for name, *_ in server.sql("SHOW BINARY LOGS"):
        if name < first:
            continue
        start = f" FROM {offset}" if name == first else ""
        for event in server.sql(f"SHOW BINLOG EVENTS IN '{name}'{start}"):
            match = _GTID.search(str(event[5])) if event[2] == "Gtid" else None
            if match is not None:
                found.append(match[1] or match[2])
    return found
