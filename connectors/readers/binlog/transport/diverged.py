"""Whether a MariaDB log holds the transactions that a position names: after a failover a number alone does not tell one."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from connectors.readers.binlog.events.layout import EventType
from connectors.readers.binlog.transport.window import Window

__all__ = ["Gtid", "other_transaction"]

Gtid = tuple[int, int, int]
"""Domain, server and sequence number."""


def other_transaction(
    wanted: Iterable[Gtid], listed: Collection[Gtid], windows: Iterable[Window]
) -> tuple[Gtid, Gtid] | None:
    """One of *wanted* that the log does not hold, and what stands there instead.

    None: it holds all, or it begins right behind them and cannot tell.

    Args:
        listed: the last transactions before *windows*, by domain and server.
    """
    left = {domain: (server, number) for domain, server, number in set(wanted).difference(listed)}
    begun = {domain for domain, _, _ in listed}
    for gtid in (*listed, *(_gtids(windows) if left else ())):
        domain, server, number = gtid
        sought = left.get(domain)
        if sought is None or number < sought[1]:
            begun.add(domain)
            continue
        is_there = (server, number) == sought
        if not is_there and (domain in begun or number != sought[1] + 1):
            return (domain, *sought), gtid
        del left[domain]
        if not left:
            return None
    return None


def _gtids(windows: Iterable[Window]) -> Iterable[Gtid]:
    for window in windows:
        for index in np.flatnonzero(window.buffer[window.starts + 4] == EventType.MARIADB_GTID).tolist():
            event = window.event(index)
            yield (
                int.from_bytes(event[27:31], "little"),
                int.from_bytes(event[5:9], "little"),
                int.from_bytes(event[19:27], "little"),
            )
