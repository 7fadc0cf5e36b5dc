"""Logs that are not plain sequences of transactions: lost events, encryption, BINLOG statements, offsets of heartbeats."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.readers.base import Bound
from connectors.readers.binlog.events.layout import HEADER_BYTES, EventType
from connectors.readers.binlog.transport.dump import Dump
from connectors.recovery.healing import skip_lost_log
from databases.server_builds import Build, build
from databases.servers import Server
from historian.errors import LogPurged, SourceError
from logs.binlog_lab import events, files_reader, live_reader, run, scanned
from replicas.tracked import Tracked


@pytest.fixture
def tracked(server: Server, tmp_path: Path) -> Tracked:
    """A connector of the database ``txn``, which has a table ``t``, and one without transactions, ``m``."""
    run(server, "DROP DATABASE IF EXISTS txn", "CREATE DATABASE txn", "CREATE TABLE txn.t (a INT PRIMARY KEY, b TEXT)")
    run(server, "CREATE TABLE txn.m (a INT, b TEXT) ENGINE=MyISAM")
    tracked = Tracked.of(server, tmp_path, "txn")
    tracked.begin()
    return tracked


def keys(tracked: Tracked, after: int = 0) -> dict[str, list[int]]:
    with tracked.tracker() as tracker:
        return {table: [data["a"] for _, data in rows] for table, rows in tracked.news(tracker, after).items()}


def test_events_that_the_server_could_not_write_are_a_gap(server: Server, tracked: Tracked) -> None:
    sizes = ("max_binlog_stmt_cache_size", "binlog_stmt_cache_size")
    before = [server.sql(f"SELECT @@GLOBAL.{size}")[0][0] for size in sizes]
    too_much = ", ".join(f"({number}, REPEAT('x', 2000))" for number in range(40))
    run(server, "INSERT INTO txn.t VALUES (1, '')", *(f"SET GLOBAL {size} = 4096" for size in sizes))
    try:
        with pytest.raises(Exception, match="max_binlog_stmt_cache_size"):
            run(server, f"INSERT INTO txn.m VALUES {too_much}")
    finally:
        run(server, *(f"SET GLOBAL {size} = {value}" for size, value in zip(sizes, before, strict=True)))
    run(server, "INSERT INTO txn.t VALUES (2, '')")

    with pytest.raises(LogPurged, match="INCIDENT event") as raised:
        keys(tracked)
    assert "incident 1" in str(raised.value.found)
    assert "--lost-log" in str(raised.value.next_step)
    with tracked.tracker() as tracker:
        assert skip_lost_log(tracker).since is not None
    run(server, "INSERT INTO txn.t VALUES (3, '')")
    assert keys(tracked, 1) == {"t": [3]}


def test_rows_of_a_binlog_statement_are_rows(server: Server, tracked: Tracked) -> None:
    with contextlib.closing(live_reader(server)) as reader:
        start = reader.end()
        run(server, "INSERT INTO txn.t VALUES (1, 'x')", "DELETE FROM txn.t")
        found = [event for _, _, event in events(reader, start)]
    maps = [event for event in found if event[4] == EventType.TABLE_MAP]
    writes = [event for event in found if event[4] in (EventType.WRITE_ROWS, EventType.WRITE_ROWS_V1)]
    raw = Path(server.binlog_files()[-1]).read_bytes()
    described = raw[4 : 4 + int.from_bytes(raw[13:17], "little")]
    # Without checksums, as the description that goes before says.
    described = described[:-5] + b"\0" + described[-4:]
    text = base64.b64encode(described).decode()
    rows = "\n".join(base64.b64encode(_sized(event)).decode() for event in (maps[0], writes[0]))
    gtid = ["SET @@SESSION.GTID_NEXT = '3e11fa47-71ca-11e1-9e33-c80aa9429562:1'"] if server.flavor == "mysql" else []
    run(server, f"BINLOG '{text}'", *gtid, "BEGIN", f"BINLOG '{rows}'", "COMMIT")
    assert server.sql("SELECT a FROM txn.t") == ((1,),)
    assert keys(tracked) == {"t": [1, 1, 1]}


def _sized(event: bytes) -> bytes:
    return event[:9] + len(event).to_bytes(4, "little") + event[13:HEADER_BYTES] + event[HEADER_BYTES:]


@pytest.mark.parametrize("name", ["mariadb1011", "mariadb118"])
def test_an_encrypted_log_is_read_from_the_server_and_named_in_files(
    name: str, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    (plugins,) = {path.parent for path in build(name).root.rglob("file_key_management.so")}
    (tmp_path / "keys").write_text(f"1;{'a1' * 32}\n")
    options = ("plugin_load_add=file_key_management", f"file_key_management_filename={tmp_path}/keys")
    server = fresh_server(name, f"plugin_dir={plugins}", *options, "encrypt_binlog=ON")
    run(server, "CREATE DATABASE txn", "CREATE TABLE txn.t (a INT PRIMARY KEY)", "INSERT INTO txn.t VALUES (1)")
    tracked = Tracked.of(server, tmp_path, "txn", start="earliest")
    run(server, "FLUSH BINARY LOGS", "INSERT INTO txn.t VALUES (2)")

    assert keys(tracked) == {"t": [1, 2]}
    with pytest.raises(SourceError, match="encrypted") as raised:
        files_reader(server).start()
    assert "live server" in str(raised.value.next_step)


def test_an_encrypted_log_of_mysql_too(
    fresh_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keyring is named in a file beside the server's program, so it runs from a copy."""
    root, command = tmp_path / "root", Build.command
    shutil.copytree(build("mysql9").root, root, symlinks=True, copy_function=_link)
    monkeypatch.setattr(Build, "command", lambda kind, program=None, *, root=root: command(kind, program, root=root))
    program, plugins = Path(build("mysql9").command()[-1]), root / "usr/lib/mysql/plugin"
    (program.parent / "mysqld.my").write_text('{"components": "file://component_keyring_file"}')
    keyring = {"path": str(tmp_path / "keyring"), "read_only": False}
    (plugins / "component_keyring_file.cnf").write_text(json.dumps(keyring))
    server = fresh_server("mysql9", f"plugin_dir={plugins}", "binlog_encryption=ON")
    run(server, "CREATE DATABASE txn", "CREATE TABLE txn.t (a INT PRIMARY KEY)", "INSERT INTO txn.t VALUES (1)")
    tracked = Tracked.of(server, tmp_path, "txn", start="earliest")
    run(server, "FLUSH BINARY LOGS", "INSERT INTO txn.t VALUES (2)")

    assert server.binlog_files()[-1].read_bytes()[:4] == b"\xfdbin"
    assert keys(tracked) == {"t": [1, 2]}
    with pytest.raises(SourceError, match="encrypted"):
        files_reader(server).start()


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def test_heartbeats_of_both_kinds_say_how_far_the_server_is(
    mysql57: Server, mysql8: Server, mysql9: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[int] = set()
    special = Dump._special

    def noted(dump: Dump, *, stay: bool) -> bool:
        read_buffer = dump._read_buffer
        seen.add(int(read_buffer.buffer[int(read_buffer.state[4]) + 4]))
        return special(dump, stay=stay)

    monkeypatch.setattr(Dump, "_special", noted)
    for server, kind in (
        (mysql57, EventType.HEARTBEAT),
        (mysql8, EventType.HEARTBEAT_V2),
        (mysql9, EventType.HEARTBEAT_V2),
    ):
        with contextlib.closing(live_reader(server)) as reader:
            start = reader.end()
            run(server, "CREATE DATABASE IF NOT EXISTS txn", "DROP DATABASE txn")
            seen.clear()
            end = reader.end()
            assert (end.file, end.offset) == reader._status()
            assert scanned(reader, end) == []
            last = [item for item in scanned(reader, start) if isinstance(item, Bound)][-1]
        assert kind in seen
        assert last.position == end


def test_rows_that_a_foreign_key_changed_are_rows(mysql9: Server, tmp_path: Path) -> None:
    """Since 9.6 the log has them, with flags of their own in the row event."""
    run(
        mysql9,
        "DROP DATABASE IF EXISTS txn",
        "CREATE DATABASE txn",
        "CREATE TABLE txn.parent (a INT PRIMARY KEY)",
        "CREATE TABLE txn.child (a INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES txn.parent (a) ON DELETE CASCADE)",
    )
    tracked = Tracked.of(mysql9, tmp_path, "txn")
    tracked.begin()
    run(mysql9, "INSERT INTO txn.parent VALUES (1)", "INSERT INTO txn.child VALUES (10, 1)", "DELETE FROM txn.parent")
    with tracked.tracker() as tracker:
        news = {table: [(op, data["a"]) for op, data in rows] for table, rows in tracked.news(tracker).items()}
    assert news == {"parent": [("+A", 1), ("-R", 1)], "child": [("+A", 10), ("-R", 10)]}


def test_transactions_with_and_without_gtids_in_one_log(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server("mysql8", "gtid_mode=OFF_PERMISSIVE", "enforce_gtid_consistency=ON")
    run(server, "CREATE DATABASE txn", "CREATE TABLE txn.t (a INT PRIMARY KEY)")
    tracked = Tracked.of(server, tmp_path, "txn")
    tracked.begin()
    own = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    held: list[int] = []
    with tracked.tracker() as tracker:
        number = 0
        for key in range(6):
            named = [f"SET gtid_next = '{own}:{key}'"] if key % 2 else []
            run(server, *named, f"INSERT INTO txn.t VALUES ({key})")
            if key == 3:
                run(server, "FLUSH BINARY LOGS", "SET GLOBAL gtid_mode = ON_PERMISSIVE")
            held += [data["a"] for _, data in tracked.news(tracker, number).get("t", [])]
            last = tracker.store.last_plan()
            assert last is not None
            number = last.number
    assert held == list(range(6))
