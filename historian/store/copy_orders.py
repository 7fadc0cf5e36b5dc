"""What people have said of a connector's copies: it stands in the store, so that a run which goes on already hears of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from historian import codec
from historian.plans.plans import PlannedTable
from historian.store.copies import copy_progress
from historian.store.facts import fact, set_fact

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["CopyOrders", "cancel_copy", "carry_out", "copy_orders", "limit_copies", "pause_copies"]

_NAME = "copy_orders"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOrders:
    """What holds for the next plan.

    Attributes:
        paused: no table's copy comes further.
        cancelled: ids of tables whose copies end where they are.
        limits: in place of those that the configuration has, by the names there, in order; None: that one does not matter.
    """

    paused: bool = False
    cancelled: tuple[int, ...] = ()
    limits: tuple[tuple[str, int | None], ...] = ()


def copy_orders(connection: Connection) -> CopyOrders:
    """What was said, as far as it is not carried out."""
    body = fact(connection, _NAME)
    return CopyOrders() if body is None else codec.load(CopyOrders, body)


def pause_copies(connection: Connection, *, paused: bool) -> None:
    """Lets all copies rest, or go on."""
    _set(connection, replace(copy_orders(connection), paused=paused))


def limit_copies(connection: Connection, limits: Mapping[str, int | None], as_configured: Collection[str]) -> None:
    """Sets *limits*; those named in *as_configured* are the configuration's again."""
    orders = copy_orders(connection)
    held = {**dict(orders.limits), **limits}
    left = sorted((name, limit) for name, limit in held.items() if name not in as_configured)
    _set(connection, replace(orders, limits=tuple(left)))


def cancel_copy(connection: Connection, table_id: int) -> bool:
    """Lets a table's copy end where it is; whether there is one to end."""
    progress = copy_progress(connection).get(table_id)
    if progress is None or progress.is_done:
        return False
    orders = copy_orders(connection)
    _set(connection, replace(orders, cancelled=tuple(sorted({*orders.cancelled, table_id}))))
    return True


def carry_out(connection: Connection, table: PlannedTable) -> None:
    """Forgets that a table's copy is to end, where it ends with a plan."""
    orders = copy_orders(connection)
    is_ended = table.quarantine is not None or (table.copy is not None and table.copy.is_done)
    if is_ended and table.table_id in orders.cancelled:
        _set(connection, replace(orders, cancelled=tuple(i for i in orders.cancelled if i != table.table_id)))


def _set(connection: Connection, orders: CopyOrders) -> None:
    set_fact(connection, _NAME, codec.dump(CopyOrders, orders))
