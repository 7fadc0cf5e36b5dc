"""What the user may do, from SHOW GRANTS: the grants of active roles included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.check.server import ServerView

__all__ = ["Grants", "has_privilege", "parse_grants", "privilege_checks"]

_GRANT = re.compile(
    r"GRANT (?P<what>.+?) ON (?:TABLE )?(?P<object>(?:\*|`(?:[^`]|``)*`|\"[^\"]*\")\.\S+) TO ", re.DOTALL
)
_REVOKE = re.compile(r"REVOKE (?P<what>.+?) ON (?P<object>\S+?)\.\* FROM ")
_COLUMNS = re.compile(r"\([^)]*\)")
_MONITOR = frozenset(("REPLICATION CLIENT", "BINLOG MONITOR", "SUPER"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Privileges on everything, and what SELECT is granted on one by one (and revoked on), as the server prints it."""

    everywhere: frozenset[str]
    select_on: tuple[str, ...]
    select_not_on: tuple[str, ...] = ()

    def has(self, *names: str) -> bool:
        """Whether one of *names* is granted on everything."""
        return "ALL PRIVILEGES" in self.everywhere or not self.everywhere.isdisjoint(names)


def parse_grants(lines: list[str]) -> Grants:
    """What the lines of SHOW GRANTS grant.

    >>> parse_grants(["GRANT SELECT, REPLICATION SLAVE ON *.* TO `cdc`@`%`"]).has("REPLICATION SLAVE")
    True
    """
    everywhere: set[str] = set()
    select_on: list[str] = []
    select_not_on: list[str] = []
    for line in lines:
        match = _GRANT.match(line)
        if match is not None:
            names = {name.strip() for name in _COLUMNS.sub("", match["what"]).split(",")}
            if match["object"] == "*.*":
                everywhere |= names
            elif names & {"SELECT", "ALL PRIVILEGES"}:
                select_on.append(match["object"].replace("`", ""))
        # A partial revoke of MySQL 8.0.16 and later.
        match = _REVOKE.match(line)
        if match is not None and "SELECT" in match["what"]:
            select_not_on.append(match["object"].replace("`", ""))
    return Grants(everywhere=frozenset(everywhere), select_on=tuple(select_on), select_not_on=tuple(select_not_on))


def privilege_checks(server: ServerView) -> Iterator[CheckResult]:
    """Whether the user may read the log and see the tables."""
    grants = parse_grants(_lines(server))
    account = server.account()
    roles = "; a role's privileges count where it is active at login (SET DEFAULT ROLE)"
    yield from _replication(server, grants, account, roles)
    yield _select(grants, account, roles)


def has_privilege(server: ServerView, name: str) -> bool:
    """Whether the user has that privilege on all there is."""
    return parse_grants(_lines(server)).has(name)


def _replication(server: ServerView, grants: Grants, account: str, roles: str) -> Iterator[CheckResult]:
    wanted = ["REPLICATION SLAVE"]
    monitor = "BINLOG MONITOR" if server.flavor == "mariadb" and server.version >= (10, 5, 2) else "REPLICATION CLIENT"
    missing = [] if grants.has("REPLICATION SLAVE") else wanted
    missing += [] if grants.has(*_MONITOR) else [monitor]
    if not missing:
        yield ok("replication privileges", f"REPLICATION SLAVE, {monitor}")
        return
    names = ", ".join(missing)
    found = f"{account} has no {' and no '.join(missing)}"
    expected = f"REPLICATION SLAVE to read the log, {monitor} to ask where it ends{roles}"
    yield failed("replication privileges", found, expected, f"GRANT {names} ON *.* TO {account}")


def _select(grants: Grants, account: str, roles: str) -> CheckResult:
    mend = f"GRANT SELECT ON *.* TO {account}"
    if grants.has("SELECT") and not grants.select_not_on:
        return ok("select privilege", "on all tables")
    if grants.has("SELECT"):
        found = f"on all tables but those of {', '.join(grants.select_not_on)}"
    elif grants.select_on:
        found = f"on {', '.join(grants.select_on)} alone"
    else:
        expected = f"SELECT on the captured tables: without it the server does not show their columns{roles}"
        return failed("select privilege", f"{account} has no SELECT", expected, mend)
    expected = "SELECT on *.*: LIKE and RENAME can lead from tables that the user cannot see to captured ones"
    return warning("select privilege", found, expected, mend)


def _lines(server: ServerView) -> list[str]:
    """SHOW GRANTS with what the active roles add."""
    question = "SHOW GRANTS FOR CURRENT_USER()"
    if server.is_mysql(8):
        roles = str(server.rows("SELECT CURRENT_ROLE() AS names")[0]["names"])
        question += "" if roles == "NONE" else f" USING {roles}"
    lines = [str(next(iter(row.values()))) for row in server.rows(question)]
    if server.flavor == "mariadb" and server.rows("SELECT CURRENT_ROLE() AS name")[0]["name"] is not None:
        lines += [str(next(iter(row.values()))) for row in server.rows("SHOW GRANTS FOR CURRENT_ROLE")]
    return lines
