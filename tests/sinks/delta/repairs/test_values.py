"""Repairs of the rows with given values alone: which they are, and targets that hold others."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.codec import dump, load
from historian.errors import TableStopped
from historian.names import TableName
from historian.plans.key_ranges import NOT_BY_RANGES
from historian.plans.plans import PlannedTable, PlannedVersion, TableCopy
from historian.plans.row_values import RowValues, stored_keys
from historian.schema.snapshots import Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from lakes.crashes import Crashes
from lakes.held_rows import HeldLake
from lakes.repaired import check_repaired
from lakes.sink_lab import INT, Lab
from sinks.contract.locations import TableLocation
from sinks.delta.log.commits import HeldFile
from sinks.delta.repairs import narrowing
from sinks.delta.repairs.values import RowsOfValues, rows_of_values
from sinks.delta.rewrite import few_rows, held_rows
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.targets import mirror

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HISTORY = "{database}_{table}_history"
_UNSIGNED = ColumnType(name="bigint", unsigned=True)
_TYPES: dict[str, tuple[list[ColumnType], list[tuple[Any, ...]]]] = {
    "tinyint": ([ColumnType(name="tinyint")], [(-128,), (0,), (127,), (None,)]),
    "unsigned": ([_UNSIGNED], [(Decimal(0),), (Decimal(2**63),), (Decimal(2**64 - 1),), (None,)]),
    "year": ([ColumnType(name="year")], [(0,), (1999,), (2155,), (None,)]),
    "decimal": (
        [ColumnType(name="decimal", precision=38, scale=4)],
        [(Decimal(text),) for text in ("-9999999999999999999999999999999999.0001", "0.0000", "2.5000")] + [(None,)],
    ),
    "varbinary": ([ColumnType(name="varbinary", length=9)], [(b"",), (b"\0",), (b"a",), (b"a\0",), (None,)]),
    "several": (
        [ColumnType(name="smallint"), _UNSIGNED, ColumnType(name="binary", length=2)],
        [
            (one, two, three)
            for one in (1, 2, None)
            for two in (Decimal(1), Decimal(2), None)
            for three in (b"ab", b"\0\0", None)
        ][::2],
    ),
}


@pytest.mark.parametrize("case", _TYPES)
def test_rows_are_told_by_their_values(spark: SparkSession, tmp_path: Path, case: str) -> None:
    """By Arrow and by Spark, as Python tells them; no file with such a row is passed over."""
    kinds, values = _TYPES[case]
    table = _table(*kinds)
    rows = _rows(table, values)
    pq.write_table(rows, tmp_path / "rows.parquet")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet"))
    typed = [(column.id, column.type) for column in table.columns]
    keys = stored_keys(rows.to_batches()[0], typed)
    files = [_file(tmp_path, _rows(table, [row])) for row in values]
    passed = 0
    whole = [at for at, key in enumerate(keys) if key is not None]
    for chosen in [[], *combinations(whole, 1), *list(combinations(whole, 2))[:6], whole]:
        for nulls in (False, True):
            told = tuple(key for at in chosen if (key := keys[at]) is not None)
            wanted = (RowValues(columns=tuple(range(1, len(kinds) + 1)), values=told, nulls=nulls),)
            assert wanted == load(tuple[RowValues, ...], dump(tuple[RowValues, ...], wanted))
            within = RowsOfValues(table=table, columns=table.columns, wanted=wanted)
            places = [
                at for at, row in enumerate(values) if at in chosen or (nulls and not any(v is not None for v in row))
            ]
            expected = rows.take(pa.array(places, pa.int64()))
            assert expected.equals(within.of(rows)), wanted
            found = within.of_frame(frame).toArrow().cast(rows.schema)
            assert sorted(expected.to_pylist(), key=repr) == sorted(found.to_pylist(), key=repr), wanted
            within.check(expected)
            within.check_frame(within.of_frame(frame))
            if len(places) < len(values):
                with pytest.raises(TableStopped, match=NOT_BY_RANGES):
                    within.check(rows)
                with pytest.raises(TableStopped, match=NOT_BY_RANGES):
                    within.check_frame(frame)
            may = [within.may_hold(file) for file in files]
            assert all(may[at] for at in places), wanted
            passed += may.count(False)
    assert passed > 0


def test_row_groups_without_wanted_rows_are_read_by_the_columns_that_tell_them_alone(tmp_path: Path) -> None:
    rows = pa.table({"h1": pa.array(range(9), pa.int32()), "h2": pa.array([1, 1, 1, 2, 2, 3, None, 3, 3], pa.int32())})
    path = str(tmp_path / "rows.parquet")
    pq.write_table(rows, path, row_group_size=3)
    schema = pa.schema([*rows.schema, pa.field("h3", pa.string())])
    asked = []

    def has_some(found: pa.Table) -> bool:
        asked.append(found.schema.names)
        return bool(2 in found.column("h2").to_pylist())

    wanted = held_rows.WantedRows(names=["h2"], has_some=has_some)
    (found,) = held_rows.groups(path, schema, {}, wanted)
    assert [3, 4, 5] == found.column("h1").to_pylist()
    assert [["h2"]] * 3 == asked
    lacking = held_rows.WantedRows(names=["h3"], has_some=lambda _: False)
    assert 3 == len(list(held_rows.groups(path, schema, {}, lacking)))


def test_targets_whose_values_say_nothing_are_compared_as_a_whole() -> None:
    table = replace(_table(INT, INT), primary_key=(1,))
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=table, segment=0)
    copy = TableCopy(key=(1,), is_done=True, repairs="a test", only=(RowValues(columns=(2,), values=((1,),)),))
    planned = PlannedTable(table_id=1, versions=(version,), copy=copy)
    location = TableLocation(table_id=1, name="d.t", changelog="c", mirror="m", since=1)
    assert "a test" == planned.repairs
    assert not planned.repairs_anew
    assert rows_of_values(planned, location, table).names == ("h2",)
    wider = replace(table, columns=(table.columns[0], replace(table.columns[1], type=ColumnType(name="bigint"))))
    for other, where in (
        (replace(table, primary_key=(2,)), location),
        (table, replace(location, columns='{"2": ["c2", "hash"]}')),
        (replace(table, columns=table.columns[:1]), location),
        (wider, location),
    ):
        with pytest.raises(TableStopped, match=NOT_BY_RANGES):
            rows_of_values(planned, where, other)


_KINDS: dict[str, dict[str, Any]] = {
    "all": {"history": HISTORY},
    "late": {"history": HISTORY, "mirror_every_us": 3},
    "soft": {"history": HISTORY, "mirror_deletes": "soft"},
    "no mirror": {"mirror": None},
}


@pytest.mark.parametrize("kind, by_spark", [("all", True), ("late", False), ("soft", False), ("no mirror", True)])
def test_rows_with_other_values_stay(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, by_spark: bool
) -> None:
    if by_spark:
        monkeypatch.setattr(held_rows, "SMALL_BYTES", 0)
        monkeypatch.setattr(few_rows, "SMALL_BYTES", 0)
        monkeypatch.setattr(narrowing, "_FEW_ROWS", -1)
        monkeypatch.setattr(mirror, "taken_up", lambda *_: None)
    lab = Lab()
    lake = HeldLake(spark, tmp_path / "lake", lab, **_KINDS[kind])
    lab.create("shop.t", {"id": INT, "p": INT, "v": INT})
    lab.insert("shop.t", *({"id": number, "p": number % 5, "v": number} for number in range(20)))
    lake.cut()
    lab.insert("shop.t", {"id": 30, "p": 4, "v": 0}, {"id": 31, "p": 1, "v": 0})
    lab.update("shop.t", lab.rows("shop.t")[0], v=-1)
    lake.cut()
    columns = {column.name: column.id for column in next(iter(lab.catalog.tables.values())).columns}
    crashes = Crashes(["repairs_recorded", "changelog_committed", "mirror_committed"])
    for number, parent in enumerate((1, 2)):
        rows = {row["id"]: row for row in lab.rows("shop.t")}
        mine = [key for key, row in rows.items() if row["p"] == parent]
        del rows[mine[0]]
        rows[mine[1]] = rows[mine[1]] | {"p": None}
        rows[mine[2]] = rows[mine[2]] | {"p": parent + 10, "v": 7}
        # One that its own log would tell of.
        rows[5] = rows[5] | {"v": 50 + number}
        lab.unlogged("shop.t", *rows.values())
        only = (
            RowValues(columns=(columns["p"],), values=((parent,), (parent + 10,)), nulls=True),
            RowValues(columns=(columns["id"],), values=((5,),)),
        )
        plan = lab.cut({"shop.t": "a test"}, only=only)
        if number:
            crashes.write(lake, plan)
        else:
            lake.write(plan)
        lab.update("shop.t", rows[3], v=-1 - number)
        lab.insert("shop.t", {"id": 40 + number, "p": 3, "v": 1})
        lake.cut()
    check_repaired(lake, "shop.t", only_log=bool(lake.sink.due_us()))
    repairs = sorted(lake.mirror("historian_repairs"), key=lambda row: row["plan"])
    assert [(1, 3)] * 2 == [(row["retracted"], row["corrected"]) for row in repairs]
    assert [5, 5] == [row["rows_read"] for row in repairs]


def _table(*kinds: ColumnType) -> Snapshot:
    columns = tuple(Column(id=number, name=f"c{number}", type=kind) for number, kind in enumerate(kinds, 1))
    return Snapshot(
        table_id=1,
        name=TableName("d", "t"),
        columns=columns,
        primary_key=tuple(c.id for c in columns),
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )


def _rows(table: Snapshot, values: list[tuple[Any, ...]]) -> pa.Table:
    schema = pa.schema([(f"h{column.id}", arrow_type(column.type)) for column in table.columns])
    columns = zip(*values, strict=True)
    return pa.table([pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema)


def _file(directory: Path, rows: pa.Table) -> HeldFile:
    writer = FileWriter(str(directory), rows.schema)
    writer.write_table(rows)
    (file,) = writer.close()
    return HeldFile(path=file.path, size_bytes=file.size_bytes, statistics=file.statistics, has_deletions=False)
