"""What a statement's event says of the session that ran it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.names import TableName

__all__ = ["StatementContext", "version_number"]

_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementContext:
    """Session settings that decide what a statement means.

    Attributes:
        flavor: "mysql" or "mariadb".
        database: the default database of unqualified names; "" where none.
        sql_mode: names of the modes in force, upper case, as far as they matter: ANSI_QUOTES,
            NO_BACKSLASH_ESCAPES, PIPES_AS_CONCAT, REAL_AS_FLOAT, ...; strict where nothing is said, as servers are.
        version: the server's, as a number like 80031, 90704, 101119; 0 where unknown (executable comments then count as
            executed).
        client_charset: ``character_set_client``, in which the text was written; "" for that of a file.
        connection_charset: that of ``collation_connection``, into which strings are turned; "" for the client's.
        charset, collation: the server's defaults for new databases (``character_set_server``), from the event where it
            says so.
        utf8mb4_collation: ``default_collation_for_utf8mb4``; "" where the event does not say.
        explicit_defaults_for_timestamp: None where the event does not say (then as the version's default).
        lower_case_table_names: 0, 1 or 2.
        time_us: when the statement began, UTC microseconds; what CURRENT_TIMESTAMP gave.
        time_zone: of the session, as written in the event; "" where none.
        error_code: of a statement that failed and was logged for what it had done by then; 0 for one that did not.
        uses_temporary: the event says that the statement, or one before it in its procedure, uses a temporary table of its
            session. MySQL and MariaDB say so of each that does, but MariaDB not of RENAME TABLE.
        session: the server's id in the high 32 bits, the thread's in the low ones; 0 where unknown.
        temporary: names that mean temporary tables to the session, as far as its log has told.
    """

    flavor: str = "mysql"
    database: str = ""
    sql_mode: frozenset[str] = frozenset(("STRICT_TRANS_TABLES",))
    version: int = 0
    client_charset: str = "utf8mb4"
    connection_charset: str = ""
    charset: str = ""
    collation: str = ""
    utf8mb4_collation: str = ""
    explicit_defaults_for_timestamp: bool | None = None
    lower_case_table_names: int = 0
    time_us: int = 0
    time_zone: str = ""
    error_code: int = 0
    uses_temporary: bool = False
    session: int = 0
    temporary: frozenset[TableName] = frozenset()

    @property
    def strict(self) -> bool:
        """Whether a statement fails that would have to make another value of one that does not fit."""
        return not self.sql_mode.isdisjoint(("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"))


def version_number(text: str) -> int:
    """A server's version as a number.

    >>> version_number("10.11.19-MariaDB-log")
    101119
    """
    major, minor, patch = (int(part) for part in _VERSION.match(text).groups())  # type: ignore[union-attr]  # every server's begins so
    return major * 10000 + minor * 100 + patch
