"""Whether the server is one of those that are supported, and has connections left."""

from __future__ import annotations

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.check.server import ServerView

__all__ = ["connections_check", "version_check"]

_OLDEST = {"mysql": (5, 7), "mariadb": (10, 5)}
_BESIDE_COPIES = 4
"""For questions, for the log, for the wait at its end, and one to spare."""


def version_check(server: ServerView) -> CheckResult:
    """Older servers write events of which this release has seen none."""
    found, oldest = ".".join(map(str, server.version)), _OLDEST[server.flavor]
    if server.version >= oldest:
        return ok("version", found)
    expected = (
        f"{server.flavor} {'.'.join(map(str, oldest))} or later: older ones are not tested, and log types in other ways"
    )
    return failed("version", found, expected, "upgrade the server, or replicate from a newer replica of it")


def connections_check(server: ServerView) -> CheckResult | None:
    """Whether a run with its copies may open as many connections as it wants; None where the server does not tell."""
    answer = server.rows("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
    most = server.variable("max_connections")
    if not answer or most is None:
        return None
    # Of the account, else of all.
    own = int(next(iter(server.rows("SELECT @@max_user_connections AS own")))["own"])
    free = int(most) - int(answer[0]["value"])
    wanted = server.source.backfill.connections + _BESIDE_COPIES
    if own and own < wanted:
        mend = f"ALTER USER {server.account()} WITH MAX_USER_CONNECTIONS {wanted}"
        return warning(
            "connections", f"the account may have {own}", f"{wanted}, with source.backfill.connections", mend
        )
    if free < wanted:
        mend = server.set_global("max_connections", str(int(most) + wanted))
        return warning("connections", f"{free} of {most} are free", f"{wanted}, with source.backfill.connections", mend)
    return ok("connections", f"{free} of {most} are free")
