"""The check at the log's head, by what connectors of one server share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from connectors.readers.base import Reader
from connectors.tracking.capture.shared import HeadCaptures, SharedCaptures
from connectors.tracking.head_check import HeadCheck
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.positions import LogPosition
from historian.schema.edits import CreateTable
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from historian.store import Store

PLACE = LogPosition(flavor="mysql", gtids="", file="binlog.000001", offset=400, server="s")
KNOWN = TableName("shop", "known")


class Standing:
    """A log that ends at one place."""

    def near_end(self) -> LogPosition:
        return PLACE

    end = near_end


@dataclass
class Server:
    """Tells its tables, and is asked."""

    tables: tuple[TableName, ...]
    asked: list[frozenset[str] | None] = field(default_factory=list)

    def __call__(self, databases: frozenset[str] | None) -> Catalog:
        self.asked.append(databases)
        return Catalog(tables={name: _table(number, name) for number, name in enumerate(self.tables, 1)})


class Connector:
    """One whose history has the table ``shop.known``, and that captures the database ``shop``."""

    def __init__(self, store: Store, server: Server, shared: SharedCaptures, *, first_s: float = 0.0) -> None:
        self.store, self.now_s = store, first_s
        entry = TimelineEntry(
            number=1,
            place=None,
            position=PLACE,
            edits=(CreateTable(snapshot=_table(1, KNOWN)),),
            statement="",
            database="",
            event_time_us=0,
            server="s",
        )
        self.history = History()
        self.history.record(entry)
        captures = HeadCaptures(server, frozenset({"shop"}), shared)
        self.check = HeadCheck(captures, store, lambda name: name.database == "shop", lambda: self.now_s)

    def look(self) -> list[str]:
        """What is stopped behind a look."""
        self.check.look(self.history, cast("Reader", Standing()))
        return sorted(str(name) for _, name, _ in self.store.stopped())


def _table(number: int, name: TableName) -> Snapshot:
    return Snapshot(
        table_id=number,
        name=name,
        columns=(Column(id=number, name="id", type=ColumnType(name="int")),),
        primary_key=(number,),
        charset="utf8mb4",
        collation="utf8mb4_0900_ai_ci",
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/store.db")) as opened:
        opened.connector("shop")
        yield opened


def test_what_differs_in_a_shared_capture_counts_when_it_differs_in_one_of_its_own_too(store: Store) -> None:
    server, shared = Server((TableName("shop", "unlogged"), KNOWN)), SharedCaptures()
    one = Connector(store, server, shared)
    assert ([], True) == (one.look(), one.check.doubts)
    assert (["shop.unlogged"], False) == (one.look(), one.check.doubts)
    assert 2 == len(server.asked)


def test_what_a_server_shows_before_it_is_logged_stops_nothing(store: Store) -> None:
    server, shared = Server((TableName("shop", "unlogged"), KNOWN)), SharedCaptures()
    one = Connector(store, server, shared)
    assert [] == one.look()
    server.tables = (KNOWN,)
    assert ([], False) == (one.look(), one.check.doubts)


def test_quiet_connectors_of_one_server_ask_it_once_a_minute(store: Store) -> None:
    clock_s = [0.0]
    server, shared = Server((KNOWN, TableName("other", "t"))), SharedCaptures(lambda: clock_s[0])
    several = [Connector(store, server, shared) for _ in range(5)]
    for at_s in range(0, 180, 20):
        clock_s[0] = at_s
        for one in several:
            one.now_s = at_s
            assert [] == one.look()
    assert 3 == len(server.asked)
