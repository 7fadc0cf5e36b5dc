"""Servers that want something of us: the password, a file. No real server can be asked to be hostile."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connectors.readers.binlog.transport.connection import ServerAddress, TlsSettings
from historian.errors import SourceError

_CAPABILITIES = 0x1 | 0x200 | 0x8000 | 0x80000  # long passwords, protocol 4.1, secure connection, plugins
_OK = b"\x00\x00\x00\x02\x00\x00\x00"


@contextmanager
def _server(*answers: bytes, connections: int = 1) -> Iterator[tuple[int, bytearray]]:
    """Its port, and all that it was sent. It greets, and gives the *answers* in turn."""
    heard = bytearray()

    def serve() -> None:
        for _ in range(connections):
            peer, _ = listener.accept()
            with peer:
                _talk(peer, answers, heard)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], heard
        thread.join(10)
        assert not thread.is_alive()


def _talk(peer: socket.socket, answers: tuple[bytes, ...], heard: bytearray) -> None:
    greeting = (
        b"\x0a8.0.99\x00"
        + struct.pack("<I", 1)
        + b"12345678\x00"
        + struct.pack("<HBHHB", _CAPABILITIES & 0xFFFF, 45, 2, _CAPABILITIES >> 16, 21)
        + bytes(10)
        + b"123456789012\x00mysql_native_password\x00"
    )
    number = 0
    for answer in (greeting, *answers):
        peer.sendall(struct.pack("<I", len(answer))[:3] + bytes([number]) + answer)
        part = peer.recv(65536)
        heard.extend(part)
        number = part[3] + 1 if len(part) > 3 else 0
    while part := peer.recv(65536):
        heard.extend(part)


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"dialog", b"mysql_old_password"])
@pytest.mark.parametrize("mode", ["disabled", "preferred"])
def test_no_server_gets_the_password_in_clear_text(plugin: bytes, mode: str) -> None:
    switch = b"\xfe" + plugin + b"\x00" + b"\x02Password: "
    # Where TLS is preferred, the first connection ends with its being refused.
    with _server(switch, connections=1 + (mode == "preferred")) as (port, heard):
        address = ServerAddress(
            host="127.0.0.1", port=port, user="cdc", password="open sesame", tls=TlsSettings(mode=mode), timeout_s=5
        )
        with pytest.raises(SourceError, match=r"not sent in clear text without TLS.*tls\.mode to required") as caught:
            address.connect()
    assert b"open sesame" not in heard
    assert "open sesame" not in str(caught.value)


def test_no_server_gets_a_file_of_ours() -> None:
    with _server(_OK, _OK, b"\xfb/etc/hostname") as (port, heard):
        address = ServerAddress(host="127.0.0.1", port=port, user="cdc", tls=TlsSettings(mode="disabled"), timeout_s=5)
        with pytest.raises(SourceError, match=r"not a server to follow.*local_infile"):
            address.connect()
    assert Path("/etc/hostname").read_bytes().strip() not in heard
