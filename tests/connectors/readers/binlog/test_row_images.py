"""Row images that lack columns, from real servers: what is told is right, what is absent is what the server left out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from decoder_lab import decode, log_end, planned
from historian.changelog import Op
from image_lab import UNKNOWN, Change, ImageLab, changes_of, lacking, replayed

if TYPE_CHECKING:
    from servers import Server

MAYBE_UNSEEN = {"mysql": {"j", "k"}, "mariadb": {"gv", "gw"}}
"""JSON columns are, by diffs without a document; of MariaDB columns that are computed."""


def test_random_changes_under_images_of_every_kind_are_those_of_the_server(server: Server) -> None:
    images = ["FULL", "MINIMAL", "NOBLOB", *(["FULL_NODUP"] if server.name == "mariadb118" else [])]
    lab = ImageLab(server, "t", images, seed=3, partial_json=server.name in ("mysql8", "mysql9"))
    lab.run("SET SESSION sql_mode = ''")
    table: dict[Any, dict[str, Any]] = {}
    kinds: set[int] = set()
    seen: set[str] = set()
    for _ in range(20):
        since = log_end(server)
        for _ in range(10):
            lab.step()
        changes = list(changes_of(decode(server, planned(lab.snapshot), since), lab.snapshot))
        kinds |= check_absence(server, since, changes, [column.name for column in lab.snapshot.columns])
        replayed(table, changes)
        wanted = lab.rows()
        for key in table.keys() & wanted.keys():
            unknown = {name for name, value in table[key].items() if value is UNKNOWN}
            assert unknown <= MAYBE_UNSEEN[server.flavor], (key, unknown)
            table[key].update({name: wanted[key][name] for name in unknown})
            seen |= unknown
        assert table == wanted, lab.statements[-10:]
    assert kinds >= ({23, 24, 25} if server.flavor == "mariadb" else {30, 31, 32})
    assert (39 in kinds) == (server.name in ("mysql8", "mysql9"))
    assert bool(seen) == (server.name != "mysql57")


def check_absence(server: Server, since: tuple[str, int], changes: Sequence[Change], names: Sequence[str]) -> set[int]:
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
            assert row.unseen <= MAYBE_UNSEEN[server.flavor]
    return {kind for kind, _ in events}
