"""Connections to a server: its address, TLS, and an id that no other connection of ours has."""

from __future__ import annotations

import random
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from historian.errors import SourceError, SourceNotLetIn

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = [
    "Compression",
    "ConnectionLost",
    "NotLetIn",
    "ServerAddress",
    "TlsSettings",
    "answered",
    "same_server",
    "server_id_lock",
    "server_identity",
    "take_server_id",
]

Compression = Literal["none", "zlib", "zstd"]
"""How the protocol's packets are compressed; MariaDB has zlib alone."""

_TLS_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_TRIES = 200
_NO_TIME_LIMIT = "SET SESSION /*!50708 max_execution_time = 0 *//*M!100101 max_statement_time = 0 */"
"""A server's default may end statements early. MySQL takes the first for code and the second for a comment, MariaDB the other way round."""
_CLOSING_S = 3
_ACCESS_DENIED = frozenset((1044, 1045, 1698))
_COMPRESSION_WANTED = 3922
_CLEAR_TEXT = 2061
_GONE = frozenset((0, 1053, 1927, 2006, 2013, 2014, 4031))
"""Errors of a connection that broke, or whose server shuts down or has killed it."""


class ConnectionLost(SourceError):
    """The server cannot be reached, or the connection broke."""

    retryable = True
    usual_next_step = (
        "check source.host and source.port, and that the server runs; `historian run` tries again by itself"
    )


class NotLetIn(SourceNotLetIn):
    """The server refuses the user or its password, or TLS cannot be had as asked. Both can be others without a change of the configuration."""


class _NoTls(NotLetIn):
    """TLS cannot be had as asked."""


def _is_about_tls(error: Exception) -> bool:
    text = str(error).lower()
    return "ssl" in text or "tls" in text or "certificate" in text


class _NoClearText:
    """Any server may ask for the password in clear text. This handler of PyMySQL does not give it."""

    def __init__(self, _connection: object) -> None:
        pass

    def authenticate(self, _request: object) -> NoReturn:
        import pymysql

        raise pymysql.err.OperationalError(_CLEAR_TEXT, "the server asks for the password in clear text")


_WITHOUT_TLS = {
    "ssl_disabled": True,
    "auth_plugin_map": dict.fromkeys(("mysql_clear_password", "dialog", "mysql_old_password"), _NoClearText),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How a connection is encrypted.

    Attributes:
        mode: disabled, preferred (where the server offers it), required, verify_ca, or verify_identity (certificate and
            name).
        ca, cert, key: paths of PEM files; without ``ca`` the system's authorities count.
    """

    mode: str = "preferred"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in _TLS_MODES:
            raise SourceError("not a TLS mode", expected=", ".join(_TLS_MODES), found=self.mode)


def _context(tls: TlsSettings) -> ssl.SSLContext:
    """Made once for files as they are: reading the system's authorities takes a tenth of a second."""
    return _context_of(tls, tuple(_stamp(path) for path in (tls.ca, tls.cert, tls.key)))


def _stamp(path: str | None) -> tuple[int, ...]:
    """What tells a file from what stood in its place before; () where there is none."""
    try:
        found = Path(path).stat() if path is not None else None
    except OSError:
        return ()
    return () if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=16)
def _context_of(tls: TlsSettings, _: tuple[tuple[int, ...], ...]) -> ssl.SSLContext:
    if tls.mode in ("preferred", "required"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=tls.ca)
        # Servers make certificates for themselves that break the strict profile, which Python 3.13 switches on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = tls.mode == "verify_identity"
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is and who asks.

    Attributes:
        server_ids: first and last of the ids that dump connections may take; each takes one of its own, since servers
            cut off the older of two equal ones.
        timeout_s: how long a connection attempt or a silent server is waited for.
        compression: of all that is sent and received, where the server offers it; inside TLS.
    """

    host: str
    user: str
    port: int = 3306
    password: str = field(default="", repr=False)
    tls: TlsSettings = TlsSettings()
    server_ids: tuple[int, int] = (1_600_000_000, 1_699_999_999)
    timeout_s: int = 60
    compression: Compression = "none"

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def connect(self) -> Connection[Any]:
        """A new connection in autocommit mode.

        Raises:
            ConnectionLost: nobody answers there.
            SourceError: the user or its password is refused, or TLS or compression cannot be had as asked.
        """
        if self.tls.mode == "disabled":
            return self._connect(**_WITHOUT_TLS)
        try:
            return self._connect(ssl=_context(self.tls))
        except _NoTls:
            if self.tls.mode == "preferred":
                return self._connect(**_WITHOUT_TLS)
            raise

    def _connect(self, **tls: Any) -> Connection[Any]:
        import pymysql

        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "init_command": _NO_TIME_LIMIT,
            "connect_timeout": self.timeout_s,
            "read_timeout": self.timeout_s,
            "write_timeout": self.timeout_s,
            **tls,
        }
        try:
            if self.compression == "none":
                return pymysql.connect(**settings)
            from connectors.readers.binlog.transport.compressed_connection import CompressedConnection

            return CompressedConnection(self.compression, str(self), **settings)
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error
        except RuntimeError as error:
            # PyMySQL says so where a server answers a statement by asking for a file of ours.
            raise SourceError("this is not a server to follow", where=str(self), found=str(error)) from error

    def _failure(self, error: Exception) -> SourceError:
        number, text = (*error.args, "")[:2] if error.args else (0, str(error))
        if number in _ACCESS_DENIED:
            return NotLetIn(
                "the server refuses the user or its password",
                where=str(self),
                found=f"error {number}: {text}",
                next_step="correct user and password, or CREATE USER and GRANT REPLICATION SLAVE, REPLICATION CLIENT",
            )
        if number == _COMPRESSION_WANTED:
            return SourceError(
                "the server takes no connection without compression",
                where=str(self),
                expected="an algorithm of its protocol_compression_algorithms",
                found=f"error {number}: {text}",
                next_step="set source.compression to zlib or zstd",
            )
        if number == _CLEAR_TEXT:
            return SourceError(
                "the password is not sent in clear text without TLS",
                where=str(self),
                found=str(text),
                next_step="set tls.mode to required or more, or give the user a plugin such as caching_sha2_password",
            )
        if _is_about_tls(error):
            return _NoTls(
                "no TLS connection can be made as asked",
                where=str(self),
                expected=f"tls mode {self.tls.mode}",
                found=str(text),
                next_step="correct tls.ca or tls.mode",
            )
        return ConnectionLost("the server cannot be reached", where=str(self), found=f"error {number}: {text}")


@contextmanager
def answered(where: str) -> Iterator[None]:
    """Errors of statements inside as ours.

    Raises:
        ConnectionLost: the connection broke, or the server shuts down.
        SourceError: the server refuses a statement.
    """
    import pymysql

    try:
        yield
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] not in _GONE:
            raise SourceError("the server refuses a statement", where=where, found=str(error)) from error
        raise ConnectionLost("the server did not answer", where=where, found=str(error)) from error
    except OSError as error:
        raise ConnectionLost("the server did not answer", where=where, found=str(error)) from error


def server_id_lock(server_id: int) -> str:
    """The name of the user lock that the connection with an id of ours holds."""
    return f"historian server id {server_id}"


def server_identity(connection: Connection[Any], flavor: str, where: str) -> str:
    """What tells a server from others whose files have the same names.

    Raises:
        ConnectionLost: the connection broke.
    """
    with answered(where), connection.cursor() as cursor:
        cursor.execute("SELECT @@server_id" if flavor == "mariadb" else "SELECT @@server_uuid")
        return str((cursor.fetchone() or ("",))[0])


def same_server(expected: str, found: str, where: str) -> None:
    """Makes sure that two connections lead to one server, by what :func:`server_identity` gave of each.

    Raises:
        ConnectionLost: they do not. What is asked anew is of one server again.
    """
    if found != expected:
        raise ConnectionLost(
            "the address leads to another server now", where=where, expected=f"server {expected}", found=found
        )


def take_server_id(connection: Connection[Any], ids: tuple[int, int], where: str) -> int:
    """An id of *ids* that no other connection of ours to that server has, for as long as *connection* lives.

    A server cuts off an older dump with the same id without a word, so each is held by a user lock (``GET_LOCK``)
    there. A connection that was closed holds its own until the server has noticed, which is waited for.

    Raises:
        ConnectionLost: the connection broke.
        SourceError: all are taken.
    """
    with answered(where), connection.cursor() as cursor:
        drawn = list(_draw(*ids))
        for server_id, wait_s in [*((one, 0) for one in drawn), (drawn[0], _CLOSING_S)]:
            cursor.execute("SELECT GET_LOCK(%s, %s)", (server_id_lock(server_id), wait_s))
            row = cursor.fetchone()
            if row is not None and row[0] == 1:
                return server_id
    raise SourceError(
        "no server id is free",
        where=where,
        expected="one for each connection",
        found=f"ids {ids[0]} to {ids[1]}, all in use",
        next_step="widen source.server_id",
    )


def _draw(first: int, last: int) -> Iterator[int]:
    """The ids of a small range in any order; of a large one as many as it is worth to try."""
    if last - first < _TRIES:
        yield from random.sample(range(first, last + 1), last - first + 1)
    else:
        for _ in range(_TRIES):
            yield random.randint(first, last)  # noqa: S311 - to be spread, not secret
