"""Replication between two test servers."""

from __future__ import annotations

import time
from typing import Any

from pymysql.cursors import DictCursor

from databases.servers import Server
from logs.binlog_lab import run

__all__ = ["apply_until", "direct", "follow", "promote", "wait_for"]

_APPLIED_S = 120


def follow(replica: Server, primary: Server) -> None:
    """Makes *replica* take its transactions from *primary*, by GTID."""
    direct(replica, primary)
    run(replica, f"START {_word(replica)}")


def direct(replica: Server, primary: Server) -> None:
    """Tells *replica* that its transactions come from *primary*; it takes none yet."""
    is_earlier = _has_earlier_words(replica)
    word = "MASTER" if is_earlier else "SOURCE"
    settings = {
        "HOST": f"'{primary.host}'",
        "PORT": primary.port,
        "USER": f"'{primary.user}'",
        "PASSWORD": f"'{primary.password}'",
    }
    settings |= {"USE_GTID": "slave_pos"} if replica.flavor == "mariadb" else {"AUTO_POSITION": 1}
    if not is_earlier:
        settings["SSL"] = 1
    options = ", ".join(f"{word}_{name}={value}" for name, value in settings.items())
    run(replica, f"CHANGE {'MASTER' if is_earlier else 'REPLICATION SOURCE'} TO {options}")


def apply_until(replica: Server, gtids: str) -> None:
    """Has *replica*, which stands before them, apply all transactions of *gtids* and stop behind the last one."""
    until = f"master_gtid_pos = '{gtids}'" if replica.flavor == "mariadb" else f"SQL_AFTER_GTIDS = '{gtids}'"
    run(replica, f"START {_word(replica)} UNTIL {until}")
    deadline_s = time.monotonic() + _APPLIED_S
    while (status := _state(replica))["SQL_Running"] == "Yes":
        assert time.monotonic() < deadline_s, status
        time.sleep(0.01)
    assert not status["Last_SQL_Error"], status
    # The thread that takes the log from the primary is told to end, which is quicker than to have it wait.
    run(replica, f"STOP {_word(replica)}")


def wait_for(replica: Server, gtids: str) -> None:
    """Waits until *replica* has executed *gtids*."""
    question = "MASTER_GTID_WAIT(%s, 30)" if replica.flavor == "mariadb" else "WAIT_FOR_EXECUTED_GTID_SET(%s, 30)"
    assert replica.sql(f"SELECT {question}", gtids) == ((0,),), _status(replica)


def promote(replica: Server) -> None:
    """Ends the replication, so that *replica* goes on by itself."""
    run(replica, f"STOP {_word(replica)}", f"RESET {_word(replica)} ALL")


def _status(replica: Server) -> str:
    """What the replica says of itself, without what is empty."""
    return str({name: value for name, value in _state(replica).items() if value not in (None, "")})


def _state(replica: Server) -> dict[str, Any]:
    """What the replica says of itself; names without the word for what it is."""
    with replica.connect() as connection, connection.cursor(DictCursor) as cursor:
        cursor.execute(f"SHOW {_word(replica)} STATUS")
        (row,) = cursor.fetchall()
    return {name.removeprefix("Slave_").removeprefix("Replica_"): value for name, value in row.items()}


def _word(server: Server) -> str:
    return "SLAVE" if _has_earlier_words(server) else "REPLICA"


def _has_earlier_words(server: Server) -> bool:
    """Whether it knows masters and slaves alone, as MariaDB and MySQL 5.7 do."""
    ((version,),) = server.sql("SELECT @@version")
    return server.flavor == "mariadb" or str(version).startswith("5.7")
