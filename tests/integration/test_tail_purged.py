"""``tail`` of a connector whose first log is purged: what is recorded says which schemas hold in the log that is left."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from connectors.tail.follow import Tail
from connectors.tail.json_lines import ndjson_rows
from databases.servers import Server
from logs.binlog_lab import run
from replicas.tracked import Tracked


@pytest.mark.parametrize("begin", ["", "earliest", "position"])
def test_tail_begins_in_the_log_that_is_left(server: Server, begin: str, tmp_path: Path) -> None:
    server.clear()
    run(server, "CREATE DATABASE left_log", "CREATE TABLE left_log.t (a INT PRIMARY KEY, b INT)")
    tracked = Tracked.of(server, tmp_path, "left_log", start="earliest")
    run(server, "INSERT INTO left_log.t VALUES (1, 10)", "ALTER TABLE left_log.t ADD COLUMN c INT DEFAULT 3 FIRST")
    run(server, "FLUSH BINARY LOGS", "INSERT INTO left_log.t VALUES (7, 2, 20)")
    with tracked.tracker() as tracker:
        tracked.news(tracker)
        place = str(tracker.reader.end())
    run(server, "ALTER TABLE left_log.t DROP COLUMN b", "INSERT INTO left_log.t VALUES (8, 3)")
    *_, (newest, *_) = server.sql("SHOW BINARY LOGS")
    run(server, f"PURGE BINARY LOGS TO '{newest}'")

    with closing(Tail(tracked.config, begin=place if begin == "position" else begin or None)) as tail:
        rows = [
            json.loads(row)["data"]
            for shown in tail.shown()
            for chunk, snapshot in shown.chunks
            for row in ndjson_rows(chunk, snapshot)
        ]
    assert rows == [{"c": 7, "a": 2, "b": 20}, {"c": 8, "a": 3}][begin == "position" :]
