"""How busy a server is, by the measures above which rows are not copied from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.transport.connection import answered

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.config import PauseAbove

__all__ = ["busy_reasons", "limits_of", "measured", "replication_status"]

_METRIC = (
    "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len' AND status = 'enabled'"
)
_LAGS = ("Seconds_Behind_Source", "Seconds_Behind_Master")
_NEW_WORDS = (8, 0, 22)


def limits_of(pause: PauseAbove) -> dict[str, int]:
    """The limits that are set, by the name of the measure in the configuration."""
    limits = {
        "threads_running": pause.threads_running,
        "history_list_length": pause.history_list_length,
        "replica_lag_seconds": pause.replica_lag_s,
    }
    return {name: limit for name, limit in limits.items() if limit is not None}


def busy_reasons(connection: Connection[Any], flavor: str, pause: PauseAbove) -> Iterator[str]:
    """Why no rows are to be copied now, for people: each measure that is above its limit, or that is not known.

    Raises:
        ConnectionLost: the server does not answer.
        SourceError: the user may not ask that.
    """
    for name, limit in limits_of(pause).items():
        with answered(f"{connection.host}:{connection.port}: {name}"):
            found = measured(connection, flavor, name)
        if found is None:
            yield f"{name} is not known: replication does not run" if name == "replica_lag_seconds" else f"no {name}"
        elif found > limit:
            yield f"{name} is {found}, above {limit}"


def measured(connection: Connection[Any], flavor: str, name: str) -> int | None:
    """The measure that has that name in the configuration; None: the server does not tell."""
    if name == "replica_lag_seconds":
        return _lag(connection, flavor)
    if name == "history_list_length":
        return _history(connection, flavor)
    return _status(connection, "Threads_running")


def replication_status(connection: Connection[Any], flavor: str) -> list[dict[str, Any]]:
    """What a server says of the sources that it replicates, one each; none: it is no replica."""
    from pymysql.cursors import DictCursor

    with connection.cursor(DictCursor) as cursor:
        cursor.execute("SELECT @@version AS version")
        version = tuple(int(part) for part in str(cursor.fetchall()[0]["version"]).split("-")[0].split("."))
        new = "SHOW REPLICA STATUS" if version >= _NEW_WORDS else "SHOW SLAVE STATUS"
        cursor.execute("SHOW ALL SLAVES STATUS" if flavor == "mariadb" else new)
        return list(cursor.fetchall())


def _history(connection: Connection[Any], flavor: str) -> int | None:
    if flavor == "mariadb":
        return _status(connection, "Innodb_history_list_length")
    with connection.cursor() as cursor:
        cursor.execute(_METRIC)
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def _lag(connection: Connection[Any], flavor: str) -> int | None:
    """Of several sources the one that it is farthest behind; None where one of them is not followed."""
    rows = replication_status(connection, flavor)
    lags = [next((row[name] for name in _LAGS if row.get(name) is not None), None) for row in rows]
    known = [int(lag) for lag in lags if lag is not None]
    return max(known) if rows and len(known) == len(rows) else None


def _status(connection: Connection[Any], name: str) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE %s", (name,))
        row = cursor.fetchone()
    return None if row is None else int(row[1])
