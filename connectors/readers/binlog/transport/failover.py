"""Plans on a server that they were not made on: places of schema versions, found again by GTID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from connectors.readers.binlog.events.gtid_sources import event_gtid
from connectors.readers.binlog.events.layout import GTID_EVENTS, EventType
from connectors.readers.binlog.transport.window import Window
from historian.errors import SourceError
from historian.plans.plans import LogRange, PlannedTable
from historian.positions import GtidSet, MariadbGtids, parse_gtids
from historian.positions.places import Place

__all__ = ["event_text", "translate"]

_OF_FILE_OR_CONNECTION = frozenset((3, 4, 15, 27, 35, 41, 161, 163))


def translate(
    tables: Sequence[PlannedTable], planned: LogRange, windows: Iterable[Window], flavor: str
) -> Sequence[PlannedTable]:
    """*tables* with the places of their versions and quarantines as files and offsets of the log that *windows* are of.

    A version from before the range loses its place, one from behind it is left out. *windows* hold the range's
    transactions; they are not looked at where no version begins inside it.
    """
    before, inside = parse_gtids(planned.after, flavor), parse_gtids(planned.upto, flavor)
    places = [version.place for table in tables for version in table.versions if version.place is not None]
    places += [table.quarantine.place for table in tables if table.quarantine is not None]
    wanted = {
        place.gtid
        for place in places
        if place.gtid and not before.contains_gtid(place.gtid) and inside.contains_gtid(place.gtid)
    }
    found = _find(wanted, windows, flavor) if wanted else {}
    here = _Translation(before=before, found=found)
    return [here.table(table) for table in tables]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Translation:
    before: GtidSet | MariadbGtids
    found: dict[str, list[tuple[str, int]]]

    def place(self, place: Place) -> Place:
        events = self.found[place.gtid]
        if place.ordinal >= len(events):
            raise SourceError(
                "a transaction is logged otherwise on this server",
                where=f"transaction {place.gtid}",
                expected=f"event {place.ordinal} in it",
                found=f"{len(events)} events",
                next_step="read this range on the server that it was planned on",
            )
        file, offset = events[place.ordinal]
        return replace(place, file=file, offset=offset)

    def _is_before(self, place: Place) -> bool:
        """Whether it lies before the range; so does a capture, which is no event and stands where a plan begins."""
        return not place.gtid or self.before.contains_gtid(place.gtid)

    def table(self, table: PlannedTable) -> PlannedTable:
        versions = []
        for version in table.versions:
            if version.place is None or self._is_before(version.place):
                versions = [replace(version, place=None)]
            elif version.place.gtid in self.found:
                versions.append(replace(version, place=self.place(version.place)))
        stop = table.quarantine
        if stop is not None:
            if self._is_before(stop.place):
                stop = replace(stop, place=replace(stop.place, offset=0))
            else:
                stop = replace(stop, place=self.place(stop.place)) if stop.place.gtid in self.found else None
        return replace(table, versions=tuple(versions), quarantine=stop)


def _find(wanted: set[str], windows: Iterable[Window], flavor: str) -> dict[str, list[tuple[str, int]]]:
    """File and offset of each event of the *wanted* transactions, by ordinal."""
    found: dict[str, list[tuple[str, int]]] = {}
    current: list[tuple[str, int]] | None = None
    for window in windows:
        for start, end, offset in zip(
            *(part.tolist() for part in (window.starts, window.ends, window.offsets)), strict=True
        ):
            kind = int(window.buffer[start + 4])
            if kind in GTID_EVENTS:
                gtid = event_text(window.buffer[start:end].tobytes(), flavor, f"{window.file}:{offset}")
                current = found.setdefault(gtid, []) if gtid in wanted else None
            if current is not None and kind not in _OF_FILE_OR_CONNECTION:
                current.append((window.file, offset))
    return found


def event_text(event: bytes, flavor: str, where: str) -> str:
    """The GTID that a GTID event says, as text; "" of an anonymous one."""
    if flavor == "mariadb":
        domain, server = int.from_bytes(event[27:31], "little"), int.from_bytes(event[5:9], "little")
        return f"{domain}-{server}-{int.from_bytes(event[19:27], 'little')}"
    if event[4] == EventType.ANONYMOUS_GTID:
        return ""
    source, number = event_gtid(event, where)
    return f"{source}:{number}"
