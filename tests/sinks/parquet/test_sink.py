"""Files of the Parquet sink, as others read them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from historian.errors import ConfigError, SinkError
from lakes.sink_lab import INT, Lab, text
from sinks.parquet import ParquetSettings, ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lab() -> Lab:
    lab = Lab()
    lab.create("shop.t", {"id": INT, "a": text()})
    lab.insert("shop.t", *({"id": i, "a": "é"} for i in range(5)))
    lab.cut()
    lab.rename_column("shop.t", "a", "b")
    lab.insert("shop.t", {"id": 9, "b": "x"})
    lab.cut()
    return lab


def _written(spark: SparkSession, path: Path, lab: Lab) -> ParquetSink:
    sink = ParquetSink(spark, ParquetSettings(path=str(path)))
    sink.open("shop")
    for plan in lab.plans:
        with lab.delivered(plan) as chunks:
            sink.write(plan, lab.timeline, chunks)
    return sink


def test_files_are_named_by_offset_and_encoded_as_open_data_fabric_has_it(
    spark: SparkSession, tmp_path: Path, lab: Lab
) -> None:
    _written(spark, tmp_path, lab)

    files = sorted((tmp_path / "shop_t_changes").iterdir())
    assert ["0000000000000000-v1.parquet", "0000000000000005-v2.parquet"] == [file.name for file in files]
    footer = pq.read_metadata(files[0])
    columns = {c.path_in_schema: c for c in map(footer.row_group(0).column, range(footer.num_columns))}
    # No page of either may be plain, but that of a dictionary; nor are they ever NULL, so that they have no levels.
    assert ("INT64", {"DELTA_BINARY_PACKED"}) == (
        columns["offset"].physical_type,
        {*columns["offset"].encodings} - {"RLE"},
    )
    assert ("INT32", {"PLAIN", "RLE_DICTIONARY"}) == (columns["op"].physical_type, {*columns["op"].encodings} - {"RLE"})
    assert (False, True) == (columns["offset"].has_dictionary_page, columns["op"].has_dictionary_page)
    for name in ("system_time", "event_time"):
        kind = footer.schema.column(footer.schema.names.index(name)).logical_type
        assert ("INT64", "TIMESTAMP", True) == (
            columns[name].physical_type,
            kind.type,
            "isAdjustedToUTC=true, timeUnit=microseconds" in str(kind),
        )
    names = [pq.read_schema(file).names[5:] for file in files]
    ids = [[f.metadata[b"PARQUET:field_id"] for f in list(pq.read_schema(file))[5:]] for file in files]
    assert ([["id", "a"], ["id", "b"]], [[b"1", b"2"]] * 2) == (names, ids)


def test_spark_reads_all_versions_as_one_table(spark: SparkSession, tmp_path: Path, lab: Lab) -> None:
    _written(spark, tmp_path, lab)

    rows = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "shop_t_changes"))

    assert [*range(6)] == sorted(row.offset for row in rows.collect())


def test_a_damaged_ledger_is_said(spark: SparkSession, tmp_path: Path, lab: Lab) -> None:
    sink = _written(spark, tmp_path, lab)
    (tmp_path / "_historian" / "000000000002.json").write_text("{}")

    with pytest.raises(SinkError, match=r"a plan's file is damaged.*000000000002.json"):
        sink.open("shop")


def test_a_data_column_called_like_one_of_a_changelogs_own_stops_its_table(
    spark: SparkSession, tmp_path: Path, lab: Lab
) -> None:
    lab.create("shop.u", {"id": INT, "_Position": INT})
    lab.insert("shop.u", {"id": 1, "_Position": 2})
    lab.cut()
    sink = _written(spark, tmp_path, lab)

    assert ["shop.u"] == list(sink.stopped())
    assert "_Position" in sink.stopped()["shop.u"]


def test_a_name_for_all_tables_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected a name with \{database\} and \{table\} @ \$.changelog"):
        ParquetSettings(path="x", changelog="{database}_changes")
