"""What a server's packets make of a dump, without a server."""

from __future__ import annotations

import socket
from typing import Any
from unittest.mock import Mock

import pytest

from connectors.readers.binlog.transport.connection import ConnectionLost
from connectors.readers.binlog.transport.dump import Dump
from historian.errors import SourceError
from logs.log_files import format_description, packets
from logs.row_events import event


def dump_of(*events: bytes) -> Dump:
    """A dump from binlog.000003:4 on that was sent these events."""
    sent = packets([b"\0" + each for each in events])
    dump: Any = Dump(Mock(), "mysql")
    read_buffer = dump._read_buffer
    read_buffer.begin_file("binlog.000003", 4)

    def receive() -> None:
        read_buffer.room()[: len(sent)] = sent
        read_buffer.fill += len(sent)

    dump._receive = receive
    return dump  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "sent, what",
    [
        (event(15, bytes(20)), "a FORMAT_DESCRIPTION event is too short"),
        (format_description("5.5.62") + bytes(4), "a binlog of a server that is too old"),
        (event(41, b"\1\2"), "a HEARTBEAT_V2 event says no offset"),
    ],
    ids=["short", "old", "heartbeat"],
)
def test_events_about_the_file_that_are_wrong_say_where_they_stand(sent: bytes, what: str) -> None:
    raw = sent[:9] + len(sent).to_bytes(4, "little") + sent[13:]
    with pytest.raises(SourceError, match=what) as raised:
        list(dump_of(raw).windows())
    text = str(raised.value)
    assert "binlog.000003:4" in text
    assert "FORMAT_DESCRIPTION" in text or "HEARTBEAT_V2" in text


def test_a_server_that_stays_silent_is_given_up_and_may_be_asked_again() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        dump: Any = Dump(Mock(timeout_s=0.01, connect=lambda: Mock(_sock=ours)), "mysql")
        dump._send(18, b"")
        with pytest.raises(ConnectionLost, match=r"no byte came within 0\.01 s") as raised:
            next(dump.windows())
    assert raised.value.retryable
