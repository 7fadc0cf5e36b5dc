"""The place in the log at which a typed table's schema is taken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connectors.spark.finding import schema_position
from historian.history.timeline import TimelineEntry
from historian.positions import LogPosition
from historian.positions.places import Place

OLD, NEW = "4dcb5179-e59f-11f1-b7a4-02fc00000001", "4dcb5179-e59f-11f1-b7a4-02fc00000002"


@pytest.mark.parametrize(
    "said,expected",
    [
        (f"{NEW}:9", f"{OLD}:1-7,{NEW}:1-9"),
        (f"{NEW}:3", f"{OLD}:1-7,{NEW}:1-3"),
        (f"{NEW}:2", f"{NEW}:1-2"),
        (f"{OLD}:7", f"{OLD}:1-7"),
        (f"{OLD}:1-7,{NEW}:1-2", f"{OLD}:1-7,{NEW}:1-2"),
        (f"{OLD}:7-8", f"{OLD}:7-8"),
        ("binlog.000003:4711", "binlog.000003:4711"),
    ],
)
def test_a_transaction_alone_stands_for_all_that_its_servers_had_before(said: str, expected: str) -> None:
    entries = [_entry(1, f"{OLD}:1-4", f"{OLD}:5"), _entry(2, f"{OLD}:1-7,{NEW}:1-2", f"{NEW}:3")]
    tracker: Any = SimpleNamespace(history=SimpleNamespace(entries=entries), reader=SimpleNamespace(flavor="mysql"))

    assert expected == str(schema_position(said, tracker))


def _entry(number: int, before: str, gtid: str) -> TimelineEntry:
    return TimelineEntry(
        number=number,
        place=Place(gtid=gtid, ordinal=0, file="binlog.000001", offset=4),
        position=LogPosition(flavor="mysql", gtids=before, file="", offset=0),
        edits=(),
        statement="",
        database="",
        event_time_us=0,
        server="",
    )
