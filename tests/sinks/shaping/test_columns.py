"""Columns and values under an action."""

from __future__ import annotations

import hashlib
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from historian.schema.snapshots import Column, ColumnType
from historian.secret import Secret
from historian.values.arrow_types import arrow_type
from historian.values.texts import initial_scalar
from lakes.sink_lab import INT, decimal, text
from sinks.shaping.columns import shaped_column, shaped_values, why_not
from sinks.shaping.rules import Action, Rules

HASH = Action(kind="hash", salt=Secret("pfeffer ü"))
UNSIGNED = ColumnType(name="bigint", unsigned=True)
BYTES = ColumnType(name="varbinary", length=4)


def sha(data: bytes) -> str:
    return hashlib.sha256("pfeffer ü".encode() + data).hexdigest()


@pytest.mark.parametrize(
    "kind, value, hashed",
    [
        (text(), "Zoë", "Zoë".encode()),
        (text(), "", b""),
        (BYTES, b"\x00\xff", b"\x00\xff"),
        (INT, -7, b"-7"),
        (UNSIGNED, Decimal(2**64 - 1), b"18446744073709551615"),
        (decimal(12, 9), Decimal("0.000000010"), b"0.000000010"),
    ],
)
def test_a_hash_is_of_the_salt_and_what_the_server_prints(kind: ColumnType, value: Any, hashed: bytes) -> None:
    column = Column(id=1, name="c", type=kind)
    found = shaped_values(pa.array([value, None], arrow_type(kind)), column, HASH)

    assert found.to_pylist() == [sha(hashed), None]
    assert found.type == arrow_type(shaped_column(column, HASH).type)


def test_a_text_is_cut_by_characters() -> None:
    column = Column(id=1, name="c", type=text())

    found = shaped_values(pa.array(["äö😀x", "a", "", None]), column, Action(kind="truncate", characters=3))

    assert found.to_pylist() == ["äö😀", "a", "", None]


@pytest.mark.parametrize(
    "kind, constant, shown",
    [
        (text(), "****", "****"),
        (INT, "0", 0),
        (decimal(7, 2), "1.5", Decimal("1.50")),
        (ColumnType(name="date"), "1970-01-01", date(1970, 1, 1)),
        (BYTES, "0x00", b"\x00"),
        (INT, None, None),
    ],
)
def test_a_mask_takes_the_place_of_every_value_but_null(kind: ColumnType, constant: str | None, shown: Any) -> None:
    column, values = Column(id=1, name="c", type=kind), pa.nulls(3, arrow_type(kind))
    some = pa.array(
        [
            initial_scalar(
                Column(id=1, name="c", type=kind, initial="1970-01-01" if kind.name == "date" else "1")
            ).as_py()
        ],
        values.type,
    )
    action = Action(kind="mask", text=constant)

    found = shaped_values(pa.concat_arrays([some, values.slice(0, 1)]), column, action)

    assert found.to_pylist() == [shown, None]
    assert found.type == values.type
    assert why_not(column, action) is None


@pytest.mark.parametrize(
    "kind, action",
    [
        (ColumnType(name="double"), HASH),
        (ColumnType(name="time"), HASH),
        (ColumnType(name="year"), HASH),
        (ColumnType(name="date"), HASH),
        (ColumnType(name="bit", length=9), HASH),
        (ColumnType(name="tinyint", length=1, options="boolean"), HASH),
        (INT, Action(kind="truncate", characters=1)),
        (BYTES, Action(kind="truncate", characters=1)),
        (INT, Action(kind="mask", text="****")),
        (ColumnType(name="date"), Action(kind="mask", text="0000-00-00")),
    ],
)
def test_what_cannot_be_done_to_a_column_is_said(kind: ColumnType, action: Action) -> None:
    assert why_not(Column(id=1, name="c", type=kind), action) is not None


def test_the_default_of_an_added_column_is_shaped_too() -> None:
    column = Column(id=1, name="c", type=text(), initial="geheim")

    shown = [
        initial_scalar(shaped_column(column, action)).as_py()
        for action in (HASH, Action(kind="mask", text="-"), Action(kind="truncate", characters=2))
    ]

    assert shown == [sha(b"geheim"), "-", "ge"]


def test_a_default_that_only_the_server_knows_is_masked_where_it_cannot_be_null() -> None:
    mask = Action(kind="mask", text="-")
    unknown = Column(id=1, name="c", type=text(), initial_known=False)

    assert not shaped_column(unknown, mask).initial_known
    assert (
        initial_scalar(
            shaped_column(Column(id=1, name="c", type=text(), nullable=False, initial_known=False), mask)
        ).as_py()
        == "-"
    )


def test_of_several_things_said_of_a_column_the_one_that_shows_least_counts() -> None:
    rules = Rules(
        exclude=("A",),
        mask=(("a", "x"), ("b", "x")),
        hash=(("B", Secret("s")), ("c", Secret("s"))),
        truncate=(("c", 1),),
    )

    assert ["left out", "mask 'x'", "hash", ""] == [
        rules.action(name).mark if name != "C" else rules.action(name).kind for name in ("a", "b", "C", "d")
    ]


def test_columns_that_are_not_named_are_left_out_where_some_are_wanted() -> None:
    rules = Rules(columns=("id", "Name"))

    assert ["", "", "left out"] == [rules.action(name).kind for name in ("ID", "name", "other")]


def test_no_salt_is_in_what_a_lake_keeps_of_a_hash() -> None:
    assert "pfeffer" not in f"{HASH!r} {HASH.mark}"
    assert HASH.mark != Action(kind="hash", salt=Secret("other")).mark
    assert len("hash ") + 4 == len(HASH.mark), "more digits tell which of many words the salt is"
    assert not HASH.mark.endswith(hashlib.sha256("saltpfeffer ü".encode()).hexdigest()[:4])


def test_a_hash_is_known_by_what_an_earlier_release_kept_of_it() -> None:
    former = f"hash {hashlib.sha256('saltpfeffer ü'.encode()).hexdigest()[:8]}"
    assert [True, True, False] == [HASH.has_mark(mark) for mark in (HASH.mark, former, "")]
    assert not Action(kind="hash", salt=Secret("other")).has_mark(former)
