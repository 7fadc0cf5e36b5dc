"""Typed rows of the demo's log: one schema for all, and where an edit does not fit it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import datasource as spark
from pyspark.sql.datasource import CaseInsensitiveDict

from connectors.readers.base import LogMark
from connectors.readers.binlog.log_reader import BinlogReader
from connectors.spark.data_source import HistorianSource
from historian.errors import ConfigError, LogReplaced, TableStopped
from replicas.driven_source import DrivenStream, read_batch

RECORDING = Path(__file__).parents[3] / "examples/shop/binlog"
SYSTEM = ["op", "event_time", "schema_version", "position", "ordinal"]
ORDERS = ["channel", "id", "customer", "status", "amount", "placed", "slot", "note"]
FIRST_ORDERS = ["id", "customer", "status", "total", "placed", "slot", "note"]
CUSTOMERS = ["id", "name", "city", "birthday", "vip", "consents", "settings", "joined", "balance"]


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Of a read of the recording."""
    config = tmp_path / "shop.yaml"
    config.write_text(
        f"name: shop\nsource: {{type: binlog-files, flavor: mysql, directory: {RECORDING}, tables: ['shop.*']}}\n"
        "history: {store: 'sqlite:///shop.db'}\nrun: {max_batch_bytes: 1 MB}\n"
    )
    return {"config": str(config)}


def test_a_batch_has_the_schema_at_the_end_of_its_range(options: dict[str, str]) -> None:
    rows = read_batch({**options, "table": "shop.orders"})

    assert [*SYSTEM, *ORDERS] == rows.schema.names
    # Before its ALTER a row had no channel: it reads the default. A total is an amount.
    before = rows.filter(pc.less(rows["schema_version"], 11))
    assert ({"web"}, 0) == (set(before["channel"].to_pylist()), before["amount"].null_count)
    assert before.num_rows > 1000
    assert {"web", "app", "store"} == set(rows["channel"].to_pylist())


def test_the_schema_is_that_of_the_place_that_is_named(options: dict[str, str]) -> None:
    first = read_batch({**options, "table": "shop.orders", "schema_at": "earliest"})
    last = read_batch({**options, "table": "shop.orders", "schema_at": "latest"})
    renamed = last.filter(pc.greater_equal(last["schema_version"], 16))["position"][0].as_py()
    server, number = renamed.rsplit(":", 1)
    there = {**options, "table": "shop.orders", "schema_at": f"{server}:1-{int(number) - 2}"}

    assert FIRST_ORDERS == first.schema.names[len(SYSTEM) :]
    assert last["amount"] == first["total"]
    assert ["channel", *FIRST_ORDERS] == _names(there)[len(SYSTEM) :]


def test_the_schema_may_be_that_of_the_position_of_a_row(options: dict[str, str]) -> None:
    rows = read_batch({**options, "table": "shop.orders"})
    for version, names in ((0, FIRST_ORDERS), (11, ["channel", *FIRST_ORDERS]), (16, ORDERS)):
        of_version = rows.filter(pc.greater_equal(rows["schema_version"], version))["position"][0].as_py()

        assert names == _names({**options, "table": "shop.orders", "schema_at": of_version})[len(SYSTEM) :]


def test_a_place_for_the_schema_that_is_none_is_told_with_what_may_stand_there(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"latest, earliest or a position @ \$\.schema_at \(got 'soon'\)"):
        _names({**options, "table": "shop.orders", "schema_at": "soon"})


def test_columns_that_were_dropped_come_on_request_and_are_null_from_then_on(options: dict[str, str]) -> None:
    rows = read_batch({**options, "table": "shop.customers", "dropped": "true"})

    assert [*CUSTOMERS, "referrer"] == rows.schema.names[len(SYSTEM) :]
    behind = pc.greater_equal(rows["schema_version"], 12)
    assert rows.filter(behind)["referrer"].null_count == pc.sum(behind).as_py()
    assert rows.filter(pc.invert(behind))["referrer"].null_count < pc.sum(pc.invert(behind)).as_py()


def test_a_dropped_column_whose_name_is_taken_is_told_by_its_id(options: dict[str, str]) -> None:
    names = _names({**options, "table": "shop.products", "dropped": "true"})

    assert names.count("first_sold") == 1
    assert [name for name in names if name.startswith("first_sold_h")] == names[-1:]


def test_a_stream_from_the_start_reads_what_a_batch_reads(options: dict[str, str], tmp_path: Path) -> None:
    """Over CHANGE credit balance DECIMAL(12,2), which was DECIMAL(9,2)."""
    table = {**options, "table": "shop.customers"}
    stream = DrivenStream({**table, "name": "customers", "store": f"sqlite:///{tmp_path}/s.db"})
    stream.run()
    batch = read_batch(table)

    assert pa.decimal128(12, 2) == batch.schema.field("balance").type
    assert len(stream.batches) > 2
    assert batch.combine_chunks() == pa.concat_tables(stream.batches).combine_chunks()
    assert isinstance(batch["balance"][0].as_py(), Decimal)


def test_a_stream_ends_at_an_edit_that_does_not_fit_and_goes_on_when_it_is_started_again(
    options: dict[str, str], tmp_path: Path
) -> None:
    stream = DrivenStream({**options, "table": "shop.coupons", "name": "c", "store": f"sqlite:///{tmp_path}/s.db"})
    with pytest.raises(TableStopped) as stopped:
        stream.run()
    before = stream.rows
    stream.run()

    said = str(stopped.value)
    assert "TRUNCATE TABLE coupons: rows went without row events" in said
    assert "start the query again, with the same name and checkpoint" in said
    assert "\n" not in said
    chunks = read_batch(options)
    of_table = chunks.filter(pc.equal(chunks["table_id"], 8))
    assert pc.sum(of_table["row_count"]).as_py() == stream.rows > before > 0
    places = pa.concat_tables(stream.batches).select(["position", "ordinal", "op", "code"]).to_pylist()
    assert len({tuple(row.values()) for row in places}) == len(places)


def test_a_stream_that_fails_at_such_edits_never_goes_on(options: dict[str, str], tmp_path: Path) -> None:
    fails = {"name": "c", "store": f"sqlite:///{tmp_path}/s.db", "on_schema_change": "fail"}
    stream = DrivenStream({**options, "table": "shop.coupons", **fails})
    for _ in range(2):
        with pytest.raises(TableStopped, match='start a new stream, with another "name"'):
            stream.run()

    anew = DrivenStream({**stream.options, "on_schema_change": "restart"}, end=stream.end)
    with pytest.raises(TableStopped, match="start the query again"):
        anew.run()
    anew.run()
    assert anew.rows > 0


def test_a_stream_whose_table_is_gone_says_so(options: dict[str, str], tmp_path: Path) -> None:
    stream = DrivenStream({**options, "table": "shop.carts", "name": "c", "store": f"sqlite:///{tmp_path}/s.db"})
    for _ in range(2):
        with pytest.raises(TableStopped, match="when there is a table of that name again"):
            stream.run()
    assert stream.rows > 0


def test_a_new_checkpoint_under_a_name_that_went_on_is_refused(options: dict[str, str], tmp_path: Path) -> None:
    stream = DrivenStream({**options, "table": "shop.coupons", "name": "c", "store": f"sqlite:///{tmp_path}/s.db"})
    with pytest.raises(TableStopped):
        stream.run()
    with pytest.raises(TableStopped, match=r'the stream c has gone on behind it.*another "name"'):
        DrivenStream(stream.options).run()


def test_progress_tells_bytes_and_lag(options: dict[str, str], tmp_path: Path) -> None:
    stream = DrivenStream({**options, "table": "shop.stock", "name": "c", "store": f"sqlite:///{tmp_path}/s.db"})
    stream.run()

    assert stream.end is not None
    assert stream.reported is not None
    assert 6_000_000 < stream.end["log_bytes"] < sum(file.stat().st_size for file in RECORDING.glob("binlog.0*"))
    assert (0, 0) == (stream.reported["waiting_bytes"], stream.reported["lag_seconds"])


@pytest.mark.parametrize(
    "filters",
    [
        [spark.EqualTo(("op",), 1)],
        [spark.In(("op",), (2, 3)), spark.GreaterThan(("id",), 5000)],
        [spark.EqualTo(("id",), 7)],
        [spark.EqualTo(("channel",), "app"), spark.LessThanOrEqual(("amount",), Decimal("99.50"))],
        [spark.GreaterThanOrEqual(("event_time",), datetime(2026, 11, 21, 11, 33, 3, tzinfo=timezone.utc))],
        [spark.IsNotNull(("note",)), spark.EqualTo(("schema_version",), 11)],
        [spark.IsNull(("note",)), spark.Not(spark.EqualTo(("id",), 7)), spark.StringStartsWith(("status",), "p")],
        [spark.EqualTo(("position",), "4dcb5179-e59f-11f1-b7a4-02fc00000001:4201")],
    ],
    ids=str,
)
def test_filters_leave_out_rows_before_spark_sees_them(options: dict[str, str], filters: list[spark.Filter]) -> None:
    table = {**options, "table": "shop.orders"}
    whole, filtered = read_batch(table), read_batch(table, filters)
    wanted = whole
    for each in filters:
        wanted = wanted.filter(_mask(each, wanted))

    assert wanted.num_rows < whole.num_rows
    assert _filtered(wanted, filters) == _filtered(filtered, filters)
    assert 0 < filtered.num_rows < whole.num_rows


def test_a_range_of_files_is_read_under_the_schemas_from_before_it(options: dict[str, str]) -> None:
    table = {**options, "table": "shop.orders"}
    server = "4dcb5179-e59f-11f1-b7a4-02fc00000001"
    cuts = [{}, {"from": f"{server}:1-1000"}, {"from": f"{server}:1-3000"}]
    parts = [
        read_batch({**table, **after, **({"to": until["from"]} if until else {})})
        for after, until in zip(cuts, [*cuts[1:], {}], strict=True)
    ]

    whole = read_batch(table).drop_columns(["amount", "channel"])
    parts[0] = parts[0].rename_columns([{"total": "amount"}.get(name, name) for name in parts[0].schema.names])
    read = pa.concat_tables([part.select(whole.schema.names) for part in parts])
    assert whole.combine_chunks() == read.combine_chunks()
    assert all(part.num_rows for part in parts)
    # Behind its TRUNCATE the table is read by itself.
    coupons = {**options, "table": "shop.coupons", "from": f"{server}:1-2935"}
    assert read_batch(coupons).num_rows > 0


def test_parts_of_the_log_that_a_position_is_not_in_are_not_read(options: dict[str, str]) -> None:
    source = HistorianSource({**options, "table": "shop.orders"})
    reader = source.reader(source.schema())
    reader.pushFilters([spark.In(("position",), ("4dcb5179-e59f-11f1-b7a4-02fc00000001:4201", None))])

    found = [[batch.num_rows for batch in reader.read(part)] for part in reader.partitions()]
    assert len(found) > 3
    assert [True] == [sum(rows) > 0 for rows in found if rows]


def test_columns_that_are_named_are_all_there_are(options: dict[str, str]) -> None:
    table = {**options, "table": "shop.orders"}
    whole, some = read_batch(table), read_batch({**table, "columns": "amount, op,ID"})

    assert whole.select(["amount", "op", "id"]) == some
    with pytest.raises(ConfigError, match=r"no such column of shop.orders @ \$\.columns \(got 'total'\)"):
        read_batch({**table, "columns": "total"})


def test_chunks_of_all_tables_are_read_and_filtered_by_table(options: dict[str, str]) -> None:
    whole, one = read_batch(options), read_batch(options, [spark.EqualTo(("table_id",), 3)])

    assert whole.filter(pc.is_in(whole["table_id"], pa.array([0, 3], pa.int32()))).select(
        ["table_id", "rows"]
    ) == one.select(["table_id", "rows"])
    assert {0, 3} == set(one["table_id"].to_pylist())


def test_a_query_that_goes_on_reads_no_stored_plan_of_a_log_that_was_reset(
    options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = HistorianSource(CaseInsensitiveDict({**options, "table": "shop.orders", "name": "s"}))
    first = source.streamReader(source.schema())
    start = first.initialOffset()
    end = first.latestOffset(dict(start), first.getDefaultReadLimit())
    assert first.partitions(start, end)
    first.stop()
    found = BinlogReader.mark

    def begun_later(reader: BinlogReader, name: str) -> LogMark | None:
        mark = found(reader, name)
        return mark and replace(mark, made_s=mark.made_s + 1)

    monkeypatch.setattr(BinlogReader, "mark", begun_later)
    again = source.streamReader(source.schema())

    with pytest.raises(LogReplaced, match="the log was reset after it was read"):
        again.partitions(start, end)
    again.stop()


def _names(options: dict[str, str]) -> list[str]:
    return HistorianSource(options).schema().fieldNames()


def _mask(each: spark.Filter, rows: pa.Table) -> pa.ChunkedArray:
    """What Spark makes of the filter."""
    if isinstance(each, spark.Not):
        return pc.invert(_mask(each.child, rows))
    column = rows[each.attribute[0]]
    match each:
        case spark.EqualTo(_, value):
            return pc.equal(column, pa.scalar(value, column.type))
        case spark.GreaterThan(_, value):
            return pc.greater(column, pa.scalar(value, column.type))
        case spark.GreaterThanOrEqual(_, value):
            return pc.greater_equal(column, pa.scalar(value, column.type))
        case spark.LessThanOrEqual(_, value):
            return pc.less_equal(column, pa.scalar(value, column.type))
        case spark.In(_, values):
            return pc.is_in(column, pa.array(values, column.type))
        case spark.IsNull(_):
            return column.is_null()
        case spark.IsNotNull(_):
            return column.is_valid()
        case spark.StringStartsWith(_, value):
            return pc.starts_with(column, value)
    raise AssertionError(each)


def _filtered(rows: pa.Table, filters: list[spark.Filter]) -> pa.Table:
    for each in filters:
        rows = rows.filter(_mask(each, rows))
    return rows.combine_chunks()
