"""A reader that planned with one schema version and meets another is told so by comparing numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from historian import codec
from historian.errors import PlanOutdated
from historian.history.history import History
from historian.plans.plans import LogRange, PartitionRange, Passage, Plan, PlannedTable, PlannedVersion, version_in
from historian.plans.segments import planned_tables
from historian.schema.edits import AddColumn
from historian.schema.snapshots import Column
from models.timelines import INT, capture, create, statement, table

ADD = AddColumn(table=table("t"), column=Column(id=2, name="b", type=INT), after=1)


def planned(number: int) -> PlannedVersion:
    return PlannedVersion(version=number, place=None, edits=(), snapshot=None, segment=0)


def test_a_planned_version_is_found_by_table_and_number() -> None:
    tables = [
        PlannedTable(table_id=1, versions=(planned(1), planned(4))),
        PlannedTable(table_id=2, versions=(planned(2),)),
    ]

    assert [planned(4), planned(2)] == [version_in(tables, 1, 4), version_in(tables, 2, 2)]


@pytest.mark.parametrize("table_id,number", [(1, 2), (1, 5), (2, 1), (3, 1)])
def test_another_version_says_to_plan_anew(table_id: int, number: int) -> None:
    tables = [
        PlannedTable(table_id=1, versions=(planned(1), planned(4))),
        PlannedTable(table_id=2, versions=(planned(2),)),
    ]

    with pytest.raises(
        PlanOutdated, match=rf"table id {table_id}.*found {number}\. Next: make the plan again"
    ) as caught:
        version_in(tables, table_id, number)

    assert caught.value.retryable


def test_a_new_plan_holds_the_version_that_the_old_one_lacked() -> None:
    history = History.of([capture(create(1, "t", "a")), capture(create(2, "other", "a", first=5), number=2)])
    before = planned_tables(history, base=2, last=2, captured=lambda _: True, touched={1}, quarantines={})

    history.record(statement(3, "s:1", ADD))

    with pytest.raises(PlanOutdated):
        version_in(before, 1, 3)
    after = planned_tables(history, base=2, last=3, captured=lambda _: True, touched={1}, quarantines={})
    assert ("a", "b") == tuple(column.name for column in version_in(after, 1, 3).snapshot.columns)  # type: ignore[union-attr]


STORED_TODAY = (
    '{"number":3,"previous":2,"connector":"c","start":{"flavor":"mysql","gtids":"","file":"b.1","offset":4,"server":"s",'
    '"pending":[],"temporary":[]},"end":{"flavor":"mysql","gtids":"","file":"b.1","offset":90,"server":"s","pending":[],'
    '"temporary":[]},"ranges":[{"file":"b.1","start":4,"end":90,"server":"s","after":"","upto":"","rolled_back":[],'
    '"prepared":[]}],"tables":[],"version":1,"system_time_us":5,"revision":"r","captured":"","format":1}'
)
"""A plan as the release before topics wrote it."""


def test_a_stored_plan_of_a_binlog_reads_as_ever_and_keeps_its_bytes() -> None:
    plan = codec.load(Plan, STORED_TODAY)

    assert (LogRange(file="b.1", start=4, end=90, server="s"),) == plan.ranges
    assert STORED_TODAY == codec.dump(Plan, plan)


def test_a_plan_of_topics_keeps_its_ranges() -> None:
    part = PartitionRange(
        topic="t", partition=1, start=4, end=9, bytes_read=70, passages=(Passage(table_id=1, version=2, offset=4),)
    )
    plan = replace(codec.load(Plan, STORED_TODAY), ranges=(part,))

    assert plan == codec.load(Plan, codec.dump(Plan, plan))
    assert ("t:1", 70) == (part.file, part.size_bytes)
