"""Strict Open Data Fabric changelogs as Parquet files: what the files' own metadata say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from historian.changelog import validation
from historian.changelog.conversions import to_odf
from historian.changelog.validation import Profile
from historian.errors import SinkError
from models.changelogs import random_changelog
from models.changes import KEY
from sinks.parquet.odf import write_odf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS, FORMER = random_changelog(4, 400, before=6)


def _frame(spark: SparkSession) -> tuple[pa.Table, DataFrame]:
    """A strict changelog, with a time in its data that is finer than its own."""
    rows = to_odf(ROWS, KEY, FORMER)
    rows = rows.set_column(1, "op", rows.column("op").cast(pa.int32()))
    finer = pa.array([1_700_000_000_000_001] * rows.num_rows, pa.timestamp("us", tz="UTC"))
    rows = rows.append_column("dotted.time", finer)
    return rows, spark.createDataFrame(rows).repartition(3)


def test_files_have_the_types_and_encodings_of_the_specification(spark: SparkSession, tmp_path: Path) -> None:
    rows, frame = _frame(spark)

    write_odf(frame, str(tmp_path / "odf"), file_bits=7)

    files = sorted((tmp_path / "odf").iterdir())
    assert [f"{at:016d}.parquet" for at in range(0, rows.num_rows, 128)] == [file.name for file in files]
    parts = [pq.read_table(file) for file in files]
    assert [part.column("offset")[0].as_py() for part in parts] == [int(file.stem) for file in files]
    whole = pa.concat_tables(parts)
    assert whole.equals(rows), "in the order of their offsets, file after file, and every value as it was"
    assert () == validation.check(whole.drop(["dotted.time"]), KEY, profile=Profile.ODF, former=FORMER, first_offset=0)
    for file in files:
        _assert_specified(file)


def _assert_specified(file: Path) -> None:
    footer = pq.read_metadata(file)
    columns = {c.path_in_schema: c for c in map(footer.row_group(0).column, range(footer.num_columns))}
    kinds = {name: footer.schema.column(at).logical_type for at, name in enumerate(footer.schema.names)}
    assert ["offset", "op", "system_time", "event_time"] == footer.schema.names[:4]
    packed, coded = ({*columns[name].encodings} - {"RLE"} for name in ("offset", "op"))
    assert ("INT64", {"DELTA_BINARY_PACKED"}) == (columns["offset"].physical_type, packed)
    assert ("INT32", {"PLAIN", "RLE_DICTIONARY"}) == (columns["op"].physical_type, coded)
    assert (False, True) == (columns["offset"].has_dictionary_page, columns["op"].has_dictionary_page)
    for name, unit in (
        ("system_time", "milliseconds"),
        ("event_time", "milliseconds"),
        ("dotted.time", "microseconds"),
    ):
        assert "INT64" == columns[name].physical_type
        said = str(kinds[name])
        assert (True, True) == ("isAdjustedToUTC=true" in said, f"timeUnit={unit}" in said), said


def test_no_rows_still_have_types_and_a_directory_that_is_taken_stays(spark: SparkSession, tmp_path: Path) -> None:
    _, frame = _frame(spark)
    out = str(tmp_path / "odf")

    write_odf(frame.where("offset < 0"), out)

    table = pq.read_table(out)
    assert (0, pa.timestamp("ms", tz="UTC")) == (table.num_rows, table.schema.field("event_time").type)
    with pytest.raises(SinkError, match="expected nothing there"):
        write_odf(frame, out)
    assert 0 == pq.read_table(out).num_rows


def test_what_stops_the_query_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    _, frame = _frame(spark)
    broken: Any = frame.selectExpr("*", "if(offset > 300, raise_error('stop'), 1) as n")

    with pytest.raises(PySparkException, match="stop"):
        write_odf(broken, str(tmp_path / "odf"))
    assert not (tmp_path / "odf").exists()
