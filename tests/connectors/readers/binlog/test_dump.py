"""What a server's packets make of a dump, without a server."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from connectors.readers.binlog.dump import Dump
from historian.errors import SourceError
from log_files import format_description, packets
from row_events import event


def dump_of(*events: bytes) -> Dump:
    """A dump from binlog.000003:4 on that was sent these events."""
    sent = packets([b"\0" + each for each in events])
    dump: Any = Dump(Mock(), "mysql")
    gatherer = dump._gatherer
    gatherer.begin_file("binlog.000003", 4)

    def receive() -> None:
        gatherer.room()[: len(sent)] = sent
        gatherer.fill += len(sent)

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
