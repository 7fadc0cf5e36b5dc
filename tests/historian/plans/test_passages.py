"""Which version a message's row has: the one that its own partition passed to last."""

from __future__ import annotations

import pytest

from historian.errors import HistorianError, PositionAhead, PositionError, PositionExpired, UnknownTable
from historian.history.history import History
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.passages import version_at
from historian.plans.plans import PartitionRange, Passage, Plan
from historian.positions import KAFKA, LogPosition, parse_position
from historian.positions.places import Place
from historian.schema.edits import AddColumn
from historian.schema.snapshots import Column
from historian.store import Store
from models.timelines import INT, create, table

BEGIN = LogPosition(flavor=KAFKA, gtids="T:0:0,T:1:0", file="", offset=0)
END = parse_position("T:0:20,T:1:20", KAFKA)
ADD = AddColumn(table=table("t"), column=Column(id=9, name="b", type=INT), after=1)


def entries() -> list[TimelineEntry]:
    def entry(number: int, offset: int | None, *edits: object) -> TimelineEntry:
        place = None if offset is None else Place(gtid=f"T:0:{offset}", file="T:0", offset=offset, ordinal=0)
        return TimelineEntry(
            number=number,
            place=place,
            position=BEGIN,
            edits=edits,  # type: ignore[arg-type]
            statement="",
            database="",
            event_time_us=number,
            server="",
        )

    return [entry(1, None), entry(2, 0, create(1, "t", "a")), entry(3, 8, ADD)]


def plan(number: int, *parts: PartitionRange) -> Plan:
    return Plan(
        number=number,
        previous=number - 1,
        connector="c",
        start=BEGIN,
        end=END,
        ranges=parts,
        tables=(),
        version=3,
        system_time_us=1,
        revision="r",
    )


def part(number: int, *passages: tuple[int, int]) -> PartitionRange:
    found = tuple(Passage(table_id=1, version=version, offset=offset) for offset, version in passages)
    return PartitionRange(topic="T", partition=number, start=0, end=20, bytes_read=1, passages=found)


@pytest.fixture
def store() -> Store:
    store = Store.open("sqlite://")
    store.record(entries(), END)
    store.append_plan(plan(1, part(0, (0, 2), (8, 3)), part(1, (5, 2))))
    store.append_plan(plan(2, part(0, (8, 3)), part(1, (5, 2), (15, 3))))
    return store


@pytest.mark.parametrize(
    "message,version",
    [("T:0:0", 2), ("T:0:7", 2), ("T:0:8", 3), ("T:0:19", 3), ("T:1:5", 2), ("T:1:14", 2), ("T:1:15", 3)],
)
def test_partitions_pass_each_at_its_own_offset(store: Store, message: str, version: int) -> None:
    found = version_at(store.history(), store.passages(), table("t"), parse_position(message, KAFKA))

    assert version == found.number


@pytest.mark.parametrize(
    "name,message,error",
    [
        ("t", "T:1:4", PositionExpired),
        ("t", "T:2:0", PositionAhead),
        ("t", "T:0:20", PositionAhead),
        ("t", "T:0:1,T:1:1", PositionError),
        ("u", "T:0:1", UnknownTable),
    ],
)
def test_an_answer_is_exact_or_refused(store: Store, name: str, message: str, error: type[HistorianError]) -> None:
    with pytest.raises(error):
        version_at(store.history(), store.passages(), TableName("shop", name), parse_position(message, KAFKA))


def test_a_store_that_is_rebuilt_from_plans_knows_passages(store: Store) -> None:
    fresh = Store.open("sqlite://")

    fresh.restore("shop", "c", store.entries(), store.plans())

    assert store.passages() == fresh.passages()
    assert isinstance(fresh.history(), History)
