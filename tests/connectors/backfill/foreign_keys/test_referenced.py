"""Which values rows of a parent had and got, by a chunk's rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from connectors.backfill.foreign_keys import referenced
from connectors.backfill.foreign_keys.child_keys import ChildKey, Unbounded
from connectors.backfill.foreign_keys.referenced import ReferencedValues
from historian.changelog.operations import Op
from historian.names import TableName
from historian.plans.plans import PlannedVersion
from historian.plans.row_values import RowValues
from historian.schema.snapshots import ColumnType, Snapshot

_A, _R, _FROM, _TO = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
_Row = tuple[Op, int | None, int]


@pytest.mark.parametrize(
    "chunks, old, new",
    [
        ([[(_A, 1, 0), (_A, 2, 0)]], [], []),
        ([[(_R, 1, 0), (_R, 2, 0)]], [1, 2], []),
        ([[(_FROM, 1, 0), (_TO, 1, 5)]], [], []),
        ([[(_FROM, 1, 0), (_TO, 3, 0), (_FROM, 2, 0), (_TO, 2, 1)]], [1], [3]),
        ([[(_FROM, None, 0), (_TO, 3, 0)]], [], [3]),
        ([[(_R, 1, 0), (_A, 4, 0), (_A, 5, 0), (_R, 2, 0)]], [1, 2], [4]),
        ([[(_A, 1, 0), (_R, 1, 0)], [(_A, 7, 0), (_A, 8, 0)]], [1], [7]),
        ([[(_R, 1, 0)], [], [(_A, 7, 0)]], [1], [7]),
        ([[(_R, 1, 0)], [(_R, 2, 0), (_A, 9, 0)]], [1, 2], [9]),
    ],
)
def test_values_that_rows_lost_and_got(chunks: Sequence[Sequence[_Row]], old: list[int], new: list[int]) -> None:
    values = _taken(chunks)

    assert values.is_known
    assert ([(v,) for v in old], [(v,) for v in new]) == ([*values.old], [*values.new])
    assert bool(new) == values.has_updates


def test_a_value_that_becomes_null_and_more_values_than_a_plan_takes_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not _taken([[(_FROM, 1, 0), (_TO, None, 0)]]).is_known
    monkeypatch.setattr(referenced, "MOST_VALUES", 2)
    assert _taken([[(_R, 1, 0), (_R, 2, 0)]]).is_known
    assert not _taken([[(_R, 1, 0), (_R, 2, 0)], [(_R, 3, 0)]]).is_known


def test_rows_that_more_values_may_have_moved_are_not_said_to_be_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An UPDATE behind the last value that counts is not seen."""
    monkeypatch.setattr(referenced, "MOST_VALUES", 2)
    snapshot = Snapshot(table_id=1, name=TableName("c", "p"), columns=(), primary_key=(), charset="", collation="")
    version = PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=1)
    key = ChildKey(
        columns=(9,),
        parent=1,
        others=frozenset(),
        version=version,
        referenced=((2, ColumnType(name="int")),),
        on_delete="cascade",
        on_update="cascade",
    )

    few = _taken([[(_R, 1, 0)]])
    many = _taken([[(_R, 1, 0), (_R, 2, 0), (_R, 3, 0)], [(_FROM, 5, 0), (_TO, 7, 0)]])

    assert key.moved(few) == RowValues(columns=(9,))
    with pytest.raises(Unbounded):
        key.moved(many)


def _taken(chunks: Sequence[Sequence[_Row]]) -> ReferencedValues:
    values = ReferencedValues([(2, ColumnType(name="int"))])
    for rows in chunks:
        ops, keys, others = zip(*rows, strict=True) if rows else ((), (), ())
        columns = {
            "op": pa.array(ops, pa.uint8()),
            "h2": pa.array(keys, pa.int32()),
            "h3": pa.array(others, pa.int32()),
        }
        values.take(pa.RecordBatch.from_pydict(columns))
    return values
