"""Named time zones of a test server: its own tables, filled by the rules that Python knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from databases.servers import Server

__all__ = ["load_zones"]

_BEGIN_S, _END_S = 0, 2**31 - 1
_STEP_S = 20 * 24 * 3600
"""Shorter than the time between two changes of a zone's offset."""


def load_zones(server: Server, names: Iterable[str]) -> None:
    """Named zones, such as ``Europe/Berlin``, can be set on the server from now on; those that are there stay."""
    there = {name for (name,) in server.sql("SELECT CONVERT(Name USING utf8mb4) FROM mysql.time_zone_name")}
    for name in sorted({*names} - there):
        zone = ZoneInfo(name)
        server.sql("INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N')")
        ((number,),) = server.sql("SELECT MAX(Time_zone_id) FROM mysql.time_zone")
        changes = [(_BEGIN_S, _offset_s(zone, _BEGIN_S)), *_changes(zone)]
        types = {offset_s: kind for kind, offset_s in enumerate(sorted({offset_s for _, offset_s in changes}))}
        for offset_s, kind in types.items():
            server.sql(
                "INSERT INTO mysql.time_zone_transition_type (Time_zone_id, Transition_type_id, `Offset`, Is_DST, Abbreviation)"
                f" VALUES ({number}, {kind}, {offset_s}, 0, 'Z{kind}')"
            )
        rows = ", ".join(f"({number}, {moment_s}, {types[offset_s]})" for moment_s, offset_s in changes)
        server.sql(
            f"INSERT INTO mysql.time_zone_transition (Time_zone_id, Transition_time, Transition_type_id) VALUES {rows}"
        )
        # A server looks a zone up by its name, and would keep one that is half there.
        server.sql("INSERT INTO mysql.time_zone_name (Name, Time_zone_id) VALUES (%s, %s)", name, number)


def _changes(zone: ZoneInfo) -> Iterator[tuple[int, int]]:
    """Moments at which the zone's offset becomes another, with that offset; seconds."""
    for begin_s in range(_BEGIN_S, _END_S - _STEP_S, _STEP_S):
        before_s, after_s = begin_s, begin_s + _STEP_S
        offset_s = _offset_s(zone, after_s)
        if _offset_s(zone, before_s) == offset_s:
            continue
        while after_s - before_s > 1:
            middle_s = (before_s + after_s) // 2
            if _offset_s(zone, middle_s) == offset_s:
                after_s = middle_s
            else:
                before_s = middle_s
        yield after_s, offset_s


def _offset_s(zone: ZoneInfo, moment_s: int) -> int:
    offset = datetime.fromtimestamp(moment_s, zone).utcoffset()
    assert offset is not None, "a named zone has an offset at every moment"
    return round(offset.total_seconds())
