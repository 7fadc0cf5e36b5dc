"""The GTID position of a scan, kept as numbers that the kernel reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.binlog.events.gtid_sources import source_name, source_words
from connectors.readers.binlog.events.layout import MAX_SEQUENCE
from connectors.readers.binlog.kernels.log import scan_layout as at
from historian.errors import PositionError
from historian.positions import GtidSet, MariadbGtids, parse_gtids

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GtidCounter"]

_RECORDS = 1 << 16


class GtidCounter:
    """The GTIDs of a log prefix, transaction by transaction.

    Args:
        gtids: of the prefix that the scan begins behind.
        pass_over: transactions of *gtids* may still come and are passed over; else they are known not to (MariaDB
            numbers that do not ascend are then an error).

    Raises:
        PositionError: a number of 2**63 or more.

    Attributes:
        sources, intervals, records: arrays for the kernel, see ``scan_layout``.
    """

    def __init__(self, gtids: str, flavor: str, *, pass_over: bool) -> None:
        self._flavor = flavor
        self._known = parse_gtids(gtids, flavor)
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._pass_over = pass_over or flavor == "mysql"
        self.sources: NDArray[np.int64] = np.zeros((8, at.SOURCE_WORDS), np.int64)
        self.intervals: NDArray[np.int64] = np.zeros((0, 2), np.int64)
        self.records: NDArray[np.int64] = np.empty((_RECORDS, 3), np.int64)
        if isinstance(self._known, MariadbGtids):
            for domain, _, last in self._known.last:
                _check_number(last, gtids)
                self._add(str(domain), ((1, last),), last)
        else:
            for source, intervals in self._known:
                self._add(source, intervals, 0)

    @property
    def source_count(self) -> int:
        """How many sources are known."""
        return len(self._names)

    @property
    def text(self) -> str:
        """The position as text, what was taken included."""
        return str(self._known)

    @property
    def known(self) -> GtidSet | MariadbGtids:
        """The position, what was taken included."""
        return self._known

    def _add(self, name: str, contained: tuple[tuple[int, int], ...], last: int) -> None:
        index = len(self._names)
        if index == len(self.sources):
            self.sources = np.concatenate([self.sources, np.zeros_like(self.sources)])
        begin = len(self.intervals)
        if self._pass_over and contained:
            self.intervals = np.concatenate([self.intervals, np.array(contained, np.int64)])
        key = (int(name), 0, 0, 0, 0, 0) if self._flavor == "mariadb" else source_words(name)
        self.sources[index] = (*key, begin, len(self.intervals), last, -1)
        self._names.append(name)
        self._numbers[name] = index

    def add_source(self, words: NDArray[np.int64]) -> None:
        """Makes the source of these words known, which the kernel met for the first time.

        Raises:
            PositionError: words that are none of a source.
        """
        name = str(words[0]) if self._flavor == "mariadb" else source_name(words)
        parse_gtids(f"{name}-0-1" if self._flavor == "mariadb" else f"{name}:1", self._flavor)
        self._add(name, (), 0)

    def gtid(self, source: int, number: int, server: int) -> str:
        """The GTID's text; "" without a source."""
        if source < 0:
            return ""
        if self._flavor == "mariadb":
            return f"{self._names[source]}-{server}-{number}"
        return f"{self._names[source]}:{number}"

    def take(self, count: int) -> None:
        """Adds the first *count* records to the position."""
        records = self.records[:count]
        if not count:
            return
        sources = np.unique(records[:, 0]).tolist() if count > 1 else [int(records[0, 0])]
        if isinstance(self._known, MariadbGtids):
            latest = []
            for source in sources:
                _, number, server = records[np.flatnonzero(records[:, 0] == source)[-1]].tolist()
                latest.append((int(self._names[source]), server, number))
            self._known = self._known.union(MariadbGtids(tuple(sorted(latest))))
        else:
            found = {}
            for source in sources:
                numbers = records[records[:, 0] == source, 1] if len(sources) > 1 else records[:, 1]
                found[self._names[source]] = _intervals(numbers)
            self._known = self._known.union(GtidSet.of(found))

    def adopt(self, gtids: GtidSet | MariadbGtids) -> None:
        """Adds transactions that the log says lie before it."""
        if isinstance(self._known, GtidSet):
            assert isinstance(gtids, GtidSet)  # noqa: S101 - of one flavor
            self._known = self._known.union(gtids)
        else:
            assert isinstance(gtids, MariadbGtids)  # noqa: S101 - of one flavor
            self._known = self._known.union(gtids)

    def stop_before_covering(self, wanted: str) -> bool:
        """Asks the kernel to stop where *wanted* may be reached; True where it already is. Raises as the class does."""
        goal = parse_gtids(wanted, self._flavor)
        self.sources[:, at.STOP_AT] = -1
        stops: dict[str, int] = {}
        if isinstance(goal, MariadbGtids) and isinstance(self._known, MariadbGtids):
            for _, _, number in goal.last:
                _check_number(number, wanted)
            stops = {str(d): number for d, _, number in goal.last if number > self._known.sequence(d)}
        elif isinstance(goal, GtidSet) and isinstance(self._known, GtidSet):
            stops = {source: intervals[-1][1] for source, intervals in goal.subtract(self._known)}
        for name, number in stops.items():
            if name not in self._numbers:
                self._add(name, (), 0)
            self.sources[self._numbers[name], at.STOP_AT] = number
        return not stops


def _check_number(number: int, gtids: str) -> None:
    if number > MAX_SEQUENCE:
        raise PositionError(
            "a position with a number that is not read",
            where=gtids,
            expected=f"numbers up to {MAX_SEQUENCE}",
            found=number,
        )


def _intervals(numbers: NDArray[np.int64]) -> list[tuple[int, int]]:
    if len(numbers) == 1:
        return [(int(numbers[0]), int(numbers[0]))]
    steps = np.diff(numbers)
    if not (steps == 1).all():
        numbers = np.unique(numbers)
        steps = np.diff(numbers)
    breaks = np.flatnonzero(steps != 1)
    firsts = numbers[np.concatenate([[0], breaks + 1])].tolist()
    lasts = numbers[np.concatenate([breaks, [len(numbers) - 1]])].tolist()
    return list(zip(firsts, lasts, strict=True))
