"""What is refused where places of statements and rows do not tell their order: another log, or one that was begun anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from historian.errors import SourceError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.messages.source_places import Newest, SourcePlace
    from connectors.readers.kafka.statements.logs import Seconds, StatedLog

__all__ = ["NEXT_STEP", "begun_anew", "check_not_anew", "check_numbers", "check_seconds"]

_SECOND_US = 1_000_000
NEXT_STEP = "leave source.schema_topic out, or start another connector with a store and targets of its own"


def begun_anew(place: SourcePlace, where: str) -> SourceError:
    """The error of a statement at *place*, whose message is named *where*."""
    return SourceError(
        "the source's log was begun anew: a statement stands before one that was executed earlier",
        where=where,
        expected="one log, whose files are numbered on",
        found=str(place),
        next_step=NEXT_STEP,
    )


def _any_in(values: NDArray[np.int64], found: NDArray[np.int64]) -> bool:
    """Whether one of *values* is among *found*, which ascend."""
    if not len(values) or not len(found):
        return False
    at = np.minimum(np.searchsorted(found, values), len(found) - 1)
    return bool((found[at] == values).any())


def check_seconds(times_us: NDArray[np.int64], stated: Seconds, where: str) -> None:
    """Refuses rows of another log that are of a statement's second, where either tells no more."""
    seconds = times_us // _SECOND_US
    if _any_in(seconds, stated.told) or _any_in(seconds[times_us % _SECOND_US == 0], stated.all):
        raise SourceError(
            "a row and a statement of one second stand in logs of different servers, or one tells no place: the row may be on either side",
            where=where,
            expected="places in one server's log, or microseconds, as MySQL 8 with GTIDs tells them",
            next_step=NEXT_STEP,
        )


def check_not_anew(
    words: NDArray[np.int64],
    times_us: NDArray[np.int64],
    doubtful: NDArray[np.intp],
    last_us: int,
    newest: Newest,
    where: str,
) -> None:
    """Refuses rows that are much later than a statement before which they stand, where both tell microseconds, unless their partition goes on with them.

    Then the server's clock was set. Rows of *doubtful* numbers are so late; *last_us* is of the last statement.
    """
    for row in doubtful.tolist():
        server, number = words[row, 4:6].tolist()
        before = words[:row, 5][words[:row, 4] == server].tolist()
        before += [newest.number] if newest.server == server else []
        if number < max(before) if before else times_us[row] > last_us:
            raise SourceError(
                "the source's log was begun anew: a row stands before a statement that was executed earlier",
                where=where,
                expected="one log, whose files and transactions are numbered on",
                found=f"transaction {number} of {int(times_us[row])} µs",
                next_step=NEXT_STEP,
            )


def check_numbers(log: StatedLog, words: NDArray[np.int64], times_us: NDArray[np.int64], where: str) -> None:
    """Refuses rows of another log whose seconds have another order among statements than numbers of their GTIDs have."""
    for moment_us, by_second, server, number in zip(
        log.moments_us, log.by_second, log.servers, log.numbers, strict=True
    ):
        theirs = (words[:, 4] == server) & (by_second | (times_us % _SECOND_US == 0))
        if ((words[theirs, 5] > number) != (times_us[theirs] > moment_us)).any():
            raise SourceError(
                "a row stands in another log than a statement, and its time and its GTID disagree on which side of it the row is",
                where=where,
                expected="places in one server's log, or microseconds, as MySQL 8 with GTIDs tells them",
                next_step=NEXT_STEP,
            )
