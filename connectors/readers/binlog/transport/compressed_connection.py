"""PyMySQL's connection with the protocol's compression, which PyMySQL does not speak.

Capabilities: https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from connectors.readers.binlog.transport.compressed_socket import ZSTD_LEVEL, CompressedSocket
from historian.errors import SourceError

__all__ = ["CompressedConnection"]

_FLAGS = {"zlib": 1 << 5, "zstd": 1 << 26}
_SINCE = {
    "zlib": "; MySQL says in protocol_compression_algorithms what it offers",
    "zstd": "; MySQL 8.0.18 and later have zstd, where protocol_compression_algorithms names it",
}
_MARIADB_PREFIX = "5.5.5-"
_TLS_REQUEST_BYTES = 32


class CompressedConnection(Connection):
    """A connection all of whose packets behind the login are compressed.

    Args:
        algorithm: "zlib" or "zstd".
        where: the server, for errors.
        settings: PyMySQL's.

    Raises:
        SourceError: the server does not offer the algorithm.
        pymysql.err.MySQLError: as PyMySQL's own connection.
    """

    # Of the library's own, which its types leave out.
    _sock: Any
    _rfile: Any
    _next_seq_id: int
    server_capabilities: int
    server_version: str

    def __init__(self, algorithm: str, where: str, **settings: Any) -> None:
        self._algorithm, self._where = algorithm, where
        self._names_level = self._is_compressed = self._in_packet = False
        super().__init__(client_flag=_FLAGS[algorithm], **settings)

    def _request_authentication(self) -> None:
        self._check_offer(self.server_capabilities, self.server_version)
        self._names_level = self._algorithm == "zstd"
        super()._request_authentication()  # type: ignore[misc]
        # The server has said that the login is done, and says no more until it is asked.
        self._rfile.close()
        self._sock = CompressedSocket(self._sock, self._algorithm, self._where)
        self._rfile = self._sock.makefile()
        self._is_compressed = True

    def _check_offer(self, capabilities: int, version: str) -> None:
        if capabilities & _FLAGS[self._algorithm]:
            return
        offered = [name for name, flag in _FLAGS.items() if capabilities & flag]
        raise SourceError(
            "the server does not offer the compression that is asked for",
            where=self._where,
            expected=self._algorithm,
            found=f"{' and '.join(offered) or 'none'} of {version.removeprefix(_MARIADB_PREFIX)}",
            next_step=f"set source.compression to {' or '.join((*offered, 'none'))}{_SINCE[self._algorithm]}",
        )

    def write_packet(self, payload: bytes) -> None:
        """As PyMySQL's; the answer to the greeting ends with the level where the algorithm has one."""
        if self._names_level and len(payload) > _TLS_REQUEST_BYTES:
            self._names_level = False
            payload += bytes([ZSTD_LEVEL])
        super().write_packet(payload)

    def _read_bytes(self, num_bytes: int) -> bytes:
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        # A header and a body in turn. Servers that compress count frames, and take a packet's number from that count at
        # times, so the library is to expect the number that there is.
        self._in_packet = not self._in_packet
        if self._is_compressed and self._in_packet:
            self._next_seq_id = data[3]
        return data
