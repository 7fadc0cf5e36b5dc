"""When rows may be copied: as fast as the limits allow, and while the server that they are read from is not busy."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.backfill.busy import busy_reasons, limits_of
from connectors.config import limits_text
from connectors.readers.binlog.transport.connection import ConnectionLost

if TYPE_CHECKING:
    from connectors.config import CopyLimits, PauseAbove
    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["Pace"]

_log = logging.getLogger(__name__)
_ASK_S = 1.0
_ANSWER_S = 10
_LAG_S = 10.0
"""Between two looks at a replica that lags. Each may take as long itself, and the log waits for it."""


@dataclass(slots=True)
class _Debt:
    """What was copied and is not paid for by time yet, as of ``since_s``; rates are a second, and 0 is none."""

    owed: float = 0.0
    since_s: float = 0.0

    def is_paid(self, now_s: float, per_s: int) -> bool:
        return not per_s or self.owed <= (now_s - self.since_s) * per_s

    def settle(self, now_s: float, per_s: int) -> None:
        self.owed = max(0.0, self.owed - (now_s - self.since_s) * per_s) if per_s else 0.0
        self.since_s = now_s

    def add(self, amount: int, now_s: float, per_s: int) -> None:
        self.settle(now_s, per_s)
        self.owed += amount


class Pace:
    """Says when rows may be copied.

    Args:
        address: of the server that rows are read from.
        limits: in force; asked once a second at most.
        note: is told why copies wait, once; "": they go on.
        is_replica: whether the log can be followed without that server, so that one that does not answer is waited for.
    """

    def __init__(
        self,
        address: ServerAddress,
        flavor: str,
        limits: Callable[[], CopyLimits],
        *,
        note: Callable[[str], None],
        is_replica: bool = False,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._address = replace(address, timeout_s=_ANSWER_S) if is_replica else address
        self._flavor = flavor
        self._ask_limits = limits
        self._limits = limits()
        self._note = note
        self._is_replica = is_replica
        self._clock_s = clock_s
        self._rows, self._bytes = _Debt(), _Debt()
        self._look_s = clock_s() + _ASK_S
        self._ask_s = 0.0
        self._lag_free_s = 0.0
        self._busy = ""
        self._lag = ""
        self._is_told = False

    @property
    def limits(self) -> CopyLimits:
        """Those in force. What was copied under others counts as it did then."""
        now_s = self._clock_s()
        if now_s >= self._look_s:
            self._look_s = now_s + _ASK_S
            before, self._limits = self._limits, self._ask_limits()
            if before != self._limits:
                self._rows.settle(now_s, before.rows_per_s)
                self._bytes.settle(now_s, before.bytes_per_s)
                self._ask_s = 0.0
                _log.warning("copies go on with other limits: %s", limits_text(self._limits))
        return self._limits

    @property
    def is_free(self) -> bool:
        """Whether rows may be copied now; the server is asked once a second at most.

        Raises:
            ConnectionLost: the server does not answer.
            SourceError: the user may not ask it.
        """
        limits, now_s = self.limits, self._clock_s()
        if now_s < self._lag_free_s:
            return False
        if not (self._rows.is_paid(now_s, limits.rows_per_s) and self._bytes.is_paid(now_s, limits.bytes_per_s)):
            return False
        if now_s >= self._ask_s:
            self._ask_s = now_s + _ASK_S
            self._busy = "; ".join(self._reasons(limits.pause_above)) if limits_of(limits.pause_above) else ""
            self._tell()
        return not self._busy

    def took(self, rows: int, size_bytes: int) -> None:
        """Counts rows that were copied, and their bytes; the stricter limit holds."""
        now_s = self._clock_s()
        self._rows.add(rows, now_s, self._limits.rows_per_s)
        self._bytes.add(size_bytes, now_s, self._limits.bytes_per_s)

    def lags(self, why: str) -> None:
        """Takes note of what a replica lacks, for which copies wait some seconds; "": it lacks nothing."""
        self._lag = why
        self._lag_free_s = self._clock_s() + _LAG_S if why else 0.0
        self._tell()

    def _reasons(self, pause: PauseAbove) -> list[str]:
        try:
            with closing(self._address.connect()) as connection:
                return list(busy_reasons(connection, self._flavor, pause))
        except ConnectionLost as error:
            if not self._is_replica:
                raise
            return [str(error)]

    def _tell(self) -> None:
        """Tells once that copies wait, and once that they go on."""
        why = self._busy or self._lag
        if bool(why) != self._is_told:
            self._is_told = bool(why)
            if why:
                _log.warning("copies wait, at %s: %s", self._address, why)
            else:
                _log.warning("copies go on")
            self._note(why)
