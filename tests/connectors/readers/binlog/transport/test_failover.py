"""Places of a plan on another server."""

from __future__ import annotations

from connectors.readers.binlog.transport.failover import translate
from historian.plans.plans import LogRange, PlannedTable, PlannedVersion
from historian.positions.places import Place
from models.timelines import A, create


def test_a_capture_stands_before_the_range_that_follows_it() -> None:
    """It is no event, so no transaction finds it; what was in force before it is in force no more."""
    snapshot = create(1, "t", "a").snapshot
    captured = Place(gtid="", file="binlog.000009", offset=400, ordinal=0)
    versions = tuple(
        PlannedVersion(version=number, place=place, edits=(), snapshot=snapshot, segment=number)
        for number, place in ((1, None), (2, captured))
    )
    planned = LogRange(file="binlog.000009", start=400, end=900, server="old", after=f"{A}:1-5", upto=f"{A}:1-9")

    (found,) = translate([PlannedTable(table_id=1, versions=versions)], planned, (), "mysql")

    assert [(version.version, version.place) for version in found.versions] == [(2, None)]
