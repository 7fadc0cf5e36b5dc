"""What a sink refuses before it writes a plan: another connector's, and one that does not follow."""

from __future__ import annotations

from historian.errors import ChainBroken, SinkError
from historian.plans.plans import Plan

__all__ = ["check_connector", "check_follows"]


def check_connector(plan: Plan, connector: str | None, where: str) -> None:
    """Raises :class:`SinkError` where *plan* is not of the connector that the sink was opened for; None: of none."""
    if connector is None or plan.connector != connector:
        raise SinkError(
            "a plan of a connector that the sink was not opened for",
            where=where,
            expected=connector,
            found=plan.connector,
        )


def check_follows(plan: Plan, held: int, where: str, *, holder: str, elsewhere: str) -> None:
    """Raises :class:`ChainBroken` where *plan* is not the one behind plan *held*.

    Args:
        holder: what misses a plan, in a word.
        elsewhere: where else a chain can begin.
    """
    if plan.previous != held:
        raise ChainBroken(
            f"a plan is missing in {holder}",
            where=where,
            expected=f"a plan that follows plan {held}",
            found=f"plan {plan.number}, which follows plan {plan.previous}",
            next_step=f"write the plans in between, or {elsewhere}",
        )
