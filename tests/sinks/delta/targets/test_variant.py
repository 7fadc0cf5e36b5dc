"""JSON as VARIANT in changelogs and mirrors: Spark reads the JSON value of the text that was written, through every path."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from historian.schema.snapshots import ColumnType
from lakes.lake import Lake
from lakes.sink_lab import INT, Lab, text
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOC = ColumnType(name="json", options="variant")
BIG = '{"n": 18446744073709551615, "price": 1.10, "é😀": ["x", null, {"b": 1, "a": [true]}]}'


def _value(document: str | None) -> Any:
    """A JSON text's value, NULL kept apart from the document null."""
    return "NULL" if document is None else json.loads(document, parse_float=float)


def _read(lake: Lake, directory: str, *documents: str, order: str = "") -> list[dict[str, Any]]:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    frame = lake.spark.read.format("delta").load(str(lake.path / directory))
    frame = frame.orderBy(order) if order else frame
    frame = frame.select(*(F.to_json(name).alias(name) if name in documents else name for name in frame.columns))
    return [{**row, **{name: _value(row[name]) for name in documents}} for row in frame.toArrow().to_pylist()]


def _check(lake: Lake, *documents: str) -> None:
    """The mirror and the changelog of shop.t are what the lab says."""

    def valued(row: dict[str, Any]) -> dict[str, Any]:
        return {name: _value(value) if name in documents else value for name, value in row.items()}

    if lake.settings.mirror:
        expected = sorted(map(valued, lake.lab.rows("shop.t")), key=lambda row: row["id"])
        assert sorted(_read(lake, "shop_t", *documents), key=lambda row: row["id"]) == expected
    log = [valued(dict(written.data)) for written in lake.lab.log(lake.lab.table_id("shop.t"))]
    found = _read(lake, "shop_t_changes", *documents, order="offset")
    missing = dict.fromkeys(documents, "NULL")
    assert [{**missing, **row} for row in log] == [
        {name: row[name] for name in {**missing, **log[-1]}} for row in found
    ]


def test_merges_and_rewrites_keep_the_documents(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "doc": DOC, "a": text()})
    rows = [{"id": at, "doc": doc, "a": "x"} for at, doc in enumerate((BIG, None, "null", "[]", '"s"', "-0.5e3"))]
    lab.insert("shop.t", *rows)
    lake.cut()
    for small_bytes in (0, held_rows.SMALL_BYTES):  # First merges, then rewrites what Spark's merge wrote.
        monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
        live = {row["id"]: row for row in lab.rows("shop.t")}
        lab.update("shop.t", live[0], doc=json.dumps({"at": small_bytes}))
        lab.update("shop.t", live[1], doc=BIG)
        lab.delete("shop.t", live[2])
        lab.insert("shop.t", {**live[2], "doc": "1.50"})
        lake.cut()
        lab.update_part("shop.t", {"id": 3}, a=f"y{small_bytes}")
        lab.update_part("shop.t", {"id": 4}, doc=f"[{small_bytes}]")
        lake.cut()
        name = f"more{small_bytes}"
        lab.add("shop.t", name, DOC, initial='{"k": 1.0}')
        lab.insert("shop.t", {"id": 10 + small_bytes, "doc": BIG, "a": "", name: "2"})
        lake.cut()

    assert {} == lake.stopped()
    assert any(written.absent for written in lab.log(lab.table_id("shop.t")))
    _check(lake, "doc", "more0", name)
    _check_form(lake, "shop_t")
    _check_form(lake, "shop_t_changes")
    big = f"SELECT variant_get(doc, '$.n', 'decimal(20,0)') AS n FROM delta.`{lake.path}/shop_t` WHERE id = 1"
    assert [2**64 - 1] == [int(row.n) for row in spark.sql(big).collect()]


def _check_form(lake: Lake, directory: str) -> None:
    """The table says that it has VARIANT, and no statistics speak of it."""
    place = f"delta.`{lake.path / directory}`"
    assert "variantType" in lake.spark.sql(f"DESCRIBE DETAIL {place}").first().tableFeatures
    assert "doc variant" in lake.columns(directory)
    physical = next(f.physical for f in lake.schema(directory).fields if f.name == "doc")
    entries = sorted((lake.path / directory / "_delta_log").glob("*.json"))
    logs = [line for entry in entries for line in entry.read_text().splitlines()]
    adds = [json.loads(entry["add"]["stats"]) for entry in map(json.loads, logs) if "add" in entry]
    ours = [each for each in adds if each["numRecords"] and physical not in each.get("nullCount", {})]
    assert ours
    assert all(physical not in each.get("minValues", {}) for each in adds)


def test_a_table_gets_its_first_document_later(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    lab.create("shop.t", {"id": INT})
    lab.insert("shop.t", {"id": 1})
    lake.cut()
    features = spark.sql(f"DESCRIBE DETAIL delta.`{lake.path}/shop_t`").first().tableFeatures
    assert not [name for name in features if name.startswith("variant")]
    lab.add("shop.t", "doc", DOC)
    lab.insert("shop.t", {"id": 2, "doc": BIG})
    lake.cut()

    _check(lake, "doc")
    _check_form(lake, "shop_t_changes")


@pytest.mark.parametrize("kinds", [{}, {"mirror": None}], ids=["with mirror", "changelog only"])
def test_truncate_takes_documents_back(spark: SparkSession, tmp_path: Path, kinds: dict[str, None]) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab(), **kinds)
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "doc": DOC})
    lab.create("shop.bag", {"a": INT, "doc": DOC}, key=())
    lab.insert("shop.t", {"id": 1, "doc": BIG}, {"id": 2, "doc": None}, {"id": 3, "doc": "null"})
    bag = [{"a": 1, "doc": BIG}, {"a": 1, "doc": BIG}, {"a": 1, "doc": None}, {"a": 1, "doc": "null"}]
    lab.insert("shop.bag", *bag, {"a": 2, "doc": "[]"})
    lab.delete("shop.bag", {"a": 2, "doc": "[]"})
    lake.cut()
    lab.truncate("shop.t")
    lab.truncate("shop.bag")
    lab.insert("shop.t", {"id": 1, "doc": "7"})
    lake.cut()

    _check(lake, "doc")
    taken = [row for row in _read(lake, "shop_bag_changes", "doc") if row["offset"] >= 6]
    found = Counter((row["a"], json.dumps(row["doc"], sort_keys=True)) for row in taken)
    assert found == Counter((row["a"], json.dumps(_value(row["doc"]), sort_keys=True)) for row in bag)


def test_what_variant_does_not_hold_stops_its_table_alone(spark: SparkSession, tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path / "lake", Lab())
    lab = lake.lab
    for table in ("t", "initial", "retyped", "other"):
        lab.create(f"shop.{table}", {"id": INT, "doc": DOC})
        lab.insert(f"shop.{table}", {"id": 1, "doc": "1"})
    lab.create("shop.keyed", {"id": DOC})
    lab.insert("shop.keyed", {"id": "1"})
    lake.cut()
    lab.insert("shop.t", {"id": 2, "doc": "2"}, {"id": 3, "doc": '{"a": 1, "a": 2}'})
    lab.add("shop.initial", "more", DOC, initial="")
    lab.retype("shop.retyped", "doc", ColumnType(name="longtext", charset="utf8mb4"), cut=True)
    lab.insert("shop.other", {"id": 2, "doc": "2"})
    lake.cut()

    stopped = lake.stopped()
    assert ["shop.initial", "shop.keyed", "shop.retyped", "shop.t"] == sorted(stopped)
    assert "(shop.t.doc)" in stopped["shop.t"]
    assert "repeats a key" in stopped["shop.t"]
    assert "types.json: text" in stopped["shop.t"]
    assert "shop.initial.more: ALTER TABLE" in stopped["shop.initial"]
    assert "rewritten by the server" in stopped["shop.retyped"]
    assert "types.json: text" in stopped["shop.keyed"]
    assert [{"id": 1, "doc": 1}] == _read(lake, "shop_t", "doc")
    assert 1 == len(_read(lake, "shop_t_changes", "doc"))
    assert [1, 2] == sorted(row["doc"] for row in _read(lake, "shop_other", "doc"))


@pytest.mark.parametrize(
    "small_bytes",
    [pytest.param(0, marks=pytest.mark.soak), held_rows.SMALL_BYTES],
    ids=["merged", "rewritten"],
)
def test_histories_keep_the_documents(
    spark: SparkSession, tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
    lake = Lake(spark, tmp_path / "lake", Lab(), mirror=None, changelog=None, history="{database}_{table}_history")
    lab = lake.lab
    lab.create("shop.t", {"id": INT, "doc": DOC})
    rows = [{"id": 1, "doc": BIG}, {"id": 2, "doc": None}, {"id": 3, "doc": "1"}]
    lab.insert("shop.t", *rows)
    lake.cut()
    lab.update("shop.t", rows[2], doc="2")
    lab.add("shop.t", "more", DOC, initial='{"k": 1.0}')
    lab.update("shop.t", lab.rows("shop.t")[0], doc="[]")
    lab.insert("shop.t", {"id": 4, "doc": BIG, "more": "null"})
    lake.cut()
    lab.truncate("shop.t")
    lake.cut()

    assert {} == lake.stopped()
    found = _read(lake, "shop_t_history", "doc", "more", order="from_offset")
    big, added = _value(BIG), {"k": 1.0}
    assert [tuple(row[name] for name in ("from_offset", "to_offset", "id", "doc", "more")) for row in found] == [
        (0, 5, 1, big, added),
        (1, 9, 2, "NULL", added),
        (2, 3, 3, 1, "NULL"),
        (4, 10, 3, 2, added),
        (6, 8, 1, [], added),
        (7, 11, 4, big, None),
    ]
