from __future__ import annotations

from historian.codec import dump, load
from historian.plans.plans import TableCopy
from historian.plans.row_values import RowValues


def test_a_copy_that_was_stored_without_values_is_one_of_all_rows() -> None:
    text = '{"key":[1],"behind":null,"upto":null,"is_done":true,"rows":3,"repairs":"a test","estimate":0,"clears":null}'

    assert load(TableCopy, text) == TableCopy(key=(1,), is_done=True, rows=3, repairs="a test")


def test_values_survive_their_stored_form_with_their_types() -> None:
    only = (RowValues(columns=(3, 2), values=((2**64 - 1, "6100"), (-1, "1.50")), nulls=True),)
    copy = TableCopy(key=(1,), is_done=True, repairs="a test", only=only)

    assert copy == load(TableCopy, dump(TableCopy, copy))
