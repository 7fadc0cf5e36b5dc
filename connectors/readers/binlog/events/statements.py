"""Statements in the log: QUERY events with their status variables.

Codes and layouts: ``Query_event`` in MySQL's libs/mysql/binlog/event/statement_events.h and ``Query_log_event`` in
MariaDB's sql/log_event.cc. MySQL writes the codes in ascending order, so that a reader may stop at the first one that
it does not know, as its replicas do. MariaDB does not (131 stands before 4).
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

from connectors.readers.binlog.events.collations import collation
from connectors.readers.binlog.events.layout import (
    FLAG_THREAD_SPECIFIC,
    HEADER_BYTES,
    EventType,
    FormatDescription,
    event_name,
    header,
)
from historian.charsets.client_text import lexed
from historian.ddl.parsing.context import StatementContext
from historian.errors import LogCorrupt, UnsupportedEvent

__all__ = ["LoggedStatement", "logged_statement"]

_POST_HEADER_BYTES = 13
_LOAD_QUERY_BYTES = 13
_FIXED_BYTES = {
    0: 4,
    1: 8,
    3: 4,
    4: 6,
    7: 2,
    8: 2,
    9: 8,
    10: 4,
    13: 3,
    14: 8,
    15: 8,
    16: 1,
    17: 8,
    18: 2,
    19: 1,
    20: 1,
    128: 3,
    129: 8,
}
_MANY_DATABASES = 254

# Bit of each mode in the logged number; MySQL and MariaDB share those below bit 32.
_SQL_MODES = {
    0: "REAL_AS_FLOAT",
    1: "PIPES_AS_CONCAT",
    2: "ANSI_QUOTES",
    3: "IGNORE_SPACE",
    5: "ONLY_FULL_GROUP_BY",
    6: "NO_UNSIGNED_SUBTRACTION",
    7: "NO_DIR_IN_CREATE",
    18: "ANSI",
    19: "NO_AUTO_VALUE_ON_ZERO",
    20: "NO_BACKSLASH_ESCAPES",
    21: "STRICT_TRANS_TABLES",
    22: "STRICT_ALL_TABLES",
    23: "NO_ZERO_IN_DATE",
    24: "NO_ZERO_DATE",
    25: "ALLOW_INVALID_DATES",
    26: "ERROR_FOR_DIVISION_BY_ZERO",
    27: "TRADITIONAL",
    29: "HIGH_NOT_PRECEDENCE",
    30: "NO_ENGINE_SUBSTITUTION",
    31: "PAD_CHAR_TO_FULL_LENGTH",
}
_MYSQL_MODES = {32: "TIME_TRUNCATE_FRACTIONAL", 33: "INTERPRET_UTF8_AS_UTF8MB4"}
_MARIADB_MODES = {
    9: "ORACLE",
    10: "MSSQL",
    32: "EMPTY_STRING_IS_NULL",
    33: "SIMULTANEOUS_ASSIGNMENT",
    34: "TIME_ROUND_FRACTIONAL",
}
_GENERATED_KEY = re.compile(
    rb""" \(\n  [`"]my_row_id[`"] bigint unsigned NOT NULL AUTO_INCREMENT /\*!80023 INVISIBLE \*/,\n"""
)
_PRINTED = re.compile(
    rb"""CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?(?:([`"])[^`"]+\1\.)?([`"])[^`"]+\2 \(\n  \2"""
)
"""How MariaDB begins a table that it prints."""
_OPTION_EXPLICIT_DEFAULTS = 1 << 24
"""MariaDB's bit of ``explicit_defaults_for_timestamp`` in Q_FLAGS2, written since 10.8 and by later releases of older lines."""
_EXPLICIT_DEFAULTS_SINCE = {1003: 36, 1004: 26, 1005: 17, 1006: 9, 1007: 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStatement:
    """A statement's text and the session it ran in."""

    sql: str
    context: StatementContext


@dataclass(slots=True)
class _Variables:
    fixed: dict[int, bytes] = field(default_factory=dict)
    time_zone: str = ""
    collations: dict[int, int] = field(default_factory=dict)
    """MariaDB's ``character_set_collations``: default collation by the number of a charset's built-in one."""

    def number(self, code: int) -> int | None:
        value = self.fixed.get(code)
        return None if value is None else int.from_bytes(value, "little")


def logged_statement(
    event: bytes, written_by: FormatDescription, *, lower_case_table_names: int = 0
) -> LoggedStatement:
    """Reads a QUERY or EXECUTE_LOAD_QUERY event.

    Raises:
        LogCorrupt: lengths that do not fit.
        UnsupportedEvent: a status variable of unknown length.
    """
    first = header(event)
    body = event[HEADER_BYTES:]
    begin = _POST_HEADER_BYTES + (_LOAD_QUERY_BYTES if first.type == EventType.EXECUTE_LOAD_QUERY else 0)
    if len(body) < begin:
        raise LogCorrupt(
            f"a {event_name(first.type)} event is too short", expected=f"{begin} bytes or more", found=len(body)
        )
    thread, _, database_bytes, error_code, variables_bytes = struct.unpack_from("<IIBHH", body)
    behind = begin + variables_bytes
    text_at = behind + database_bytes + 1
    if text_at > len(body):
        raise LogCorrupt("a QUERY event is too short", expected=f"more than {text_at} bytes", found=len(body))
    try:
        variables = _variables(body[begin:behind], written_by.flavor)
    except (IndexError, ValueError, struct.error) as error:
        raise LogCorrupt("status variables of a QUERY event are cut off", found=f"{variables_bytes} bytes") from error
    client, connection, server = (
        struct.unpack("<HHH", variables.fixed[4]) if 4 in variables.fixed else (_UTF8MB4, _UTF8MB4, 0)
    )
    flavor = written_by.flavor
    mode_bits, text_charset = variables.number(1), collation(client, flavor).charset
    modes = StatementContext().sql_mode if mode_bits is None else _modes(mode_bits, flavor)
    if _is_made_by_server(body[text_at:], flavor):
        modes, text_charset = modes - {"NO_BACKSLASH_ESCAPES"}, "utf8mb4"
    context = StatementContext(
        flavor=flavor,
        database=body[behind : behind + database_bytes].decode("utf-8", "surrogateescape"),
        sql_mode=modes,
        version=written_by.version,
        client_charset=text_charset,
        connection_charset=collation(connection, flavor).charset,
        charset=collation(server, flavor).charset if server else "",
        collation=collation(server, flavor).name if server else "",
        utf8mb4_collation=_utf8mb4_collation(variables, flavor),
        explicit_defaults_for_timestamp=_explicit_defaults(variables, written_by),
        lower_case_table_names=lower_case_table_names,
        time_us=first.timestamp * 1_000_000 + (variables.number(128 if flavor == "mariadb" else 13) or 0),
        time_zone=variables.time_zone,
        error_code=error_code,
        uses_temporary=bool(first.flags & FLAG_THREAD_SPECIFIC),
        session=first.server_id << 32 | thread,
    )
    return LoggedStatement(sql=lexed(body[text_at:], text_charset), context=context)


def _is_made_by_server(data: bytes, flavor: str) -> bool:
    """Whether the server has put the whole table in the place of what was written: it is in UTF-8 and escaped, whatever the session.

    It does so for CREATE TABLE ... SELECT; MySQL, too, where it adds a generated invisible primary key.
    """
    if flavor == "mysql":
        return data.startswith(b"CREATE TABLE ") and (
            b") START TRANSACTION" in data or _GENERATED_KEY.search(data) is not None
        )
    return _PRINTED.match(data) is not None and _is_utf8(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_UTF8MB4 = 45


def _variables(data: bytes, flavor: str) -> _Variables:
    found = _Variables()
    at = 0
    while at < len(data):
        code = data[at]
        at += 1
        if code in _FIXED_BYTES:
            width = _FIXED_BYTES[code]
            found.fixed[code] = data[at : at + width]
        elif code == 5:
            width = 1 + data[at]
            found.time_zone = data[at + 1 : at + width].decode("ascii", "replace")
        elif (variable := _width(code, data, at, found)) is not None:
            width = variable
        elif flavor == "mysql":
            return found
        else:
            raise UnsupportedEvent(
                "a QUERY event has a status variable that this release does not know", found=f"code {code}"
            )
        at += width
    if at > len(data):
        raise IndexError(at)
    return found


def _width(code: int, data: bytes, at: int, found: _Variables) -> int | None:
    """Bytes of a variable whose length is not fixed; None where the code is not known."""
    if code == 2:
        return data[at] + 2
    if code == 6:
        return data[at] + 1
    if code == 11:
        user = data[at]
        return 2 + user + data[at + 1 + user]
    if code == 12:
        behind = at + 1
        for _ in range(data[at] if data[at] != _MANY_DATABASES else 0):
            behind = data.index(b"\0", behind) + 1
        return behind - at
    if code == 130:
        return 9 if data[at] & 0x0C else 1
    if code == 131:
        pairs = struct.iter_unpack("<HH", data[at + 1 : at + 1 + 4 * data[at]])
        found.collations.update(pairs)
        return 1 + 4 * data[at]
    return None


def _modes(number: int, flavor: str) -> frozenset[str]:
    names = _SQL_MODES | (_MARIADB_MODES if flavor == "mariadb" else _MYSQL_MODES)
    return frozenset(name for bit, name in names.items() if number >> bit & 1)


def _utf8mb4_collation(variables: _Variables, flavor: str) -> str:
    number = variables.collations.get(_UTF8MB4) if flavor == "mariadb" else variables.number(18)
    return collation(number, flavor).name if number else ""


def _explicit_defaults(variables: _Variables, written_by: FormatDescription) -> bool | None:
    if written_by.flavor == "mariadb":
        flags = variables.number(0)
        line, release = divmod(written_by.version, 100)
        if flags is None or (line < 1008 and release < _EXPLICIT_DEFAULTS_SINCE.get(line, 100)):
            return None
        return bool(flags & _OPTION_EXPLICIT_DEFAULTS)
    number = variables.number(16)
    return None if number is None else bool(number)
