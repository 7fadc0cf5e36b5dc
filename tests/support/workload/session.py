"""A connection that gives the server's values as the notes hold them, and the GTID of what it has just committed."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

import numpy as np
from pymysql.constants import CLIENT, FIELD_TYPE
from pymysql.converters import decoders
from pymysql.protocol import MysqlPacket

from databases.servers import Server
from workload.notes import Row

__all__ = ["Session", "microseconds"]

_TIME = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_TRACKED_GTID = 3
_ZERO = "0000-00-00"
"""A date that is none: NULL, as a lake has it."""


def microseconds(text: str) -> int:
    """A TIME value of the server's text, in microseconds."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a TIME: {text!r}")
    sign, hours, minutes, seconds, fraction = match.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    value = whole * 1_000_000 + int((fraction or "0").ljust(6, "0"))
    return -value if sign else value


def _moment(text: str) -> datetime | None:
    return None if text.startswith(_ZERO) else datetime.fromisoformat(text)


def _date(text: str) -> date | None:
    return None if text == _ZERO else date.fromisoformat(text)


def _float32(text: str) -> float:
    return float(np.float32(text))


CONVERTERS = {
    **decoders,
    FIELD_TYPE.TIME: microseconds,
    FIELD_TYPE.FLOAT: _float32,
    FIELD_TYPE.BIT: lambda value: int.from_bytes(value, "big"),
    FIELD_TYPE.DATETIME: _moment,
    FIELD_TYPE.TIMESTAMP: _moment,
    FIELD_TYPE.DATE: _date,
}


class Session:
    """One connection. Statements run in autocommit mode unless ``begin`` was called."""

    def __init__(self, server: Server) -> None:
        self.mariadb = server.flavor == "mariadb"
        flags = 0 if self.mariadb else CLIENT.SESSION_TRACK
        self.connection = server.connect(client_flag=flags, conv=CONVERTERS)
        self._cursor = self.connection.cursor()
        self._last = ""
        if self.mariadb:
            self._last = str(self.one("SELECT @@last_gtid"))
        else:
            self.run("SET session_track_gtids = OWN_GTID")
        self.run("SET time_zone = '+00:00', innodb_lock_wait_timeout = 3, lock_wait_timeout = 10")
        self.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

    def run(self, sql: str) -> int:
        """Runs a statement; returns how many rows it changed."""
        return int(self._cursor.execute(sql))

    def rows(self, sql: str) -> list[Row]:
        """What a query returns, each row as values by column name."""
        self._cursor.execute(sql)
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self._cursor.fetchall()]

    def one(self, sql: str) -> Any:
        """The only value that a query returns."""
        self._cursor.execute(sql)
        ((value,),) = self._cursor.fetchall()
        return value

    @property
    def names(self) -> tuple[str, ...]:
        """Column names of the last query."""
        return tuple(column[0] for column in self._cursor.description)

    def committed(self) -> str:
        """The GTID that the statement run just before was given; "" where it was given none."""
        if self.mariadb:
            gtid, last = str(self.one("SELECT @@last_gtid")), self._last
            self._last = gtid
            return "" if gtid == last else gtid
        result: Any = self.connection._result  # type: ignore[attr-defined]  # PyMySQL shows session state nowhere else
        return _tracked_gtid(result.message) if result is not None and result.message else ""

    def close(self) -> None:
        self.connection.close()


def _tracked_gtid(message: bytes) -> str:
    """The GTID among the session state of an OK packet, behind its text (protocol basics, "OK_Packet")."""
    packet: Any = MysqlPacket(message, "utf8mb4")
    packet.read_length_coded_string()
    if packet._position == len(message):
        return ""
    end = packet.read_length_encoded_integer() + packet._position
    while packet._position < end:
        kind = packet.read_uint8()
        data = packet.read_length_coded_string()
        if kind == _TRACKED_GTID:
            inner: Any = MysqlPacket(data, "utf8mb4")
            inner.read_uint8()  # encoding of the GTID: always text
            return bytes(inner.read_length_coded_string()).decode()
    return ""
