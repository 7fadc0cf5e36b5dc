"""Edits: each applied, refused where it does not fit, and the same after a round trip through JSON."""

from __future__ import annotations

import pickle
from dataclasses import replace
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian import codec
from historian.errors import EditConflict
from historian.schema.applying import apply, apply_all
from historian.schema.edits import (
    AddColumn,
    AddUniqueKey,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropTable,
    DropUniqueKey,
    Edit,
    ForgetTable,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetDatabase,
    SetForeignKeys,
    SetOtherKeys,
    SetPrimaryKey,
    SetSystemVersioning,
    SetTableCharset,
    TruncateTable,
)
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Catalog, Column, Database, ForeignKey, Snapshot, UniqueKey
from models.timelines import BIGINT, INT, create, position, random_edits, snapshot, table

T = table("t")
NEW = Column(id=7, name="n", type=INT)
KEYED = replace(
    snapshot(1, "t", "a", "b", "c", key=(1, 2)),
    unique_keys=(UniqueKey(name="u", columns=(3,)), UniqueKey(name="v", columns=(3, 2))),
)
CATALOG = apply_all((CreateTable(snapshot=KEYED), create(2, "other", "x", first=4)), Catalog())
ENTIRE: tuple[Edit, ...] = (
    SetDatabase(database=Database(name="shop", charset="latin1", collation="latin1_swedish_ci")),
    DropDatabase(name="shop"),
    create(3, "new", "a", first=9),
    DropTable(table=T, table_id=1),
    TruncateTable(table=T, table_id=1),
    RenameTable(table=T, table_id=1, new=table("z")),
    ForgetTable(table=T, reason="odd"),
    ResumeTable(table=T, snapshot=replace(KEYED, columns=KEYED.columns[:2]), unknown_since=position(), reason="healed"),
    SkipLog(start=position(), reason="purged"),
    AddColumn(table=T, column=NEW, after=0),
    DropColumn(table=T, column_id=2, name="b"),
    RenameColumn(table=T, column_id=2, old="b", new="z"),
    ChangeType(table=T, column_id=2, old=INT, new=BIGINT),
    ChangeAttributes(table=T, column=Column(id=2, name="b", type=INT, default="1")),
    MoveColumn(table=T, column_id=3, after=1),
    SetPrimaryKey(table=T, columns=(3,)),
    AddUniqueKey(table=T, key=UniqueKey(name="w", columns=(1,))),
    DropUniqueKey(table=T, name="u"),
    SetOtherKeys(table=T, keys=(UniqueKey(name="i", columns=(1,)),)),
    SetSystemVersioning(table=T, system_versioned=True),
    SetForeignKeys(
        table=T,
        keys=(ForeignKey(name="f", parent=table("other"), columns=(2,), referenced=("x",), on_delete="cascade"),),
    ),
    SetTableCharset(table=T, charset="latin1", collation="latin1_bin"),
)


def after(*edits: Edit) -> Snapshot:
    return apply_all(edits, CATALOG).tables[T]


def names(of: Snapshot) -> list[str]:
    return [column.name for column in of.columns]


def test_the_list_of_edits_is_whole() -> None:
    assert set(get_args(get_args(Edit)[0])) == {type(edit) for edit in ENTIRE}


@pytest.mark.parametrize("edit", ENTIRE, ids=lambda edit: edit.kind)
def test_edit_travels_as_json_and_pickle(edit: Edit) -> None:
    (again,) = codec.load(tuple[Edit, ...], codec.dump(tuple[Edit, ...], (edit,)))  # type: ignore[arg-type]

    assert (type(edit), edit) == (type(again), again)
    assert edit == pickle.loads(pickle.dumps(edit))


@pytest.mark.parametrize("edit", ENTIRE, ids=lambda edit: edit.kind)
def test_applying_leaves_the_catalog_that_it_is_applied_to(edit: Edit) -> None:
    before = codec.dump(Snapshot, CATALOG.tables[T])

    apply(edit, CATALOG)

    assert (before, 2) == (codec.dump(Snapshot, CATALOG.tables[T]), len(CATALOG.tables))


def test_columns_are_added_first_behind_another_and_last() -> None:
    assert [["n", "a", "b", "c"], ["a", "n", "b", "c"], ["a", "b", "c", "n"]] == [
        names(after(AddColumn(table=T, column=NEW, after=behind))) for behind in (0, 1, 3)
    ]


def test_columns_move() -> None:
    assert [["c", "a", "b"], ["a", "c", "b"], ["a", "b", "c"]] == [
        names(after(MoveColumn(table=T, column_id=3, after=behind))) for behind in (0, 1, 2)
    ]


def test_a_dropped_column_leaves_its_keys_and_empty_keys_go() -> None:
    dropped = after(DropColumn(table=T, column_id=3, name="c"))

    assert ((1, 2), (UniqueKey(name="v", columns=(2,)),)) == (dropped.primary_key, dropped.unique_keys)
    assert (2,) == after(DropColumn(table=T, column_id=1, name="a")).primary_key


def test_a_renamed_column_keeps_its_id_and_place() -> None:
    renamed = after(RenameColumn(table=T, column_id=2, old="b", new="z"))

    assert [(1, "a"), (2, "z"), (3, "c")] == [(column.id, column.name) for column in renamed.columns]


def test_a_renamed_table_keeps_its_id() -> None:
    catalog = apply(RenameTable(table=T, table_id=1, new=table("z")), CATALOG)

    assert (None, replace(KEYED, name=table("z"))) == (catalog.tables.get(T), catalog.tables[table("z")])


def test_ids_are_not_given_twice() -> None:
    catalog = apply_all((AddColumn(table=T, column=NEW, after=0), DropTable(table=T, table_id=1)), CATALOG)

    assert (3, 8) == (catalog.next_table_id, catalog.next_column_id)
    assert 8 == apply(DropTable(table=table("other"), table_id=2), catalog).next_column_id


def test_a_forgotten_table_is_unknown_until_it_is_created_again() -> None:
    forgotten = apply(ForgetTable(table=T, reason="odd"), CATALOG)

    assert ({T: "odd"}, False) == (forgotten.unknown, T in forgotten.tables)
    assert {} == apply(CreateTable(snapshot=KEYED), forgotten).unknown


@pytest.mark.parametrize(
    "edit,what",
    [
        (create(3, "t", "a"), "CREATE of a table that exists"),
        (DropTable(table=table("none"), table_id=1), "DROP of another table"),
        (DropTable(table=T, table_id=9), "DROP of another table"),
        (TruncateTable(table=T, table_id=9), "TRUNCATE of another table"),
        (RenameTable(table=T, table_id=9, new=table("z")), "RENAME of another table"),
        (RenameTable(table=T, table_id=1, new=table("other")), "RENAME to a name that is taken"),
        (AddColumn(table=table("none"), column=NEW, after=0), "AddColumn on a table that is not there"),
        (AddColumn(table=T, column=replace(NEW, name="A"), after=0), "ADD of a column that exists"),
        (AddColumn(table=T, column=NEW, after=9), "no column to stand behind"),
        (DropColumn(table=T, column_id=9, name="z"), "no such column"),
        (RenameColumn(table=T, column_id=9, old="z", new="y"), "no such column"),
        (ChangeType(table=T, column_id=2, old=BIGINT, new=INT), "change of a type that the column does not have"),
        (ChangeAttributes(table=T, column=NEW), "no such column"),
        (MoveColumn(table=T, column_id=2, after=2), "no column to stand behind"),
        (SetPrimaryKey(table=T, columns=(9,)), "no such column"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit, what: str) -> None:
    with pytest.raises(EditConflict, match=what):
        apply(edit, CATALOG)


def test_what_is_no_edit_is_refused() -> None:
    with pytest.raises(TypeError, match="not an edit"):
        apply("DROP TABLE t", CATALOG)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 25))
def test_edits_read_back_from_json_give_the_same_catalog(seed: int, steps: int) -> None:
    random, catalog = Random(seed), Catalog()
    done: list[Edit] = []
    for _ in range(steps):
        edits = random_edits(random, catalog)
        catalog = apply_all(edits, catalog)
        done += edits

    again = codec.load(tuple[Edit, ...], codec.dump(tuple[Edit, ...], tuple(done)))  # type: ignore[arg-type]

    assert tuple(done) == again
    assert catalog == apply_all(again, Catalog())
    ids = [column.id for held in catalog.tables.values() for column in held.columns]
    assert len(ids) == len(set(ids))


def test_a_resumed_table_comes_back_under_its_id_whatever_it_was_called() -> None:
    forgotten = apply_all((ForgetTable(table=T, reason="odd"),), CATALOG)
    back = replace(KEYED, columns=(*KEYED.columns, replace(NEW, id=40)))
    resumed = apply(ResumeTable(table=T, snapshot=back, unknown_since=None, reason=""), forgotten)
    moved = apply(
        ResumeTable(table=T, snapshot=replace(KEYED, name=table("z")), unknown_since=None, reason=""), CATALOG
    )

    assert (back, {}, 41) == (resumed.tables[T], resumed.unknown, resumed.next_column_id)
    assert {table("z"), table("other")} == set(moved.tables)
    with pytest.raises(EditConflict, match="taken"):
        apply(
            ResumeTable(table=T, snapshot=replace(KEYED, name=table("other")), unknown_since=None, reason=""), CATALOG
        )
