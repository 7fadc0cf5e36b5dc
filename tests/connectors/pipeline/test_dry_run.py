"""What sinks would do with statements, plan by plan, without a lake."""

from __future__ import annotations

from pathlib import Path

from connectors.config import load_config
from connectors.pipeline.dry_run import PipelineDryRun
from connectors.tracking.schema_file import applied, fresh_server
from sinks.contract.base import DryRunResult

KEYED = "CREATE TABLE k (id INT PRIMARY KEY, v INT)"
KEYLESS = "CREATE TABLE n (v INT)"


def _foreseen(directory: Path, start: str, statements: str, sink: str = "") -> list[list[DryRunResult]]:
    file = directory / "c.yaml"
    file.write_text(
        "name: c\nsource: {type: mysql, host: h, user: u, tables: ['shop.*']}\n"
        f"sinks: [{{type: delta, path: lake{sink}}}]\n"
    )
    catalog, context = fresh_server("mysql", database="shop")
    for step in applied(start, catalog=catalog, context=context, where="start"):
        catalog = step.after
    dry_run = PipelineDryRun(load_config(file), catalog)
    told = [dry_run.at_start]
    told += [dry_run.take(step) for step in applied(statements, catalog=catalog, context=context, where="file")]
    return [[one for sink_told in each for one in sink_told.foreseen] for each in told]


def test_a_table_that_stopped_is_not_spoken_of_again(tmp_path: Path) -> None:
    statements = "ALTER TABLE k MODIFY v CHAR(3); ALTER TABLE k ADD w INT; DROP TABLE k"
    _, first, second, third = _foreseen(tmp_path, KEYED, statements)

    assert [one.stopped is not None for one in first] == [True]
    assert (second, third) == ([], [])


def test_a_table_without_a_key_has_no_mirror(tmp_path: Path) -> None:
    at_start, added = _foreseen(tmp_path, KEYLESS, "ALTER TABLE n ADD w INT")
    assert [one.kind for one in at_start] == ["changelog"]
    assert [one.effects for one in added] == [("w integer is added",)]

    (only,) = _foreseen(tmp_path, KEYLESS, "", ", changelog: null")
    assert [one.stopped for one in only] == [
        "a table without a key has neither mirror nor history, and this lake keeps no changelogs"
    ]


def test_a_table_keeps_its_targets_through_a_rename_and_gets_columns_moved(tmp_path: Path) -> None:
    _, renamed, moved = _foreseen(tmp_path, KEYED, "RENAME TABLE k TO l; ALTER TABLE l MODIFY v INT FIRST", "")
    assert [(one.target, one.effects) for one in renamed] == [
        ("shop_k_changes", ("it goes on for shop.l, where it is",)),
        ("shop_k", ("it goes on for shop.l, where it is",)),
    ]
    assert moved[1].effects == ("columns stand in another order: v, id",)


def test_a_column_added_again_keeps_the_old_one_aside(tmp_path: Path) -> None:
    *_, again = _foreseen(tmp_path, KEYED, "ALTER TABLE k DROP v; ALTER TABLE k ADD v INT")
    assert [one.effects for one in again] == [
        ("v integer is added", "v is renamed to v__h2"),
        ("v integer is added, NULL in the rows that are there",),
    ]


def test_a_table_renamed_out_of_the_filter_stops_and_uncaptured_ones_are_not_told(tmp_path: Path) -> None:
    _, left, other = _foreseen(tmp_path, KEYED, "RENAME TABLE k TO other.k; CREATE TABLE other.x (id INT PRIMARY KEY)")
    assert [one.stopped for one in left][:1] == ["renamed to other.k, which is not captured"]
    assert other == []


def test_a_dry_run_follows_what_is_said_of_evolution(tmp_path: Path) -> None:
    statements = "ALTER TABLE k DROP w; ALTER TABLE k MODIFY v CHAR(3); TRUNCATE k; DROP TABLE k; CREATE TABLE k (id INT PRIMARY KEY)"
    start = "CREATE TABLE k (id INT PRIMARY KEY, v INT, w INT)"
    _, *told = _foreseen(tmp_path, start, statements, ", evolution: lenient")
    log, mirror = ([one.effects for one in found] for found in zip(*told, strict=True))

    assert ("w stays for the rows that have it",) == log[0] == mirror[0]
    assert ("v string is added", "v is renamed to v__h2", "v stays for the rows that have it") == log[1]
    assert mirror[1][0] == "v string is added, NULL in the rows that are there"
    assert [("a -R for each row that the table held",), ()] == [log[2], mirror[2]]
    assert "it stays as it is, as an archive" in log[3]
    assert ("it stays as it is, as an archive",) == mirror[3]
    assert {"shop_k_changes__t2", "shop_k__t2"} == {one.target for one in told[4]}

    _, (stopped,) = _foreseen(tmp_path, start, "ALTER TABLE k DROP w", ", evolution: strict")
    assert stopped.stopped is not None
    assert "its evolution says fail of drop_column" in stopped.stopped
