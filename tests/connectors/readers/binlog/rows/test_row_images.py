"""Row images that lack columns, from real servers: what is told is right, what is absent is what the server left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from connectors.tracking.capture.catalog import capture_catalog
from historian.changelog.operations import Op
from historian.names import TableName
from logs.decoder_lab import decode, log_end, planned
from logs.image_lab import UNKNOWN, Change, ImageLab, changes_of, has_whole_images, lacking, replayed

if TYPE_CHECKING:
    from databases.servers import Server


def maybe_unseen(server: Server) -> set[str]:
    """Columns that may change unseen: JSON ones by diffs without a document; of MariaDB those that are computed."""
    if server.flavor == "mysql":
        return {"j", "k"}
    return {"gv", "gw"} if has_whole_images(server) else {"gv", "gw", "gs"}


def test_random_changes_under_images_of_every_kind_are_those_of_the_server(server: Server) -> None:
    images = ["FULL", "MINIMAL", "NOBLOB", *(["FULL_NODUP"] if server.name == "mariadb118" else [])]
    lab = ImageLab(server, "t", images, seed=3, partial_json=server.name in ("mysql8", "mysql9"))
    lab.run("SET SESSION sql_mode = ''")
    hideable = maybe_unseen(server)
    table: dict[Any, dict[str, Any]] = {}
    kinds: set[int] = set()
    seen: set[str] = set()
    for _ in range(20):
        since = log_end(server)
        for _ in range(10):
            lab.step()
        changes = list(changes_of(decode(server, planned(lab.snapshot), since), lab.snapshot))
        kinds |= check_absence(server, since, changes, [column.name for column in lab.snapshot.columns], hideable)
        replayed(table, changes)
        wanted = lab.rows()
        for key in table.keys() & wanted.keys():
            unknown = {name for name, value in table[key].items() if value is UNKNOWN}
            assert unknown <= hideable, (key, unknown)
            table[key].update({name: wanted[key][name] for name in unknown})
            seen |= unknown
        assert table == wanted, lab.statements[-10:]
    assert kinds >= ({23, 24, 25} if server.flavor == "mariadb" else {30, 31, 32})
    assert (39 in kinds) == (server.name in ("mysql8", "mysql9"))
    assert bool(seen) == (server.name != "mysql57")


def check_absence(
    server: Server, since: tuple[str, int], changes: Sequence[Change], names: Sequence[str], hideable: set[str]
) -> set[int]:
    """Compares what is absent with the bitmaps of the log; gives the kinds of events that there were."""
    file, start = since
    (path,) = (path for path in server.binlog_files() if path.name == file)
    events = list(lacking(path.read_bytes()[start - 4 :], names))
    groups = [list(rows) for _, rows in groupby(changes, key=lambda change: change.event)]
    assert len(groups) == len(events)
    for (kind, images), rows in zip(events, groups, strict=True):
        for row in rows:
            if kind in (23, 30):
                left_out = row.unseen  # all else that an INSERT leaves out has a default that is known
            elif row.op in (Op.RETRACT, Op.CORRECT_FROM):
                left_out = images[0]
            else:
                left_out = images[0] & images[1] | row.unseen
            assert row.absent == left_out, (kind, images, row)
            assert row.unseen <= hideable
    return {kind for kind, _ in events}


def test_a_generated_column_is_unseen_where_what_it_comes_from_changed(mariadb118: Server) -> None:
    with mariadb118.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE changed")
        cursor.execute("USE changed")
        cursor.execute("SET SESSION binlog_row_image = FULL_NODUP")
        cursor.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, s INT AS (CHAR_LENGTH(b)) STORED, v INT AS (s + 1) VIRTUAL, b TEXT, c INT)"
        )
        snapshot = capture_catalog(connection, 1, 1).tables[TableName("changed", "t")]
        cursor.execute("INSERT INTO t (id, b, c) VALUES (1, 'one', 1), (2, NULL, 2)")
        since = log_end(mariadb118)
        for statement in (
            "UPDATE t SET c = 3",
            "UPDATE t SET b = 'one', c = 4 WHERE id = 1",
            "UPDATE t SET b = 'two' WHERE id = 1",
            "UPDATE t SET b = '' WHERE id = 2",
            "UPDATE t SET b = NULL WHERE id = 2",
            "UPDATE t SET b = NULL, id = 7 WHERE id = 2",
        ):
            cursor.execute(statement)
        changes = list(changes_of(decode(mariadb118, planned(snapshot), since), snapshot))
        cursor.execute("DROP DATABASE changed")
    puts = [change for change in changes if change.op in (Op.CORRECT_TO, Op.APPEND)]
    told = [(put.values["id"], put.values["b"], put.values["c"], {"v", "s"} <= put.unseen) for put in puts]
    changed = not has_whole_images(mariadb118)
    assert told == [
        (1, "one", 3, False),
        (2, None, 3, False),
        (1, "one", 4, False),
        (1, "two", 4, changed),
        (2, "", 3, changed),
        (2, None, 3, changed),
        (7, None, 3, False),
    ]
    assert changed or all(put.values["s"] == (put.values["b"] and len(put.values["b"])) for put in puts)
