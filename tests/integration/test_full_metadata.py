"""FULL metadata on real servers: what a statement without a trace in the log changed is told by the rows' own TABLE_MAP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from databases.servers import Server
from historian.errors import PositionUnknown
from historian.names import TableName
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot
from replicas.tracked import Tracked, unlogged


@pytest.fixture(params=["mysql9", "mysql8", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    """A server of each kind that logs FULL metadata."""
    server: Server = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def tracked(source: Server, database: str, tmp_path: Path) -> Iterator[Tracked]:
    """The same on a server that logs FULL metadata."""
    with _full_metadata(source):
        found = Tracked.of(source, tmp_path, database)
        found.begin()
        yield found


@contextmanager
def _full_metadata(server: Server) -> Iterator[None]:
    ((before,),) = server.sql("SELECT @@GLOBAL.binlog_row_metadata")
    server.sql("SET GLOBAL binlog_row_metadata = 'FULL'")
    try:
        yield
    finally:
        server.sql(f"SET GLOBAL binlog_row_metadata = '{before}'")


def _snapshots(tracked: Tracked, database: str) -> list[Snapshot]:
    with tracked.tracker() as tracker:
        versions = tracker.history.versions(TableName(database, "t"))
        return [version.snapshot for version in versions if version.snapshot is not None]


CREATE = "id INT PRIMARY KEY, a INT, b VARCHAR(20), e ENUM('x', 'y')"


def test_rows_behind_an_unlogged_change_are_read_with_what_their_table_map_says(
    source: Server, database: str, tracked: Tracked, caplog: pytest.LogCaptureFixture
) -> None:
    name = TableName(database, "t")
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'one', 'x')")
    with tracked.tracker() as tracker:
        tracker.catch_up()
        proven = tracker.reader.end()
    source.sql(f"CREATE TABLE {database}.u (id INT)")
    with tracked.tracker() as tracker:
        inside = tracker.reader.end()
    unlogged(
        source,
        f"ALTER TABLE {database}.t CHANGE a renamed INT, MODIFY b VARCHAR(30), ADD n DECIMAL(8,3) NOT NULL FIRST, "
        "MODIFY e ENUM('x', 'y', 'z')",
    )
    source.sql(f"INSERT INTO {database}.t VALUES (1.5, 2, 22, 'two', 'z')")
    source.sql(f"ALTER TABLE {database}.t ADD later INT DEFAULT 9")
    source.sql(f"INSERT INTO {database}.t VALUES (2.5, 3, 33, 'three', 'y', 10)")

    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {
            "t": [
                ("+A", {"id": 1, "a": 1, "b": "one", "e": "x"}),
                ("+A", {"n": "1.500", "id": 2, "renamed": 22, "b": "two", "e": "z"}),
                ("+A", {"n": "2.500", "id": 3, "renamed": 33, "b": "three", "e": "y", "later": 10}),
            ]
        }
        assert tracked.stopped(tracker) == {}
        assert "a change of the table is not in the log" in caplog.text
        history = tracker.history
        assert history.at(name, tracker.end_of(1)).snapshot is not None
        with pytest.raises(PositionUnknown):
            history.at(name, inside)
        resumed = [e for entry in history.entries for e in entry.edits if isinstance(e, ResumeTable)]
        assert [edit.loses_rows for edit in resumed] == [True], "what old rows hold in the new columns is not known"
        assert resumed[0].unknown_since is not None
        assert proven.covers(resumed[0].unknown_since)
        assert "TABLE_MAP at " in resumed[0].reason
    first, second, third = _snapshots(tracked, database)
    old, new = ({column.name: column.id for column in s.columns} for s in (first, second))
    assert {name for name in new if old.get(name) == new[name]} == {"id", "b", "e"}
    assert not {new["renamed"], new["n"]} & set(old.values())
    assert second.primary_key == first.primary_key
    assert [column.name for column in third.columns] == ["n", "id", "renamed", "b", "e", "later"]


def test_the_same_log_read_again_tells_the_same(source: Server, database: str, tracked: Tracked) -> None:
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    unlogged(source, f"ALTER TABLE {database}.t DROP a")
    source.sql(f"INSERT INTO {database}.t VALUES (2, 'two', 'x')")
    with tracked.tracker() as tracker:
        rows = tracked.news(tracker)
        entries = tracker.store.entries()
    with tracked.tracker() as tracker:
        assert (tracked.news(tracker), tracker.store.entries()) == (rows, entries)
        assert rows == {"t": [("+A", {"id": 2, "b": "two", "e": "x"})]}
        assert [v.segment for t in tracker.stored(1).tables for v in t.versions] == [0, 0], "no value is in doubt"


def test_what_a_table_map_does_not_tell_for_certain_stops_the_table(
    source: Server, database: str, tracked: Tracked
) -> None:
    source.sql(f"CREATE TABLE {database}.t ({CREATE})")
    source.sql(f"INSERT INTO {database}.t VALUES (1, 1, 'one', 'x')")
    unlogged(source, f"ALTER TABLE {database}.t DROP PRIMARY KEY, ADD PRIMARY KEY (b, id)")
    source.sql(f"INSERT INTO {database}.t VALUES (2, 2, 'two', 'x')")
    with tracked.tracker() as tracker:
        assert tracked.news(tracker) == {"t": [("+A", {"id": 1, "a": 1, "b": "one", "e": "x"})]}
        assert "does not fit the schema in force" in tracked.stopped(tracker)["t"]


TOLD = {
    "MODIFY a INT UNSIGNED": "unsigned",
    "MODIFY b VARCHAR(20) CHARACTER SET latin1": "latin1",
    "MODIFY e ENUM('y', 'x')": "('y', 'x')",
    "CHANGE b c VARCHAR(20)": "c VARCHAR",
    "MODIFY a INT NOT NULL": "NOT NULL",
    "DROP PRIMARY KEY": "primary key",
    "ALTER COLUMN b SET INVISIBLE": "INVISIBLE",
    "MODIFY p GEOMETRY": "GEOMETRY",
}


def test_each_thing_that_metadata_tells_is_compared(
    mysql9: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mysql9.sql("CREATE DATABASE told")
    with _full_metadata(mysql9):
        tracked = Tracked.of(mysql9, tmp_path, "told")
        tracked.begin()
        for number, change in enumerate(TOLD):
            mysql9.sql(f"CREATE TABLE told.t{number} ({CREATE}, p POINT)")
            unlogged(mysql9, f"ALTER TABLE told.t{number} {change}")
            mysql9.sql(f"INSERT INTO told.t{number} (id, a, e) VALUES (2, 2, 'x')")
    with tracked.tracker() as tracker:
        rows = tracked.news(tracker)
        assert tracked.stopped(tracker) == {}
    assert {table: len(delivered) for table, delivered in rows.items()} == {f"t{n}": 1 for n in range(len(TOLD))}
    for number, (change, said) in enumerate(TOLD.items()):
        (message,) = (r.getMessage() for r in caplog.records if f"told.t{number}:" in r.getMessage())
        assert said in message.partition("\n")[2], change
