"""The yardstick itself: what differs from the notes is found, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from historian.changelog.operations import Op
from historian.names import TableName
from workload.checks import DecodedRow, assert_as_noted
from workload.folding import assert_notes_fold_to_final
from workload.notes import (
    Effect,
    FinalTable,
    NotedChange,
    NotedDdl,
    NotedTransaction,
    Recorded,
    Row,
    expected_rows,
)

OLD, NEW = TableName("shop", "t"), TableName("shop", "u")


def change(table: TableName, before: Row | None, after: Row | None) -> NotedChange:
    return NotedChange(table=table, before=before, after=after, key=("id",))


def ddl(gtid: str, *effects: Effect, vanished: Sequence[NotedChange] = ()) -> NotedTransaction:
    noted = NotedDdl(kind="", sql=f"-- on t, {gtid}", effects=effects, vanished=tuple(vanished))
    return NotedTransaction(gtid=gtid, ddl=noted)


TRANSACTIONS = (
    ddl("g:1", Effect(old=None, new=OLD)),
    NotedTransaction(
        gtid="g:2", changes=(change(OLD, None, {"id": 1, "v": "a"}), change(OLD, None, {"id": 2, "v": "a"}))
    ),
    ddl("g:3", Effect(old=OLD, new=NEW)),
    NotedTransaction(
        gtid="g:4",
        changes=(
            change(NEW, {"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
            change(NEW, {"id": 2, "v": "a"}, {"id": 3, "v": "a"}),
        ),
    ),
    NotedTransaction(gtid="g:5", changes=(change(NEW, {"id": 1, "v": "b"}, None),)),
)
RECORDED = Recorded(
    seed=7,
    flavor="mysql",
    transactions=TRANSACTIONS,
    final={NEW: FinalTable(lineage=1, key=("id",), rows=({"id": 3, "v": "a"},))},
    discarded={},
)


def decoded() -> list[DecodedRow]:
    """What a reader without fault gives."""
    return [
        DecodedRow(gtid=row.gtid, ordinal=at, table_id=40, table=row.table, op=row.op, values=row.values)
        for at, row in enumerate(expected_rows(RECORDED))
    ]


def test_updates_are_corrections_and_key_changes_a_retraction_and_an_append() -> None:
    assert [(row.gtid, row.lineage, row.table.table, row.op.sign) for row in expected_rows(RECORDED)] == [
        ("g:2", 1, "t", "+A"),
        ("g:2", 1, "t", "+A"),
        ("g:4", 1, "u", "-C"),
        ("g:4", 1, "u", "+C"),
        ("g:4", 1, "u", "-R"),
        ("g:4", 1, "u", "+A"),
        ("g:5", 1, "u", "-R"),
    ]


def test_rows_that_a_statement_took_are_listed_when_asked_for() -> None:
    gone = (change(NEW, {"id": 3, "v": "a"}, None),)
    recorded = replace(RECORDED, transactions=(*TRANSACTIONS, ddl("g:6", Effect(old=NEW, new=None), vanished=gone)))
    assert expected_rows(recorded) == expected_rows(RECORDED)
    last = expected_rows(recorded, vanished=True)[-1]
    assert (last.gtid, last.lineage, last.op, last.values) == ("g:6", 1, Op.RETRACT, {"id": 3, "v": "a"})


def test_a_lineage_survives_a_rename() -> None:
    assert RECORDED.lineages() == {1: (OLD, NEW)}


def test_the_same_rows_are_as_noted() -> None:
    assert_as_noted(RECORDED, decoded())


FAULTS: dict[str, tuple[Callable[[list[DecodedRow]], list[DecodedRow]], str]] = {
    "a value": (lambda rows: [replace(rows[0], values={"id": 1, "v": "x"}), *rows[1:]], "v: noted 'a', decoded 'x'"),
    "a name": (
        lambda rows: [replace(rows[0], values={"id": 1, "w": "a"}), *rows[1:]],
        r"v: noted 'a', decoded '\(no such",
    ),
    "an operation": (lambda rows: [*rows[:2], replace(rows[2], op=Op.RETRACT), *rows[3:]], "decoded shop.u -R"),
    "a table's name": (lambda rows: [replace(rows[0], table=NEW), *rows[1:]], "decoded shop.u"),
    "a table id": (lambda rows: [*rows[:2], replace(rows[2], table_id=41), *rows[3:]], r"\(table id 41\)"),
    "a missing row": (lambda rows: rows[:1] + rows[2:], "2 rows noted, 1 decoded; the first only noted"),
    "a row twice": (lambda rows: [*rows, rows[-1]], "1 rows noted, 2 decoded; the first only decoded"),
    "a missing transaction": (lambda rows: rows[:-1], "g:5: 1 rows noted, 0 decoded"),
    "a surplus transaction": (lambda rows: [*rows, replace(rows[-1], gtid="g:9")], "1 transactions more than noted"),
    "order in a transaction": (
        lambda rows: [replace(rows[0], ordinal=9), *rows[1:]],
        "g:2, row 0",
    ),
    "order of transactions": (lambda rows: [*rows[2:], *rows[:2]], "expected of g:2, found of g:4"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    make, said = FAULTS[fault]
    with pytest.raises(AssertionError, match=said):
        assert_as_noted(RECORDED, make(decoded()))


def test_notes_that_fold_to_what_the_server_holds_pass() -> None:
    assert_notes_fold_to_final(RECORDED)


@pytest.mark.parametrize(
    "rows",
    [(), ({"id": 2, "v": "a"},), ({"id": 3, "v": "b"},), ({"id": 3, "v": "a"}, {"id": 4, "v": "a"})],
    ids=["a row less", "another key", "another value", "a row more"],
)
def test_notes_that_do_not_fold_to_what_the_server_holds_fail(rows: tuple[Row, ...]) -> None:
    recorded = replace(RECORDED, final={NEW: FinalTable(lineage=1, key=("id",), rows=rows)})
    with pytest.raises(AssertionError, match=r"shop\.u"):
        assert_notes_fold_to_final(recorded)
