"""Versions made of the schemas of messages, and partitions that pass to them, each at its own offset."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.readers.base import SchemaMet
from connectors.tracking.topics.edits import edits_to, fits
from connectors.tracking.topics.met_schemas import MetSchemas
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.plans import PartitionRange, Passage, PlannedTable, PlannedVersion
from historian.positions import KAFKA, LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Column, ColumnType

TABLE = TableName("shop", "t")
kinds = st.sampled_from([ColumnType(name="int"), ColumnType(name="bigint"), ColumnType(name="longtext")])
columns = st.lists(
    st.builds(Column, id=st.just(0), name=st.sampled_from("abcdef"), type=kinds, nullable=st.booleans()),
    min_size=1,
    max_size=6,
    unique_by=lambda column: column.name,
)


def met(
    given_columns: list[Column],
    key: tuple[str, ...] = (),
    place: str = "t:0:0",
    at_us: int = 0,
    *,
    is_of_its_time: bool = True,
    transaction: tuple[int, int] | None = None,
) -> SchemaMet:
    file, _, offset = place.rpartition(":")
    return SchemaMet(
        place=Place(gtid=place, file=file, offset=int(offset), ordinal=0),
        table=TABLE,
        columns=tuple(given_columns),
        key=key,
        event_time_us=at_us,
        is_of_its_time=is_of_its_time,
        transaction=transaction,
    )


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(columns, st.integers(0, 2)), min_size=1, max_size=6))
def test_edits_lead_from_any_schema_to_any_other_and_names_keep_their_ids(
    steps: list[tuple[list[Column], int]],
) -> None:
    catalog, given_ids = Catalog(), set[int]()
    for step, keys in steps:
        wanted = met(step, tuple(column.name for column in step[:keys]))
        before = catalog.tables.get(TABLE)

        edits = edits_to(wanted, catalog)
        catalog = apply_all(edits, catalog)

        after = catalog.tables[TABLE]
        assert fits(after, wanted)
        assert () == edits_to(wanted, catalog)
        for column in after.columns:
            held = None if before is None else before.column(column.name)
            assert (column.id == held.id) if held is not None else (column.id not in given_ids)
        given_ids |= {column.id for column in after.columns}


A, AB, AC = ([Column(id=0, name=name, type=ColumnType(name="int")) for name in names] for names in ("a", "ab", "ac"))


class Walked:
    """A walk over schemas that are met, as the tracker makes it."""

    def __init__(self, history: History, held: dict[tuple[str, int], tuple[Passage, ...]]) -> None:
        self.history, self.schemas = history, MetSchemas(history, held)
        self.catalog = history.catalog
        self.made: list[int] = []

    def take(self, *schemas: SchemaMet) -> Walked:
        for each in schemas:
            latest = self.catalog.tables.get(TABLE)
            if latest is None or not self.schemas.passes(each, latest):
                number = self.history.last_number + 1
                entry = TimelineEntry(
                    number=number,
                    place=each.place,
                    position=LogPosition(flavor=KAFKA, gtids="", file="", offset=0),
                    edits=edits_to(each, self.catalog),
                    statement="",
                    database="",
                    event_time_us=each.event_time_us,
                    server="",
                    transaction=each.transaction,
                )
                self.history.record(entry)
                self.catalog = self.history.catalog
                self.schemas.began(each, number, self.catalog.tables[TABLE])
                self.made.append(number)
        return self

    def passages(self, planned: set[int]) -> list[tuple[str, int, int, tuple[str, ...] | None]]:
        parts = tuple(PartitionRange(topic="t", partition=n, start=0, end=99, bytes_read=1) for n in (0, 1))
        versions = tuple(
            PlannedVersion(version=n, place=None, edits=(), snapshot=None, segment=0) for n in sorted(planned)
        )
        table = PlannedTable(table_id=1, versions=versions)
        return [
            (part.file, each.offset, each.version, each.snapshot and tuple(c.name for c in each.snapshot.columns))
            for part in self.schemas.ranges(parts, (table,))
            for each in part.passages
        ]

    def held(self) -> dict[tuple[str, int], tuple[Passage, ...]]:
        found: dict[tuple[str, int], tuple[Passage, ...]] = {}
        for file, offset, version, _ in self.passages(set(range(9))):
            found[file, 1] = (*found.get((file, 1), ()), Passage(table_id=1, version=version, offset=offset))
        return found


def begun() -> History:
    origin = TimelineEntry(
        number=1,
        place=None,
        position=LogPosition(flavor=KAFKA, gtids="", file="", offset=0),
        edits=(),
        statement="",
        database="",
        event_time_us=0,
        server="",
    )
    return History.of([origin])


def test_each_partition_passes_at_its_own_offset_to_versions_made_once() -> None:
    walked = Walked(begun(), {}).take(
        met(A, place="t:0:0", at_us=1),
        met(A, place="t:1:0", at_us=2),
        met(AB, place="t:0:7", at_us=3),
        met(AB, place="t:1:4", at_us=4),
    )

    assert [2, 3] == walked.made
    assert [("t:0", 0, 2, None), ("t:0", 7, 3, None), ("t:1", 0, 2, None), ("t:1", 4, 3, None)] == walked.passages(
        {2, 3}
    )


def test_a_partition_that_lags_goes_step_by_step_and_comes_with_its_schema() -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(A, place="t:0:0", at_us=1), met(AB, place="t:0:7", at_us=3), met(A, place="t:0:9", at_us=5)
    )
    assert [2, 3, 4] == ahead.made

    later = Walked(history, ahead.held()).take(
        met(A, place="t:1:0", at_us=2), met(AB, place="t:1:3", at_us=4), met(A, place="t:1:6", at_us=6)
    )

    assert [] == later.made
    assert [("t:1", 0, 2, ("a",)), ("t:1", 3, 3, ("a", "b")), ("t:1", 6, 4, None)] == later.passages({4})


def test_a_new_partition_begins_with_the_version_of_its_time() -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(A, place="t:0:0", at_us=1), met(AB, place="t:0:7", at_us=3), met(A, place="t:0:9", at_us=5)
    )

    later = Walked(history, ahead.held()).take(met(A, place="t:1:0", at_us=7))

    assert [("t:1", 0, 4, None)] == later.passages({4})


def test_a_schema_that_the_others_skipped_makes_no_version_and_keeps_ids_by_name() -> None:
    history = begun()
    ahead = Walked(history, {}).take(met(A, place="t:0:0", at_us=1), met(AB, place="t:0:7", at_us=5))

    later = Walked(history, ahead.held()).take(met(AC, place="t:1:0", at_us=3))

    assert [] == later.made
    assert [("t:1", 0, 3, ("a",))] == later.passages({3})


def test_a_schema_that_the_others_skipped_has_the_columns_of_its_time() -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(AB, place="t:0:0", at_us=1), met(A, place="t:0:1", at_us=5), met(AB, place="t:0:2", at_us=9)
    )
    abx = [*AB, Column(id=0, name="x", type=ColumnType(name="int"))]

    later = Walked(history, ahead.held()).take(met(abx, place="t:1:0", at_us=2))

    part = PartitionRange(topic="t", partition=1, start=0, end=9, bytes_read=1)
    (read,) = later.schemas.ranges((part,), (PlannedTable(table_id=1, versions=()),))
    (passage,) = read.passages
    assert passage.snapshot is not None
    # The column b that there is now is another one.
    assert ([1, 2], [1, 3]) == tuple(
        [c.id for c in each.columns] for each in (passage.snapshot, later.catalog.tables[TABLE])
    )


def test_a_partition_that_met_no_row_without_a_column_has_it_anew_once_the_source_has() -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(AB, place="t:0:0", at_us=1), met(AB, place="t:1:0", at_us=2), met(A, place="t:0:1", at_us=5)
    )
    first = Walked(history, ahead.held()).take(met(AB, place="t:1:1", at_us=5), met(AB, place="t:1:2", at_us=8))
    held = ahead.held() | first.held()
    later = Walked(history, held).take(met(AB, place="t:0:2", at_us=9), met(AB, place="t:1:3", at_us=10))

    assert ([2, 3], [4], []) == (ahead.made, first.made, later.made)
    # At the very time of a row without the column nobody knows.
    assert [("t:1", 0, 2, ("a", "b")), ("t:1", 2, 4, None)] == first.passages({4})
    assert [("t:0", 2, 4, None), ("t:1", 2, 4, None)] == later.passages({4})


def test_what_came_again_before_others_met_it_is_the_version_that_they_met() -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(AB, place="t:0:0", at_us=1), met(A, place="t:0:1", at_us=5), met(AB, place="t:0:2", at_us=9)
    )

    later = Walked(history, ahead.held()).take(met(AB, place="t:1:0", at_us=2), met(AB, place="t:1:1", at_us=7))

    assert ([2, 3, 4], []) == (ahead.made, later.made)
    assert [("t:1", 0, 2, ("a", "b")), ("t:1", 1, 4, None)] == later.passages({4})


@pytest.mark.parametrize("is_of_its_time, columns", [(False, AB), (True, AC)], ids=["snapshot", "other_columns"])
def test_no_column_is_added_again_by_a_row_whose_time_may_be_wrong_or_that_would_drop_others(
    is_of_its_time: bool, columns: list[Column]
) -> None:
    history = begun()
    ahead = Walked(history, {}).take(met(columns, place="t:0:0", at_us=1), met(columns, place="t:1:0", at_us=2))
    behind = Walked(history, ahead.held()).take(met(A if columns is AB else AB, place="t:0:1", at_us=5))

    later = Walked(history, behind.held()).take(met(columns, place="t:1:1", at_us=8, is_of_its_time=is_of_its_time))

    assert [] == later.made


@pytest.mark.parametrize(
    "transaction, at_us, made",
    [
        ((1, 40), 8, []),
        ((1, 50), 8, []),
        ((1, 60), 8, [4]),
        ((1, 60), 4, [4]),
        ((2, 60), 8, []),
        (None, 8, [4]),
        (None, 4, []),
    ],
    ids=["before", "its_own", "behind", "dated_before", "another_server", "by_time", "before_by_time"],
)
def test_a_row_is_behind_a_dropped_column_by_its_place_in_the_log_and_by_its_time_where_none_is_told(
    transaction: tuple[int, int] | None, at_us: int, made: list[int]
) -> None:
    history = begun()
    ahead = Walked(history, {}).take(
        met(AB, place="t:0:0", at_us=1, transaction=(1, 10)),
        met(AB, place="t:1:0", at_us=2, transaction=(1, 20)),
        met(A, place="t:0:1", at_us=5, transaction=(1, 50)),
    )

    later = Walked(history, ahead.held()).take(met(AB, place="t:1:1", at_us=at_us, transaction=transaction))

    assert made == later.made
