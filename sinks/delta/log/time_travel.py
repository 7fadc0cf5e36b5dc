"""Earlier versions of Delta tables: where a plan ends in a table's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from historian.errors import ChainBroken
from sinks.delta.log.kernel import REARRANGED, Kernel
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import MAINTENANCE, Target

__all__ = ["first_version", "version_holding", "view_before"]


def first_version(kernel: Kernel, newest: TableView, reached: Callable[[TableView], bool]) -> int:
    """The first version that the log keeps for which *reached* holds; the one behind *newest* where it never does.

    *reached* holds from some version on. The search begins at *newest*, so that what is near costs little.
    """
    if not reached(newest):
        return newest.version + 1
    first, step = newest.version, 1
    below = -1
    while first > 0:
        at = max(first - step, 0)
        view = kernel.view_at(newest.path, at)
        if view is None or not reached(view):
            below = at
            break
        first, step = at, step * 2
    while first - below > 1:
        at = (first + below) // 2
        view = kernel.view_at(newest.path, at)
        if view is None or not reached(view):
            below = at
        else:
            first = at
    return first


def version_holding(kernel: Kernel, newest: TableView, application: str, link: int) -> int | None:
    """The version in which a table holds a plan and nothing behind it; None where none is kept, or ever was.

    Args:
        newest: of the table.
        application: whose transaction versions count.
        link: the transaction version that the table has with the plan.
    """
    first = first_version(kernel, newest, lambda view: view.transaction(application) >= link)
    view = newest if first == newest.version else kernel.view_at(newest.path, first)
    if view is None or view.transaction(application) != link:
        return None
    # What compaction wrote anew stays readable longer than what it replaced.
    while first < newest.version and _changes_no_row(kernel.commit_info(newest.path, first + 1) or {}):
        first += 1
    return first


def _changes_no_row(info: Mapping[str, Any]) -> bool:
    return info.get("operation") in MAINTENANCE or f"/{REARRANGED}" in str(info.get("engineInfo", ""))


def view_before(target: Target, transaction: int) -> TableView | None:
    """*target* as it was before it had the step *transaction*, or as it is where it has not; None where it held nothing.

    Raises:
        ChainBroken: its log does not reach back there.
    """
    if not target.exists or not target.held:
        return None
    if target.held < transaction:
        return target.view
    application = target.application
    at = first_version(target.kernel, target.view, lambda view: view.transaction(application) >= transaction) - 1
    view = target.kernel.view_at(target.path, at) if at >= 0 else None
    if view is None:
        raise ChainBroken(
            "a target does not show what it was before a plan",
            where=target.path,
            expected=f"its Delta log back to before step {transaction}",
            next_step="replicate the table into another lake, from the start",
        )
    return view if view.transaction(application) else None
