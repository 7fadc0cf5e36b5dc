"""Filters as plans keep them, and the place of a table's stop by one."""

from __future__ import annotations

import pytest

from connectors.config import TableFilter
from connectors.tracking.scope import filter_text, stops_by_filter
from historian.history.online_schema_changes import TOOLS, OnlineChanges
from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.snapshots import Catalog, Snapshot

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_a_filters_text_gives_the_same_filter() -> None:
    found = TableFilter(("shop.*", "!shop.audit_*"), OnlineChanges(TOOLS[:2]))

    assert TableFilter.parse(found.text()) == found
    assert filter_text(found) == found.text()
    assert filter_text(lambda _: True) == ""


@pytest.mark.parametrize(
    "flavor,gtids,place",
    [
        ("mysql", f"{UUID}:1-5:7-9", f"{UUID}:9"),
        ("mysql", f"{UUID}:1-5:tag:3", f"{UUID}:tag:3"),
        ("mysql", f"{UUID}:1-5:a:3:b:1-4:6", f"{UUID}:b:6"),
        ("mariadb", "0-1-100,1-2-50", "1-2-50"),
        ("mysql", "", ""),
    ],
)
def test_a_stop_stands_at_a_transaction_that_every_later_position_holds(flavor: str, gtids: str, place: str) -> None:
    table = Snapshot(table_id=1, name=TableName("shop", "t"), columns=(), primary_key=(), charset="", collation="")
    start = LogPosition(flavor=flavor, gtids=gtids, file="binlog.000003", offset=157)
    catalog = Catalog(tables={table.name: table})
    ((table_id, name, stop),) = stops_by_filter(TableFilter(("a.*",)).text(), TableFilter(("shop.*",)), catalog, start)

    assert (table_id, name, stop.since) == (1, table.name, start)
    assert (stop.place.gtid, stop.place.file, stop.place.offset) == (place, "binlog.000003", 157)
    assert not place or start.gtid_set.contains_gtid(place)
