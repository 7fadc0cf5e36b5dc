"""What tests put into stores."""

from __future__ import annotations

from historian.plans.plans import LogRange, Plan, PlannedTable, PlannedVersion, Quarantine
from historian.positions.places import Place
from historian.schema.edits import TruncateTable
from models.timelines import FILE, A, capture, create, position, snapshot, statement, table

T = table("t")
START = capture(create(1, "t", "a"))
DDL = statement(2, f"{A}:5", TruncateTable(table=T, table_id=1))
END = position(f"{A}:1-9", 9000)
STOP = Quarantine(place=Place(gtid=f"{A}:3", file=FILE, offset=2500, ordinal=2), reason="does not fit")


def a_plan(number: int = 1, *, connector: str = "c", end: int = 9, tables: int = 1) -> Plan:
    versions = [
        PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot(1, "t", "a"), segment=0),
        PlannedVersion(version=2, place=STOP.place, edits=DDL.edits, snapshot=snapshot(1, "t", "a"), segment=1),
        PlannedVersion(version=3, place=STOP.place, edits=(), snapshot=None, segment=2, statement="DROP TABLE `ü`"),
    ]
    return Plan(
        number=number,
        previous=number - 1,
        connector=connector,
        start=position(),
        end=position(f"{A}:1-{end}", 1000 * end),
        ranges=(LogRange(file=FILE, start=4, end=1000 * end),),
        tables=tuple(PlannedTable(table_id=i + 1, versions=tuple(versions), quarantine=STOP) for i in range(tables)),
        version=2,
        system_time_us=number,
        revision="r",
    )
