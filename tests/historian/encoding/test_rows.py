"""Rows to cells and back: bytes as documented, values kept, schemas changed in between, damage found."""

from __future__ import annotations

import zlib
from dataclasses import replace
from datetime import date, datetime, timezone
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.changelog.operations import physical_name
from historian.changelog.projection import project
from historian.encoding import decode_rows, encode_risingwave, encode_rows, read_rows, row_schema, with_id
from historian.errors import HistorianError, RowCorrupt, ValueUnrepresentable
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from models.plain_rows import row_writer
from models.random_rows import tables
from models.timelines import BIGINT, INT, random_edits, snapshot


def batch(*columns: tuple[int, pa.DataType, list[Any]]) -> pa.RecordBatch:
    fields = [with_id(number, pa.field(f"h{number}", kind)) for number, kind, _ in columns]
    return pa.RecordBatch.from_arrays([pa.array(v, k) for _, k, v in columns], schema=pa.schema(fields))


def only(rows: pa.RecordBatch) -> bytes:
    cell: bytes = encode_rows(rows)[0].as_py()
    return cell


def with_checksum(text: str) -> bytes:
    body = bytes.fromhex(text)
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize(
    "rows,expected",
    [
        (batch((1, pa.int16(), [5]), (2, pa.string(), ["abc"])), "e5 02 01 02 00 51 02 05 0500 616263"),
        (batch((2, pa.string(), ["abc"]), (1, pa.int16(), [5])), "e5 02 01 02 00 51 02 05 0500 616263"),
        (
            batch((1, pa.int32(), [7]), (2, pa.bool_(), [None]), (3, pa.string(), [""])),
            "e5 03 01 02 03 02 41 05 04 04 04 07000000",
        ),
        (batch((256, pa.int8(), [-1])), "e9 0100 0001 00 01 01 ff"),
        (batch((70_000, pa.int8(), [-1])), "ed 01000000 70110100 00 01 01 ff"),
        (batch((1, pa.decimal128(5, 2), [Decimal("-1.50")])), "e5 01 01 00 03 03 02 6aff"),
        (batch((1, pa.struct([]), [{}])), "e5 01 01 00 00 02 c5 00"),
        (batch((1, pa.struct([]), [None])), "e5 01 01 01 00 00"),
        (batch((1, pa.list_(pa.int8()), [[7, None]])), "e5 01 01 00 00 07 d5 02 02 11 01 01 07"),
        (
            batch((1, pa.map_(pa.string(), pa.int8()), [[("k", 7)]])),
            "e5 01 01 00 00 12 d5 02 00 00 06 0c d5 01 00 05 01 6b d5 01 00 01 01 07",
        ),
    ],
)
def test_bytes_are_as_documented(rows: pa.RecordBatch, expected: str) -> None:
    assert with_checksum(expected).hex(" ") == only(rows).hex(" ")


@settings(deadline=None, max_examples=100)
@given(tables())
def test_rows_are_written_as_a_plain_writer_writes_them(rows: pa.RecordBatch) -> None:
    write = row_writer(list(rows.schema))

    expected = [write(row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]

    assert expected == encode_rows(rows).to_pylist()


@settings(deadline=None, max_examples=100)
@given(tables(), st.data())
def test_any_columns_in_any_order_are_read_as_written(rows: pa.RecordBatch, data: st.DataObject) -> None:
    wanted = data.draw(st.permutations(range(rows.num_columns)))[: data.draw(st.integers(1, rows.num_columns))]

    read = decode_rows(encode_rows(rows), pa.schema([rows.schema.field(i) for i in wanted]))

    read.validate(full=True)
    assert rows.select(wanted).to_pylist() == read.to_pylist()
    assert [rows.schema.field(i).type for i in wanted] == read.schema.types


def test_blocks_of_many_rows_are_one() -> None:
    count = 40_000
    rows = batch((1, pa.int64(), list(range(count))), (2, pa.string(), [str(i) for i in range(count)]))

    assert rows == decode_rows(encode_rows(rows), rows.schema)


def test_wide_rows_find_each_of_their_columns() -> None:
    rows = batch(*((3 * i, pa.int16(), [i if i % 7 else None]) for i in range(20_000)))

    assert rows == decode_rows(encode_rows(rows), rows.schema)


@pytest.mark.parametrize("length", [255, 256, 65_535, 65_536])
def test_ends_are_as_wide_as_the_values_need(length: int) -> None:
    rows = batch((1, pa.binary(), [b"x" * length]), (2, pa.binary(), [b""]))

    assert (length > 255) + (length > 65_535) + 1 == only(rows)[0] & 3
    assert rows == decode_rows(encode_rows(rows), rows.schema)


def test_an_empty_struct_is_not_null_and_an_empty_list_neither() -> None:
    rows = batch((1, pa.struct([]), [{}, None]), (2, pa.list_(pa.int32()), [[], None]), (3, pa.string(), ["", None]))

    assert rows.to_pylist() == decode_rows(encode_rows(rows), rows.schema).to_pylist()


NULL_AFTER_3 = Column(id=3, name="c", type=INT, initial="7")


def test_a_row_reads_the_default_of_a_column_added_later_but_a_stored_null_stays() -> None:
    before = batch((1, pa.int32(), [1]))
    after = batch((1, pa.int32(), [2]), (3, pa.int32(), [None]))
    cells = pa.concat_arrays([encode_rows(before), encode_rows(after)])
    table = snapshot(1, "t", "a")

    read = read_rows(cells, _with(table, NULL_AFTER_3))

    assert [{"h1": 1, "h3": 7}, {"h1": 2, "h3": None}] == read.to_pylist()


def _with(table: Snapshot, *columns: Column) -> Snapshot:
    return replace(table, columns=(*table.columns, *columns))


def test_a_row_without_a_column_that_only_the_server_could_fill_is_refused() -> None:
    unknown = Column(id=3, name="c", type=INT, initial_known=False)
    table = _with(snapshot(1, "t", "a"), unknown)
    full = batch((1, pa.int32(), [2]), (3, pa.int32(), [9]))

    assert [{"h1": 2, "h3": 9}] == read_rows(encode_rows(full), table).to_pylist()
    with pytest.raises(ValueUnrepresentable, match="only the server knows"):
        read_rows(encode_rows(full.select([0])), table)


def test_columns_that_are_not_wanted_are_not_read() -> None:
    table = _with(snapshot(1, "t", "a"), Column(id=2, name="b", type=ColumnType(name="varchar", length=9)))
    rows = batch((1, pa.int32(), [1]), (2, pa.binary(), [b"\xff"]))  # no text

    assert [{"h1": 1}] == read_rows(encode_rows(rows), table, [1]).to_pylist()
    with pytest.raises(ValueUnrepresentable, match="another kind"):
        read_rows(encode_rows(rows), table, [2])
    with pytest.raises(HistorianError, match="no such column"):
        read_rows(encode_rows(rows), table, [3])


def test_no_columns_at_all_keep_the_number_of_rows() -> None:
    cells = encode_rows(batch((1, pa.int32(), [1, 2])))

    assert 2 == decode_rows(cells, pa.schema([])).num_rows


@pytest.mark.parametrize(
    "written,wanted,values,expected",
    [
        (pa.int8(), pa.int64(), [-1, None], [-1, None]),
        (pa.int64(), pa.int16(), [-32768], [-32768]),
        (pa.float32(), pa.float64(), [0.5, None], [0.5, None]),
        (pa.float64(), pa.float32(), [0.5, float("inf")], [0.5, float("inf")]),
        (pa.decimal128(5, 2), pa.decimal128(9, 4), [Decimal("-1.50")], [Decimal("-1.5000")]),
        (pa.int64(), pa.decimal128(20, 0), [7, None], [Decimal(7), None]),
    ],
)
def test_numbers_are_read_as_any_type_that_holds_them(
    written: pa.DataType, wanted: pa.DataType, values: list[Any], expected: list[Any]
) -> None:
    cells = encode_rows(batch((1, written, values)))

    assert batch((1, wanted, expected)) == decode_rows(cells, batch((1, wanted, [])).schema)


def test_rows_from_before_and_after_a_wider_type_are_read_together() -> None:
    cells = pa.concat_arrays(
        [
            encode_rows(batch((1, kind, [value])))
            for kind, value in (
                (pa.int32(), 5),
                (pa.decimal128(20, 0), Decimal(2**64 - 1)),
                (pa.decimal128(6, 1), Decimal("1.0")),
            )
        ]
    )

    read = decode_rows(cells, batch((1, pa.decimal128(20, 0), [])).schema)

    assert [Decimal(5), Decimal(2**64 - 1), Decimal(1)] == read.column(0).to_pylist()


@pytest.mark.parametrize(
    "written,wanted,value,why",
    [
        (pa.int64(), pa.int16(), 40_000, "does not fit"),
        (pa.float64(), pa.float32(), 0.1, "does not fit"),
        (pa.float64(), pa.float32(), 1e300, "does not fit"),
        (pa.decimal128(5, 2), pa.decimal128(5, 1), Decimal("1.25"), "does not fit"),
        (pa.decimal128(5, 2), pa.decimal128(3, 2), Decimal("10.25"), "does not fit"),
        (pa.int32(), pa.float32(), 1, "another kind"),
        (pa.int32(), pa.date32(), 1, "another kind"),
        (pa.string(), pa.binary(), "a", "another kind"),
        (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), datetime(2024, 1, 1), "another kind"),  # noqa: DTZ001
        (pa.decimal128(5, 2), pa.int64(), Decimal("1.25"), "another kind"),
    ],
)
def test_a_value_that_a_type_cannot_hold_is_refused_by_column(
    written: pa.DataType, wanted: pa.DataType, value: Any, why: str
) -> None:
    with pytest.raises(ValueUnrepresentable, match=rf"{why}.*h1"):
        decode_rows(encode_rows(batch((1, written, [value]))), batch((1, wanted, [])).schema)


def test_a_field_of_a_struct_added_later_reads_null() -> None:
    inner = [with_id(2, pa.field("x", pa.int8())), with_id(3, pa.field("y", pa.int8()))]
    cells = encode_rows(batch((1, pa.struct(inner[:1]), [{"x": 1}, None])))

    read = decode_rows(cells, batch((1, pa.struct(inner), [])).schema)

    assert [{"x": 1, "y": None}, None] == read.column(0).to_pylist()


@pytest.mark.parametrize(
    "kind", [pa.uint8(), pa.timestamp("ms"), pa.large_string(), pa.null(), pa.time64("us"), pa.decimal128(5, -1)]
)
def test_a_type_without_a_form_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(ValueUnrepresentable, match="cannot be encoded"):
        encode_rows(batch((1, kind, [None])))


def test_columns_without_id_or_with_one_id_twice_are_refused() -> None:
    with pytest.raises(HistorianError, match="no id"):
        encode_rows(pa.record_batch({"a": pa.array([1])}))
    with pytest.raises(HistorianError, match="told apart"):
        encode_rows(batch((1, pa.int8(), [1]), (1, pa.int8(), [1])))
    with pytest.raises(HistorianError, match="told apart"):
        encode_rows(batch((-1, pa.int8(), [1])))


ROWS = batch(
    (1, pa.int32(), [1]),
    (2, pa.string(), ["text"]),
    (3, pa.list_(pa.int8()), [[1, 2]]),
    (4, pa.map_(pa.string(), pa.decimal128(5, 1)), [[("k", Decimal(1))]]),
    (5, pa.date32(), [date(2024, 2, 29)]),
    (6, pa.timestamp("us", tz="UTC"), [datetime(2024, 2, 29, tzinfo=timezone.utc)]),
)


def test_every_flipped_bit_and_every_cut_is_found() -> None:
    cell = only(ROWS)
    damaged = [cell[:n] for n in range(len(cell))]
    damaged += [cell[:i] + bytes([cell[i] ^ 1 << bit]) + cell[i + 1 :] for i in range(len(cell)) for bit in range(8)]

    for each in damaged:
        with pytest.raises(RowCorrupt):
            decode_rows(pa.array([cell, each], pa.binary()), ROWS.schema)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damage_under_a_right_checksum_is_an_error_of_ours_or_some_row(data: st.DataObject) -> None:
    body = bytearray(only(ROWS)[:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cell = bytes(body) + zlib.crc32(body).to_bytes(4, "little")

    try:
        read = decode_rows(pa.array([cell], pa.binary()), ROWS.schema)
    except HistorianError:
        return
    read.validate(full=True)


def test_a_cell_that_is_null_is_refused() -> None:
    with pytest.raises(RowCorrupt, match="NULL"):
        decode_rows(pa.array([None], pa.binary()), ROWS.schema)


def test_rows_of_both_forms_are_read_side_by_side() -> None:
    rows = batch((1, pa.int32(), [1, 2, 3]), (2, pa.string(), ["a", None, ""]))
    first, second = encode_risingwave(rows), encode_rows(rows)
    cells = pa.array([second[0].as_py(), first[1].as_py(), second[2].as_py(), first[0].as_py()], pa.binary())
    wanted = batch((9, pa.int8(), []), (2, pa.string(), []), (1, pa.int32(), []))

    read = decode_rows(cells, wanted.schema, lambda number: pa.scalar(number, pa.int8()))

    assert [
        {"h9": 9, "h2": "a", "h1": 1},
        {"h9": 9, "h2": None, "h1": 2},
        {"h9": 9, "h2": "", "h1": 3},
        {"h9": 9, "h2": "a", "h1": 1},
    ] == read.to_pylist()


def test_types_of_tables_are_read_as_they_were_written() -> None:
    kinds = (INT, BIGINT, ColumnType(name="bigint", unsigned=True), ColumnType(name="time"), ColumnType(name="year"))
    table = _with(snapshot(1, "t"), *(Column(id=i, name=f"c{i}", type=kind) for i, kind in enumerate(kinds, 1)))
    values = [1, 2**62, Decimal(2**64 - 1), -3_020_399_000_000, 2024]
    rows = pa.RecordBatch.from_pylist([{f"h{i}": v for i, v in enumerate(values, 1)}], row_schema(table))

    assert rows == read_rows(encode_rows(rows), table)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32))
def test_cells_of_any_version_read_under_any_other_are_what_projection_gives(seed: int) -> None:
    random = Random(seed)
    catalog, versions = Catalog(), list[Snapshot]()
    for _ in range(20):
        catalog = apply_all(random_edits(random, catalog), catalog)
        versions += [t for t in catalog.tables.values() if t.columns]
    target = random.choice(versions)
    blocks, expected = [], []
    for written in random.sample(_ids(versions, target), 2):
        rows = _rows(versions[written], random)
        blocks.append(encode_rows(rows))
        expected.append(project(rows, versions[written], target))

    read = read_rows(pa.concat_arrays(blocks), target)

    assert [row for batch in expected for row in batch.to_pylist()] == read.to_pylist()


def _ids(versions: list[Snapshot], target: Snapshot) -> list[int]:
    """Numbers of the versions of the same table, twice where there is but one."""
    same = [i for i, version in enumerate(versions) if version.table_id == target.table_id]
    return same * 2 if len(same) == 1 else same


def _rows(written: Snapshot, random: Random) -> pa.RecordBatch:
    names = [physical_name(column.id) for column in written.columns]
    values = [{name: random.choice((None, random.randint(-9, 9))) for name in names} for _ in range(3)]
    return pa.RecordBatch.from_pylist(values, row_schema(written))
