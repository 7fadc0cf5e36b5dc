"""A whole history as JSON lines: what ``historian schemas CONFIG export`` writes and ``import`` reads.

The format is documented in docs/reference/history-format.md: a head, an entry a line, a gap a line, and an end that counts them.
So a file that was cut off is noticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError

from historian import codec
from historian.errors import ConfigError, EditConflict, PositionError, PositionUnknown, StoreError
from historian.history.history import History
from historian.history.prefix import covers, holds
from historian.history.timeline import Gap, Horizon, TimelineEntry
from historian.positions import GtidSet, LogPosition, TopicOffsets, parse_read

__all__ = ["FORMAT", "HistoryFile", "read_history", "write_history"]

T = TypeVar("T")

FORMAT = 1
"""Raised when the meaning of a line changes; files of another format are refused."""

_SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryFile:
    """Everything that a history is made of, and the identity of the connector that recorded it.

    Attributes:
        resolved: up to where its log has been read for statements.
        horizon: before which versions were forgotten; None where none were.
    """

    connector: str
    resolved: LogPosition
    entries: tuple[TimelineEntry, ...]
    gaps: tuple[Gap, ...] = ()
    horizon: Horizon | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    format: int
    connector: str
    resolved: LogPosition
    horizon: Horizon | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    entries: int
    gaps: int


_KINDS: dict[str, Any] = {"history": _Head, "entry": TimelineEntry, "gap": Gap, "end": _End}


def write_history(history: HistoryFile) -> Iterator[str]:
    """The lines of the file, without line ends; equal histories give equal lines."""
    head = _Head(format=FORMAT, connector=history.connector, resolved=history.resolved, horizon=history.horizon)
    yield _line("history", head)
    yield from (_line("entry", entry) for entry in history.entries)
    yield from (_line("gap", gap) for gap in history.gaps)
    yield _line("end", _End(entries=len(history.entries), gaps=len(history.gaps)))


def read_history(lines: Iterable[str], *, where: str = "history") -> HistoryFile:
    """The history that :func:`write_history` wrote.

    Raises:
        ConfigError: lines that are no part of a history, entries that do not fit each other, or a file that was cut off;
            each problem with its line. *where* names the file.
    """
    problems: list[str] = []
    found: list[tuple[int, Any]] = []
    for number, text in enumerate(lines, 1):
        try:
            found.append((number, _value(text)))
        except ValueError as error:
            problems.append(f"{error} @ line {number}")
    problems = problems or list(_misplaced(found))
    if not problems:
        head: _Head = found[0][1]
        entries = [(number, value) for number, value in found if isinstance(value, TimelineEntry)]
        gaps = [(number, value) for number, value in found if isinstance(value, Gap)]
        problems = list(_unfit(head, entries, gaps))
        if not problems:
            return HistoryFile(
                connector=head.connector,
                resolved=head.resolved,
                entries=tuple(entry for _, entry in entries),
                gaps=tuple(gap for _, gap in gaps),
                horizon=head.horizon,
            )
    shown = problems[:_SHOWN_PROBLEMS]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    raise ConfigError("not a history that can be imported", where=where, problems=tuple(shown))


def _line(kind: str, value: object) -> str:
    return f'{{"{kind}":{codec.dump(_KINDS[kind], value)}}}'


def _value(text: str) -> Any:
    """What one line says. Raises :class:`ValueError` with the reason why it says nothing."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    kind = next(iter(line)) if isinstance(line, dict) and len(line) == 1 else None
    if kind not in _KINDS:
        raise ValueError(f"expected an object with one key of {', '.join(_KINDS)}")
    if kind == "history" and isinstance(line[kind], dict) and line[kind].get("format") != FORMAT:
        raise ValueError(f"expected format {FORMAT}, found {line[kind].get('format')!r}")
    try:
        value = codec.load(_KINDS[kind], json.dumps(line[kind]))
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{first['msg']} at {'.'.join(map(str, (kind, *first['loc'])))}") from None
    written = _line(kind, value)
    lost = None if written == text else _lost(line[kind], json.loads(written)[kind], kind)
    if lost is not None:
        raise ValueError(f"not read as it is written: {lost}")
    return value


def _lost(given: Any, read: Any, path: str) -> str | None:
    """Where something was left out or turned into something else; None where nothing was."""
    if isinstance(given, dict) and isinstance(read, dict):
        return next(
            (lost for key in given if (lost := _lost(given[key], read.get(key, _ABSENT), f"{path}.{key}"))), None
        )
    if isinstance(given, list) and isinstance(read, list) and len(given) == len(read):
        pairs = enumerate(zip(given, read, strict=True))
        return next((lost for at, (a, b) in pairs if (lost := _lost(a, b, f"{path}.{at}"))), None)
    return None if type(given) is type(read) and given == read else path


_ABSENT = object()


def _misplaced(found: list[tuple[int, Any]]) -> Iterator[str]:
    """Lines that stand where they must not, and what the last one should count."""
    rank = {_Head: 0, TimelineEntry: 1, Gap: 2, _End: 3}
    ranks = [rank[type(value)] for _, value in found]
    if not ranks or ranks[0] != 0:
        yield "expected the head of a history @ line 1"
    if not ranks or ranks[-1] != 3:
        yield f"the file was cut off: expected its end behind line {len(found)}"
        return
    for (number, _), rank_before, rank_here in zip(found[1:], ranks, ranks[1:], strict=False):
        if rank_here < rank_before or (rank_here == rank_before and rank_here in (0, 3)):
            yield f"expected head, entries, gaps, end in this order @ line {number}"
    number, end = found[-1]
    counted = _End(entries=ranks.count(1), gaps=ranks.count(2))
    if end != counted:
        yield (
            f"lines are missing or doubled: expected {end.entries} entries and {end.gaps} gaps, "
            f"found {counted.entries} and {counted.gaps} @ line {number}"
        )


def _unfit(head: _Head, entries: list[tuple[int, TimelineEntry]], gaps: list[tuple[int, Gap]]) -> Iterator[str]:
    """Positions that cannot be read, and the first entry that does not follow from those before it."""
    flavor = head.resolved.flavor
    positions = [(1, head.resolved), *((number, entry.position) for number, entry in entries)]
    if head.horizon is not None:
        positions.append((1, head.horizon.position))
    positions += [(number, position) for number, gap in gaps for position in (gap.start, gap.end)]
    bad = [f"{why} @ line {number}" for number, position in positions if (why := _bad_position(position, flavor))]
    yield from bad
    if bad:
        return
    forgotten = 0 if head.horizon is None else head.horizon.number
    left = [(number, entry) for number, entry in entries if entry.number <= forgotten]
    try:
        history = History.of((entry for _, entry in left), horizon=head.horizon)
    except EditConflict as error:
        yield f"{error} @ line {left[0][0]}"
        return
    for number, entry in entries[len(left) :]:
        problem = _bad_place(entry, flavor) or _does_not_follow(history, entry) or _not_read(head.resolved, entry)
        if problem is not None:
            # What stands behind it follows from it.
            yield f"{problem} @ line {number}"
            return


def _bad_position(position: LogPosition, flavor: str) -> str | None:
    if position.flavor != flavor:
        return f"positions of two kinds of server: expected {flavor}, found {position.flavor}"
    try:
        position.read  # noqa: B018 parses
    except PositionError as error:
        return str(error)
    return None


def _bad_place(entry: TimelineEntry, flavor: str) -> str | None:
    place = entry.place
    if place is None or not place.gtid:
        return None
    try:
        read = parse_read(place.gtid, flavor)
    except PositionError as error:
        return str(error)
    one = len(read if isinstance(read, GtidSet) else read.next if isinstance(read, TopicOffsets) else read.last) == 1
    return None if one and str(read) == place.gtid else f"not one GTID as servers print it: {place.gtid!r}"


def _does_not_follow(history: History, entry: TimelineEntry) -> str | None:
    try:
        history.record(entry)
    except (EditConflict, StoreError) as error:
        return str(error)
    return None if history.last_number == entry.number else "the statement at its place is there already"


def _not_read(resolved: LogPosition, entry: TimelineEntry) -> str | None:
    try:
        place = entry.place
        read = covers(resolved, entry.position) if place is None else holds(resolved, place, entry.server)
    except PositionUnknown:  # files of two servers, as after a failover without GTIDs
        return None
    return None if read else f"it stands behind {resolved}, up to where the head says that the log was read"
