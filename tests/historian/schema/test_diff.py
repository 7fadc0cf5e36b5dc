"""What changed between two snapshots: each kind of change by name, and replay as the oracle of what is told."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from historian.schema.applying import apply_all
from historian.schema.diff import Difference, diff
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot, UniqueKey
from models.timelines import BIGINT, INT, random_log, snapshot, table

ABC = snapshot(1, "t", "a", "b", "c", key=(1,))


def with_column(at: int, **changed: Any) -> Snapshot:
    columns = list(ABC.columns)
    columns[at] = replace(columns[at], **changed)
    return replace(ABC, columns=tuple(columns))


def test_equal_snapshots_do_not_differ() -> None:
    assert () == diff(ABC, snapshot(1, "t", "a", "b", "c", key=(1,))) == diff(None, None)


def test_a_table_comes_and_goes() -> None:
    assert (Difference(change="created", after="shop.t"),) == diff(None, ABC)
    assert (Difference(change="dropped", before="shop.t"),) == diff(ABC, None)


def test_a_column_dropped_and_added_again_under_its_name_is_another_one() -> None:
    again = replace(ABC, columns=(*ABC.columns[:2], Column(id=9, name="c", type=BIGINT)))

    assert (
        Difference(change="dropped", column="c", before="int"),
        Difference(change="added", column="c", after="bigint"),
    ) == diff(ABC, again)


@pytest.mark.parametrize(
    "changed,change,before,after",
    [
        ({"name": "z"}, "renamed", "b", "z"),
        ({"type": BIGINT}, "type", "int", "bigint"),
        ({"nullable": False}, "nullable", True, False),
        ({"default": "7"}, "default", None, "7"),
        ({"default_is_expression": True}, "default expression", False, True),
        ({"on_update": "CURRENT_TIMESTAMP"}, "on update", None, "CURRENT_TIMESTAMP"),
        ({"auto_increment": True}, "auto increment", False, True),
        ({"generated": "stored"}, "generated", None, "stored"),
        ({"generation_expression": "a + 1"}, "generation expression", None, "a + 1"),
        ({"invisible": True}, "invisible", False, True),
        ({"type": ColumnType(name="int", charset="latin1")}, "charset", None, "latin1"),
        ({"type": ColumnType(name="int", collation="latin1_bin")}, "collation", None, "latin1_bin"),
    ],
)
def test_an_attribute_of_a_column(changed: dict[str, Any], change: str, before: Any, after: Any) -> None:
    name = changed.get("name", "b")

    assert (Difference(change=change, column=name, before=before, after=after),) == diff(ABC, with_column(1, **changed))


@pytest.mark.parametrize(
    "after,change,was,now",
    [
        (replace(ABC, name=table("u")), "renamed table", "shop.t", "shop.u"),
        (replace(ABC, columns=ABC.columns[::-1]), "order", ("a", "b", "c"), ("c", "b", "a")),
        (replace(ABC, primary_key=(2, 1)), "primary key", ("a",), ("b", "a")),
        (replace(ABC, unique_keys=(UniqueKey(name="u", columns=(3, 2)),)), "unique keys", (), ("u (c, b)",)),
        (replace(ABC, charset="latin1"), "table charset", "utf8mb4", "latin1"),
        (replace(ABC, collation="utf8mb4_bin"), "table collation", "utf8mb4_0900_ai_ci", "utf8mb4_bin"),
    ],
)
def test_the_table_itself(after: Snapshot, change: str, was: Any, now: Any) -> None:
    assert (Difference(change=change, before=was, after=now),) == diff(ABC, after)


def test_a_renamed_column_leaves_order_and_keys_as_they_were() -> None:
    keyed = replace(ABC, unique_keys=(UniqueKey(name="u", columns=(1,)),))
    renamed = replace(keyed, columns=(replace(ABC.columns[0], name="id"), *ABC.columns[1:]))

    assert (Difference(change="renamed", column="id", before="a", after="id"),) == diff(keyed, renamed)


def test_a_column_added_in_front_moves_no_other() -> None:
    added = replace(ABC, columns=(Column(id=9, name="n", type=INT), *ABC.columns))

    assert (Difference(change="added", column="n", after="int"),) == diff(ABC, added)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_nothing_is_told_where_nothing_changed_and_something_where_it_did(seed: int, transactions: int) -> None:
    log = random_log(Random(seed), transactions)
    catalog = Catalog()
    for entry in log.entries:
        before, catalog = catalog, apply_all(entry.edits, catalog)
        was = {snapshot.table_id: snapshot for snapshot in before.tables.values()}
        now = {snapshot.table_id: snapshot for snapshot in catalog.tables.values()}
        for table_id in was.keys() | now.keys():
            left, right = was.get(table_id), now.get(table_id)
            told = diff(left, right)
            assert (left == right) == (told == ())
            if left is not None and right is not None:
                kept = {c.id for c in left.columns} & {c.id for c in right.columns}
                assert [d.change for d in told].count("dropped") == len(left.columns) - len(kept)
                assert [d.change for d in told].count("added") == len(right.columns) - len(kept)
