"""How far tables are copied or compared, as the store tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from historian.store import CopyProgress, Store

__all__ = ["copies_left_s", "copies_reading", "copies_state", "copies_wait", "time_text"]


def copies_state(store: Store, *, most: int | None = None) -> list[dict[str, Any]]:
    """Tables whose rows are being copied from the source, or were, or are compared with it, and how many came so far.

    ``bytes`` are of rows in memory, as Arrow, of those that ``rows`` counts; None: not known. ``chunks`` are what the SELECTs of the last plan
    gave that read some of the table, the number of which is ``read``.

    Args:
        most: tables that are copied whole are left out where all are more than so many; None: never.
    """
    found = []
    copies = store.copies() if most is None else store.open_copies(most)
    if not copies:
        return []
    stopped, orders, names = store.quarantines(), store.copy_orders(), store.table_names(copies)
    for table_id, progress in sorted(copies.items()):
        table = str(names.get(table_id, f"table {table_id}"))
        under_way = "repairing" if progress.repairs else "copying"
        state = "done" if progress.is_done else "waiting" if progress.upto is None else under_way
        if state != "done" and (table_id in stopped or table_id in orders.cancelled):
            state = "stopped" if table_id in stopped else "ends with the next plan"
        found.append(
            {
                "table": table,
                "state": state,
                "rows": progress.rows,
                "estimate": progress.estimate or None,
                "rows_per_s": round(progress.rows_per_s),
                "bytes": progress.size_bytes,
                "estimated_bytes": progress.estimated_bytes,
                "bytes_per_s": round(progress.bytes_per_s),
                "left_s": progress.left_s,
                "begun": time_text(progress.begun_us),
                "upto": progress.upto,
                "repairs": progress.repairs,
                "read": progress.read or None,
                "chunks": list(_chunks(progress)),
            }
        )
    return found


def _chunks(progress: CopyProgress) -> Iterator[dict[str, Any]]:
    behind = progress.behind
    for piece in progress.pieces:
        yield {"behind": behind, "upto": piece.upto, "rows": piece.rows, "bytes": piece.size_bytes}
        behind = piece.upto


def copies_reading(store: Store, name: str) -> dict[str, Any] | None:
    """What a run of the connector *name* reads now for its next plan: the plan's number, and each chunk; None: nothing for longer than a moment.

    A chunk's ``state`` is "waiting", "reading" or "read". It is copied with the plan, once that is stored.
    """
    text = store.copies_reading()
    # A run that was killed could not take it back.
    return None if not text or store.holder(name) is None else json.loads(text)


def copies_left_s(store: Store) -> int | None:
    """In about how many seconds all copies end that go on, at the rate of all together so far; None: not known, or none is left."""
    from historian.store import left_s

    stopped = store.quarantines()
    if store.open_copies().keys() <= stopped.keys():
        return None
    return left_s([progress for i, progress in store.copies().items() if progress.is_done or i not in stopped])


def copies_wait(store: Store) -> str | None:
    """Why a run copies no rows for now; None: it does, or none are left."""
    wait = store.copies_wait()
    return wait if wait and (store.open_copies() or not store.copies()) else None


def time_text(time_us: int) -> str:
    """UTC microseconds as ISO 8601, in seconds."""
    return datetime.fromtimestamp(time_us / 1e6, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")
