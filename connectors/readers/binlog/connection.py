"""Connections to a server: its address, TLS, and an id that no other connection of ours has."""

from __future__ import annotations

import random
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from historian.errors import SourceError

if TYPE_CHECKING:
    from pymysql.connections import Connection

__all__ = ["ConnectionLost", "ServerAddress", "TlsSettings", "take_server_id"]

_TLS_MODES = ("disabled", "preferred", "required", "verify_ca", "verify_identity")
_ACCESS_DENIED = frozenset((1044, 1045, 1698))


class ConnectionLost(SourceError):
    """The server cannot be reached, or the connection broke."""

    retryable = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """How a connection is encrypted.

    Attributes:
        mode: disabled, preferred (where the server offers it), required, verify_ca, or verify_identity (certificate and name).
        ca, cert, key: paths of PEM files; without ``ca`` the system's authorities count.
    """

    mode: str = "preferred"
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def arguments(self) -> dict[str, Any]:
        """What PyMySQL's ``connect`` takes."""
        if self.mode not in _TLS_MODES:
            raise SourceError("not a TLS mode", expected=", ".join(_TLS_MODES), found=self.mode)
        if self.mode == "disabled":
            return {"ssl_disabled": True}
        if self.mode == "preferred":
            return {}
        context = ssl.create_default_context(cafile=self.ca)
        # Servers make certificates for themselves that break the strict profile, which Python 3.13 switches on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = self.mode == "verify_identity"
        if self.mode == "required":
            context.verify_mode = ssl.CERT_NONE
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        return {"ssl": context}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Where a server is and who asks.

    Attributes:
        server_ids: first and last of the ids that dump connections may take; each takes one of its own, since servers cut off the
            older of two equal ones.
        timeout_s: how long a connection attempt or a silent server is waited for.
    """

    host: str
    user: str
    port: int = 3306
    password: str = field(default="", repr=False)
    tls: TlsSettings = TlsSettings()
    server_ids: tuple[int, int] = (1_600_000_000, 1_699_999_999)
    timeout_s: int = 60

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"

    def connect(self) -> Connection[Any]:
        """A new connection in autocommit mode.

        Raises:
            ConnectionLost: nobody answers there.
            SourceError: the user or its password is refused, or TLS cannot be had as asked.
        """
        import pymysql

        try:
            return pymysql.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password=self.password,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=self.timeout_s,
                read_timeout=self.timeout_s,
                write_timeout=self.timeout_s,
                **self.tls.arguments(),
            )
        except pymysql.err.MySQLError as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> SourceError:
        number, text = (*error.args, "")[:2] if error.args else (0, str(error))
        if number in _ACCESS_DENIED:
            return SourceError(
                "the server refuses the user or its password",
                where=str(self),
                found=f"error {number}: {text}",
                next_step="correct user and password, or CREATE USER and GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT",
            )
        if "ssl" in str(text).lower() or "certificate" in str(text).lower():
            return SourceError(
                "no TLS connection can be made as asked",
                where=str(self),
                expected=f"tls mode {self.tls.mode}",
                found=str(text),
                next_step="correct tls.ca or tls.mode",
            )
        return ConnectionLost("the server cannot be reached", where=str(self), found=f"error {number}: {text}")


def take_server_id(connection: Connection[Any], ids: tuple[int, int], where: str) -> int:
    """An id of *ids* that no other connection of ours to that server has, for as long as *connection* lives.

    A server cuts off an older dump with the same id without a word, so each is held by a user lock (``GET_LOCK``) there.

    Raises:
        SourceError: all are taken.
    """
    first, last = ids
    count = last - first + 1
    tried = random.sample(range(first, last + 1), min(count, 1000))
    with connection.cursor() as cursor:
        for server_id in tried:
            cursor.execute("SELECT GET_LOCK(%s, 0)", (f"historian server id {server_id}",))
            row = cursor.fetchone()
            if row is not None and row[0] == 1:
                return server_id
    raise SourceError(
        "no server id is free",
        where=where,
        expected="one for each connection",
        found=f"{count} ids from {first} to {last}, all in use",
        next_step="widen source.server_id",
    )
