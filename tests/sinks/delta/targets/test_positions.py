"""A changelog that says where in the source's log each row comes from, when asked, and what can be made of that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from historian.changelog.chunks import positions
from historian.changelog.state import project_changelog
from historian.errors import ConfigError, SinkError
from historian.positions import parse_position
from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, UUID, Lab, text
from pyspark_historian.state import project_changelog as project_frame
from sinks.delta import DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("quiet")

T, LOG = "shop.t", "shop_t_changes"
ALL = ("position", "ordinal", "transaction")
OWN = ("_position", "_ordinal", "_transaction")


def _lived(lake: HeldLake) -> list[tuple[str, list[dict[str, Any]]]]:
    """Plans of every kind; behind each the position, and the rows that the table then has."""
    lab, held = lake.lab, []
    steps = [
        lambda: (lab.create(T, {"id": INT, "a": INT}), lab.insert(T, {"id": 1, "a": 1}, {"id": 2, "a": None})),
        lambda: (lab.update(T, lab.rows(T)[0], a=7), lab.add(T, "b", text()), lab.insert(T, {"id": 3, "b": "é"})),
        lambda: (lab.update_part(T, {"id": 3}, a=5), lab.insert(T, {"id": 4})),
        lambda: (lab.truncate(T), lab.insert(T, {"id": 9, "a": 9})),
        lambda: lab.drop(T),
    ]
    for step in steps:
        step()
        lake.cut()
        held.append((f"{UUID}:1-{lab.clock}", [] if step is steps[-1] else lab.rows(T)))
    return held


def test_each_row_has_its_transaction_and_its_place_there(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), changelog_columns=ALL)
    _lived(lake)
    log = lake.raw_log(LOG)
    own = [tuple(row[name] for name in OWN) for row in log]
    rows = [
        (position, ordinal, position)
        for plan in lake.lab.plans
        for chunk in lake.lab.chunks[plan.number]
        for position, ordinal in zip(positions(chunk).to_pylist(), chunk.rows["ordinal"].to_pylist(), strict=True)
    ]
    statements = {entry.statement.split()[0]: entry.place for entry in lake.lab.entries}
    truncated, dropped = ((statements[word].gtid, 1, statements[word].gtid) for word in ("TRUNCATE", "DROP"))
    at = [row["op"] for row in log].index(1)
    assert [*rows[:at], *[truncated] * 4, *rows[at:], dropped] == own
    assert ["schema_version", *OWN, "absent", "unseen", "id"] == lake.schema(LOG).names()[4:11]


def test_a_transaction_without_gtid_has_file_and_offset_alone(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, mirror=None, changelog_columns=("transaction", "position"))
    lab.create(T, {"id": INT})
    lab.insert(T, {"id": 1})
    plan = lab.cut()
    [chunk] = lab.chunks[plan.number]
    at = chunk.rows.schema.get_field_index("source")
    rows = chunk.rows.set_column(at, chunk.rows.schema.field(at), pa.array([-1], pa.int16()))
    lab.chunks[plan.number] = [replace(chunk, rows=rows, sources=())]
    lake.write(plan)
    [row] = lake.raw_log(LOG)
    assert (f"b.000001:{lab.clock}", None) == (row["_position"], row["_transaction"])
    assert "_ordinal" not in row


def test_a_changelog_projects_to_what_was_there_at_a_position(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, changelog_columns=("position",))
    lab.create(T, {"id": INT, "a": INT})
    held: list[tuple[str, list[dict[str, Any]]]] = []
    for number in range(4):
        lab.insert(T, {"id": number, "a": 0}, {"id": -number - 1, "a": 1})
        lab.update(T, lab.rows(T)[0], a=number)
        lab.flush()
        held.append((f"{UUID}:1-{lab.clock}", lab.rows(T)))
        if number % 2:
            lake.cut()
    log = lake._read(LOG)
    table = log.toArrow().sort_by("offset")
    for position, rows in held:
        until = parse_position(position, "mysql")
        for state in (project_changelog(table, ["id"], until=until), project_frame(log, ["id"], until=until).toArrow()):
            found = sorted(state.select(["id", "a"]).to_pylist(), key=lambda row: row["id"])
            assert sorted(rows, key=lambda row: row["id"]) == found


def test_a_lake_keeps_the_columns_that_it_began_with(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, changelog_columns=("ordinal", "position"))
    lab.create(T, {"id": INT, "_POSITION": INT})
    lab.create("shop.u", {"id": INT})
    lab.insert("shop.u", {"id": 1})
    lake.cut()
    assert "_POSITION" in lake.stopped()[T]
    lake.check("shop.u")
    with pytest.raises(SinkError, match=r"changelog \(position ordinal\),mirror"):
        HeldLake(spark, tmp_path / "lake", lab)


def test_rows_that_a_mirror_takes_up_later_are_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lake = HeldLake(spark, tmp_path / "lake", Lab(), changelog_columns=ALL, mirror_every_us=1000)
    lake.lab.create(T, {"id": INT, "a": INT})
    for number in range(3):
        lake.lab.insert(T, {"id": number, "a": number})
        lake.cut()
    assert len(lake.mirror("shop_t")) < 3
    lake.lab.truncate(T)
    lake.lab.insert(T, {"id": 7, "a": 7})
    lake.cut()
    lake.lab.add(T, "b", INT)
    lake.cut()
    lake.check(T)
    assert all(row["_transaction"] for row in lake.raw_log(LOG))


@pytest.mark.parametrize("rules", [{"compute": (("_Position", "id"),)}, {"compute": (("offset", "id"),)}])
def test_computed_columns_have_other_names(tmp_path: Path, rules: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"another name than the changelog's own columns have @ \$\.compute"):
        DeltaSettings(path=str(tmp_path), **rules)


def test_words_that_are_none_and_no_changelog_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        DeltaSettings(path=str(tmp_path), changelog=None, changelog_columns=("gtid",))
    assert list(raised.value.problems) == [
        "expected one of position, ordinal, transaction @ $.changelog_columns (got 'gtid')",
        "expected a changelog, which is to have them @ $.changelog_columns (got none)",
    ]
