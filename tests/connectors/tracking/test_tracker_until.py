"""Plans up to a position: by file as by GTIDs, however many plans it takes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from connectors.config import load_config
from connectors.tracking.sources import make_tracker
from historian.names import TableName
from historian.positions import LogPosition

SHOP = Path(__file__).parents[3] / "examples" / "shop"
LIMIT_BYTES = 150_000
UNTIL = "binlog.000002:4"


def _ends(tmp_path: Path, until: str | None, limit_bytes: int | None) -> list[LogPosition]:
    """Where each plan ends."""
    file = tmp_path / "shop.yaml"
    source = f"{{type: binlog-files, directory: {SHOP / 'binlog'}, tables: ['shop.*']}}"
    file.write_text(
        f"name: shop\nsource: {source}\nhistory: {{store: 'sqlite://'}}\nsinks: [{{type: delta, path: lake}}]\n"
    )
    with closing(make_tracker(load_config(file))) as tracker:
        return [plan.end for plan in tracker.plans_until(until, limit_bytes=limit_bytes)]


def test_a_file_position_is_reached_in_many_plans_as_in_one(tmp_path: Path) -> None:
    (whole,) = _ends(tmp_path, UNTIL, None)

    by_file, by_gtids = (_ends(tmp_path, until, LIMIT_BYTES) for until in (UNTIL, whole.gtids))

    assert len(by_file) > 1
    assert by_file[-1].gtids == whole.gtids
    assert [end.gtids for end in by_file] == [end.gtids for end in by_gtids]


def test_the_schema_at_a_file_position_is_that_of_the_place(tmp_path: Path) -> None:
    _ends(tmp_path, None, None)
    config = load_config(tmp_path / "shop.yaml")
    found = []
    for limit_bytes in (None, LIMIT_BYTES):
        with closing(make_tracker(config)) as tracker:
            found.append(tracker.snapshot_of(TableName("shop", "stock"), UNTIL, limit_bytes=limit_bytes))

    assert found[0] == found[1]
    assert found[0] is not None
    assert [column.name for column in found[0].columns] == ["reorder_at", "id", "shelf"]
