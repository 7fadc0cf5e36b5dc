"""Which versions a plan needs, where its segments are cut, and which type changes keep values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.plans.plans import PlannedTable, Quarantine
from historian.plans.segments import planned_tables, retracts
from historian.positions.places import Place
from historian.schema.edits import (
    AddColumn,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    DropTable,
    Edit,
    ForgetTable,
    RenameColumn,
    RenameTable,
    SetPrimaryKey,
    TruncateTable,
)
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Column, ColumnType
from models.timelines import BIGINT, FILE, INT, A, capture, create, position, statement, table

T = table("t")
TRUNCATE = TruncateTable(table=T, table_id=1)
DROP = DropTable(table=T, table_id=1)
ADD = AddColumn(table=T, column=Column(id=9, name="n", type=INT, initial="5"), after=0)


def plan(
    *entries: TimelineEntry,
    base: int = 1,
    touched: tuple[int, ...] = (),
    quarantines: Mapping[int, Quarantine] | None = None,
    uncaptured: tuple[str, ...] = ("hidden",),
    start_offset: int = 1100,
) -> tuple[PlannedTable, ...]:
    history = History.of(entries, resolved=position(f"{A}:1-99", 99_000))
    return planned_tables(
        history,
        base=base,
        last=history.last_number,
        captured=lambda name: name.table not in uncaptured,
        touched=touched,
        quarantines=quarantines or {},
        start=position("", start_offset),
    )


def shape(planned: PlannedTable) -> list[tuple[int, int, bool]]:
    """Version, segment, and whether the table is there."""
    return [(v.version, v.segment, v.snapshot is not None) for v in planned.versions]


def ddl(number: int, *edits: Edit) -> TimelineEntry:
    return statement(number, f"{A}:{number}", *edits)


START = capture(create(1, "t", "a", "b", key=(1,)), create(2, "u", "c", first=3))


def test_only_tables_with_rows_or_edits_are_planned() -> None:
    assert [1] == [planned.table_id for planned in plan(START, touched=(1,))]
    assert [2] == [planned.table_id for planned in plan(START, ddl(2, TruncateTable(table=table("u"), table_id=2)))]
    assert () == plan(START)


def test_the_version_in_force_at_the_start_has_no_place_and_no_edits() -> None:
    (planned,) = plan(START, ddl(2, ADD), base=2, touched=(1,))

    (version,) = planned.versions
    assert (2, None, (), 0) == (version.version, version.place, version.edits, version.segment)


def test_a_version_inside_the_plan_carries_its_place_edits_and_statement() -> None:
    (planned,) = plan(START, ddl(2, ADD))

    assert [(1, 0, True), (2, 0, True)] == shape(planned)
    version = planned.versions[1]
    assert ((ADD,), f"{A}:2", "statement 2", 2_000_000) == (
        version.edits,
        version.place.gtid if version.place else None,
        version.statement,
        version.event_time_us,
    )


@pytest.mark.parametrize(
    "edit,cut",
    [
        (ADD, 0),
        (replace(ADD, column=replace(ADD.column, initial=None, initial_known=False)), 1),
        (DropColumn(table=T, column_id=2, name="b"), 0),
        (DropColumn(table=T, column_id=1, name="a"), 1),
        (RenameColumn(table=T, column_id=1, old="a", new="z"), 0),
        (ChangeType(table=T, column_id=2, old=INT, new=BIGINT), 0),
        (ChangeType(table=T, column_id=2, old=INT, new=ColumnType(name="smallint")), 1),
        (SetPrimaryKey(table=T, columns=(1,)), 0),
        (SetPrimaryKey(table=T, columns=(1, 2)), 1),
        (SetPrimaryKey(table=T, columns=()), 1),
        (ChangeAttributes(table=T, column=Column(id=2, name="b", type=INT, default="7")), 0),
        (
            ChangeAttributes(
                table=T, column=Column(id=2, name="b", type=INT, generated="stored", generation_expression="a+1")
            ),
            1,
        ),
        (TRUNCATE, 1),
        (RenameTable(table=T, table_id=1, new=table("v")), 0),
    ],
)
def test_segments_are_cut_where_rows_cannot_be_carried_across(edit: Edit, cut: int) -> None:
    (planned,) = plan(START, ddl(2, edit))

    assert [(1, 0, True), (2, cut, True)] == shape(planned)


@pytest.mark.parametrize("file, cut", [(FILE, 0), ("topic:0", 1)])
def test_a_rename_cuts_where_rows_under_each_name_stand_in_partitions_of_their_own(file: str, cut: int) -> None:
    renamed = ddl(2, RenameTable(table=T, table_id=1, new=table("named")))
    assert renamed.place is not None
    (planned,) = plan(START, replace(renamed, place=replace(renamed.place, file=file)), touched=(1,))
    assert [(1, 0, True), (2, cut, True)] == shape(planned)


def test_truncate_makes_a_version_of_the_same_snapshot_in_a_new_segment() -> None:
    (planned,) = plan(START, ddl(2, TRUNCATE), ddl(3, ADD), ddl(4, TRUNCATE))

    assert [(1, 0, True), (2, 1, True), (3, 1, True), (4, 2, True)] == shape(planned)
    assert planned.versions[0].snapshot == planned.versions[1].snapshot


def test_drop_ends_the_table_in_a_segment_of_its_own() -> None:
    (planned,) = plan(START, ddl(2, ADD), ddl(3, DROP))

    assert [(1, 0, True), (2, 0, True), (3, 1, False)] == shape(planned)
    assert ((DROP,), None) == (planned.versions[-1].edits, planned.quarantine)


def test_a_table_created_again_is_another_table() -> None:
    first, second = plan(START, ddl(2, DROP), ddl(3, create(3, "t", "a", first=10)))

    assert [(1, [(1, 0, True), (2, 1, False)]), (3, [(3, 0, True)])] == [
        (planned.table_id, shape(planned)) for planned in (first, second)
    ]


def test_a_table_renamed_out_of_the_filter_stops_there() -> None:
    (planned,) = plan(START, ddl(2, ADD), ddl(3, RenameTable(table=T, table_id=1, new=table("hidden"))), ddl(4))

    assert [(1, 0, True), (2, 0, True)] == shape(planned)
    assert (f"{A}:3", "renamed to shop.hidden, which is not captured") == (
        planned.quarantine and planned.quarantine.place.gtid,
        planned.quarantine and planned.quarantine.reason,
    )


def test_a_table_renamed_into_the_filter_starts_as_new() -> None:
    rename = RenameTable(table=table("hidden"), table_id=1, new=T)
    (planned,) = plan(capture(create(1, "hidden", "a")), ddl(2, rename), touched=(1,))

    assert [(2, 0, True)] == shape(planned)
    (version,) = planned.versions
    assert (CreateTable(snapshot=version.snapshot),) == version.edits  # type: ignore[arg-type]
    assert (T, None) == (version.snapshot and version.snapshot.name, planned.quarantine)


def test_a_table_that_left_the_filter_and_comes_back_is_stopped() -> None:
    out = RenameTable(table=T, table_id=1, new=table("hidden"))
    back = RenameTable(table=table("hidden"), table_id=1, new=T)
    (planned,) = plan(START, ddl(2, out), ddl(3, back), base=2)

    assert [(3, 0, True)] == shape(planned)
    assert planned.quarantine is not None
    assert (planned.versions[0].place, True) == (
        planned.quarantine.place,
        "captured again" in planned.quarantine.reason,
    )


def test_a_table_that_left_the_filter_and_came_back_stays_stopped() -> None:
    out = RenameTable(table=T, table_id=1, new=table("hidden"))
    back = RenameTable(table=table("hidden"), table_id=1, new=T)
    stops: dict[int, Quarantine] = {}
    found = []
    for base in (1, 2, 3):
        entries = (START, ddl(2, out), ddl(3, back))[: base + 1]
        planned = plan(*entries, base=base, touched=(1,), quarantines=stops, start_offset=1000 * base + 500)
        found.append([shape(t) for t in planned])
        stops |= {t.table_id: t.quarantine for t in planned if t.quarantine is not None}

    assert [[[(1, 0, True)]], [], []] == found


def test_rows_of_a_table_that_is_not_captured_are_not_planned() -> None:
    assert () == plan(capture(create(1, "hidden", "a")), touched=(1,))


def test_a_swap_with_an_uncaptured_table_stops_one_and_starts_the_other() -> None:
    swap = (
        RenameTable(table=T, table_id=1, new=table("spare")),
        RenameTable(table=table("hidden"), table_id=2, new=T),
        RenameTable(table=table("spare"), table_id=1, new=table("hidden")),
    )
    stopped, started = plan(
        capture(create(1, "t", "a"), create(2, "hidden", "b", first=2)), ddl(2, *swap), uncaptured=("hidden", "spare")
    )

    assert [(1, [(1, 0, True)], True), (2, [(2, 0, True)], False)] == [
        (planned.table_id, shape(planned), planned.quarantine is not None) for planned in (stopped, started)
    ]


def test_a_statement_not_understood_stops_its_table_with_the_reason() -> None:
    (planned,) = plan(START, ddl(2, ForgetTable(table=T, reason="ALTER t FROBNICATE")), touched=(1,))

    assert ([(1, 0, True)], "ALTER t FROBNICATE") == (shape(planned), planned.quarantine and planned.quarantine.reason)


def test_versions_behind_a_quarantine_are_left_out() -> None:
    stop = Quarantine(place=Place(gtid=f"{A}:3", file=FILE, offset=2500, ordinal=2), reason="does not fit")
    (planned,) = plan(START, ddl(2, ADD), ddl(3, TRUNCATE), quarantines={1: stop})

    assert ([(1, 0, True), (2, 0, True)], stop) == (shape(planned), planned.quarantine)


def test_a_table_stopped_before_the_plan_is_not_planned() -> None:
    stop = Quarantine(place=Place(gtid="", file=FILE, offset=1050, ordinal=2), reason="does not fit")

    assert () == plan(START, ddl(2, ADD), touched=(1,), quarantines={1: stop})


def test_a_capture_inside_the_plan_begins_behind_its_position() -> None:
    heal = capture(create(1, "t", "a", "b", "c"), at=position(f"{A}:1-3", 3000), number=3)
    (planned,) = plan(START, ddl(2, ForgetTable(table=T, reason="odd")), heal, base=2, touched=(1,))

    (version,) = planned.versions
    assert Place(gtid="", file=FILE, offset=3000, ordinal=0) == version.place


def test_truncate_and_drop_take_rows_back() -> None:
    assert [True, True, False] == [retracts(edit) for edit in (TRUNCATE, DROP, ADD)]


def _resume(number: int, *, since: bool = True) -> TimelineEntry:
    snapshot = create(1, "t", "a", "b", key=(1,)).snapshot
    edit = ResumeTable(table=T, snapshot=snapshot, unknown_since=position(), loses_rows=since, reason="")
    return replace(ddl(number, edit))


def test_a_table_goes_on_behind_a_gap_in_a_new_segment_whatever_stopped_it() -> None:
    (misfit,) = plan(START, _resume(2))
    (unknown,) = plan(START, ddl(2, ForgetTable(table=T, reason="odd")), _resume(3), base=2)
    (explained,) = plan(START, ddl(2, ForgetTable(table=T, reason="odd")), _resume(3, since=False), base=2)

    assert [(1, 0, True), (2, 1, True)] == shape(misfit)
    assert [(1, 0, True), (3, 1, True)] == shape(unknown)
    assert [(1, 0, True), (3, 0, True)] == shape(explained)
    assert (None, None, None) == (misfit.quarantine, unknown.quarantine, explained.quarantine)


def test_a_table_that_is_put_aside_for_a_moment_is_still_captured() -> None:
    aside = RenameTable(table=T, table_id=1, new=table("hidden"))
    back = RenameTable(table=table("hidden"), table_id=1, new=T)
    history = History.of((START, ddl(2, aside), ddl(3, back)), resolved=position(f"{A}:1-99", 99_000))
    for base in (1, 2):
        (planned,) = planned_tables(
            history,
            base=base,
            last=3,
            captured=lambda name: name.table != "hidden",
            touched=(),
            quarantines={},
            sets_aside=lambda name, new: (name, new) == (T, table("hidden")),
        )
        assert (None, 3) == (planned.quarantine, planned.versions[-1].version)
    (stopped,) = plan(START, ddl(2, aside), ddl(3, back))
    assert stopped.quarantine is not None
