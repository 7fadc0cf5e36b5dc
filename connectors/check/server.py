"""A server as checks see it: its version, its variables, its answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from connectors.config import ServerSource
from historian.errors import SourceError

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["QuestionDenied", "ServerView"]

T = TypeVar("T")
_DENIED = frozenset((1044, 1142, 1227, 1370))
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


class QuestionDenied(SourceError):
    """The user may not ask that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """What checks may ask.

    Attributes:
        source: the configuration of the server.
        version_text: what the server calls itself; ``version`` is its numbers.
        variables: global variables by name, in lower case.
    """

    source: ServerSource
    connection: Connection[Any]
    version_text: str
    variables: dict[str, str]

    @classmethod
    def of(cls, source: ServerSource, connection: Connection[Any], variables_like: str = "%") -> ServerView:
        """Asks the server for its version and variables, all or those of names like that."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT VERSION()")
            ((version,),) = cursor.fetchall()
            cursor.execute("SHOW GLOBAL VARIABLES LIKE %s", (variables_like,))
            variables = {str(name).lower(): str(value) for name, value in cursor.fetchall()}
        return cls(source=source, connection=connection, version_text=str(version), variables=variables)

    @property
    def flavor(self) -> str:
        """What the server is, whatever the configuration says."""
        return "mariadb" if "mariadb" in self.version_text.lower() else "mysql"

    @property
    def version(self) -> tuple[int, ...]:
        """The version's three numbers."""
        match = _VERSION.search(self.version_text)
        return tuple(int(part) for part in match.groups()) if match else (0, 0, 0)

    def is_mysql(self, *version: int) -> bool:
        """Whether it is a MySQL of that version or a later one."""
        return self.flavor == "mysql" and self.version >= version

    def variable(self, name: str) -> str | None:
        """A global variable's text; None where this server has none of that name."""
        return self.variables.get(name)

    def set_global(self, name: str, value: str) -> str:
        """The statement that sets a variable for new sessions, and for good where the server can do that."""
        word = "PERSIST" if self.is_mysql(8) else "GLOBAL"
        return f"SET {word} {name} = {value}"

    def rows(self, question: str, *arguments: object) -> tuple[dict[str, Any], ...]:
        """Answers by column name, in lower case.

        Raises:
            Denied: the user may not ask that.
            SourceError: the server refuses it for another reason.
        """

        def ask(connection: Connection[Any]) -> tuple[dict[str, Any], ...]:
            with connection.cursor() as cursor:
                cursor.execute(question, arguments or None)
                names = [str(each[0]).lower() for each in cursor.description or ()]
                return tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())

        return self.asked(ask, question)

    def asked(self, ask: Callable[[Connection[Any]], T], where: str) -> T:
        """What *ask* finds over the connection; *where* is told with an error, which are those of :meth:`rows`."""
        import pymysql

        try:
            return ask(self.connection)
        except pymysql.err.MySQLError as error:
            kind = QuestionDenied if error.args and error.args[0] in _DENIED else SourceError
            raise kind("the server refuses a question", where=where, found=str(error)) from error

    def account(self) -> str:
        """Whom the server takes the user for, quoted as in statements."""
        user = str(self.rows("SELECT CURRENT_USER() AS name")[0]["name"])
        return "@".join(f"'{part}'" for part in user.rsplit("@", 1))

    def rows_if_allowed(self, question: str) -> tuple[dict[str, Any], ...] | None:
        """As :meth:`rows`; None where the user may not ask that."""
        try:
            return self.rows(question)
        except QuestionDenied:
            return None
