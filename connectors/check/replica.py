"""Whether rows can be copied from the replica that the configuration names: it must hold what the source holds, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from connectors.backfill.busy import replication_status
from connectors.backfill.replica import own_transactions
from connectors.check.result import CheckResult, failed, ok, warning
from connectors.check.server import QuestionDenied, ServerView
from connectors.tracking.sources import make_reader

if TYPE_CHECKING:
    from connectors.config import ServerSource

__all__ = ["replica_checks"]

_NAME = "backfill.server"
_SKIPS = ("replica_skip_errors", "slave_skip_errors")
_ANEW = "make the replica anew, or take source.backfill.server out"


def replica_checks(source: ServerSource, server: ServerView, replica: ServerView) -> Iterator[CheckResult]:
    """What makes rows of *replica* others than those of *server*, the source."""
    wrong = list(_wrong(source, server, replica))
    yield from wrong or [ok(_NAME, f"{replica.version_text}, a replica")]
    if (replica.variable("read_only") or "OFF") == "OFF":
        expected = "read_only=ON: what someone writes there without its log is copied too"
        yield warning(f"{_NAME}.read_only", "OFF", expected, replica.set_global("read_only", "ON"))


def _wrong(source: ServerSource, server: ServerView, replica: ServerView) -> Iterator[CheckResult]:
    kinds = [f"{view.flavor} {'.'.join(map(str, view.version[:2]))}" for view in (server, replica)]
    if kinds[0] != kinds[1]:
        # Keys are compared on both, and each release may have an order of its own.
        yield failed(_NAME, kinds[1], f"{kinds[0]}, as the source", "take source.backfill.server out")
        return
    mode = replica.variable("gtid_mode")
    if source.flavor == "mysql" and mode != "ON":
        yield failed(f"{_NAME}.gtid_mode", str(mode), "ON", "switch GTIDs on at the replica")
    try:
        status = replica.asked(partial(replication_status, flavor=source.flavor), _NAME)
    except QuestionDenied as error:
        grant = "SLAVE MONITOR" if source.flavor == "mariadb" else "REPLICATION CLIENT"
        mend = f"GRANT {grant} ON *.* TO {replica.account()}"
        yield failed(f"{_NAME}.privileges", str(error.found), "a user who may ask how it replicates", mend)
        return
    if not status:
        yield failed(_NAME, "the server follows no source", "a replica of the source", _ANEW)
        return
    filters = {
        name: value
        for row in status
        for name, value in row.items()
        if name.startswith("Replicate_") and value not in ("", None)
    }
    if filters:
        found = ", ".join(f"{name}={value}" for name, value in sorted(filters.items()))
        yield failed(f"{_NAME}.filters", found, "no filter: rows can be missing there", _ANEW)
    skips = {name: value for name in _SKIPS if (value := replica.variable(name) or "") not in ("", "OFF")}
    if skips:
        found = ", ".join(f"{name}={value}" for name, value in skips.items())
        yield failed(f"{_NAME}.skip_errors", found, "OFF: changes can be missing there", _ANEW)
    with closing(make_reader(source)) as reader:
        own = own_transactions(replica.connection, server.connection, reader)
    if own:
        yield failed(f"{_NAME}.transactions", own, "none that the source's log does not hold", _ANEW)
