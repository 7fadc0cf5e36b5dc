from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.tracking.tracker import Tracker
from historian.changelog.operations import Op
from historian.names import TableName
from historian.positions import parse_position
from historian.store import Store
from logs.recordings import shop_script
from models.plain_mirror import PlainMirror

SHOP = Path(__file__).parents[2] / "examples/shop"
MOST_BYTES = 10_000_000


class Replayed:
    """The recording, tracked and decoded once, in batches of a quarter megabyte."""

    def __init__(self, directory: Path) -> None:
        self.expected: dict[str, Any] = json.loads((SHOP / "expected.json").read_text(encoding="utf-8"))
        self.mirror = PlainMirror()
        self.counts: Counter[str] = Counter()
        store = Store.open(f"sqlite:///{directory}/store.db")
        reader = BinlogFilesReader([SHOP / "binlog"])
        tracker = Tracker(
            reader=reader, store=store, connector=store.connector("shop"), captured=lambda _: True, revision=""
        )
        number = 0
        while (plan := tracker.plan_after(number, limit_bytes=250_000)) is not None:
            number = plan.number
            chunks = [chunk for planned in plan.ranges for chunk in reader.read(planned, plan.tables)]
            self.mirror.apply(plan, chunks)
            for chunk in chunks:
                self.counts.update(Op(op).sign for op in chunk.rows.column("op").to_pylist())
        self.plans = number
        self.end = tracker.end_of(number)
        self.statements = [(e.place.gtid, " ".join(e.statement.split())) for e in tracker.history.entries if e.place]
        tracker.close()


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    return Replayed(tmp_path_factory.mktemp("shop"))


def test_every_row_change_becomes_the_changelog_rows_that_the_traffic_counted(replayed: Replayed) -> None:
    assert dict(replayed.counts) == replayed.expected["changelog_rows"]
    assert replayed.expected["row_changes"] > 190_000


def test_folded_rows_are_what_the_server_held(replayed: Replayed) -> None:
    comparison = shop_script("comparison")
    finals = comparison.final_tables(SHOP)
    assert {name.table for name in replayed.mirror.snapshots()} == {final.name for final in finals}
    verdicts = [comparison.compare(replayed.mirror.rows(TableName("shop", final.name)), final) for final in finals]
    assert [str(verdict) for verdict in verdicts if not verdict.equal] == []
    assert sum(verdict.rows for verdict in verdicts) > 50_000


def test_every_definition_of_the_story_is_a_version_at_its_gtid(replayed: Replayed) -> None:
    wanted = [statement["gtid"] for statement in replayed.expected["statements"]]
    assert [gtid for gtid, _ in replayed.statements] == wanted


def test_the_log_ends_where_the_server_ended(replayed: Replayed) -> None:
    assert replayed.end.gtid_set == parse_position(replayed.expected["gtid_executed"], "mysql").gtid_set


def test_two_definitions_keep_the_shape_of_their_table(replayed: Replayed) -> None:
    sqls = [statement["sql"] for statement in replayed.expected["statements"]]
    assert [sql for sql in sqls if sql.startswith("ALTER TABLE stock DROP")] == [
        "ALTER TABLE stock DROP reserved, ADD reorder_at INT NOT NULL DEFAULT 5 FIRST",
        "ALTER TABLE stock DROP COLUMN shelf, ADD COLUMN depot INT NOT NULL DEFAULT 1 FIRST",
    ]


def test_the_recording_stays_small() -> None:
    files = [file for name in ("binlog", "final") for file in (SHOP / name).iterdir()]
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
