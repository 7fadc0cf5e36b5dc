"""Replication between two test servers."""

from __future__ import annotations

from pymysql.cursors import DictCursor

from databases.servers import Server
from logs.binlog_lab import run

__all__ = ["follow", "promote", "wait_for"]


def follow(replica: Server, primary: Server) -> None:
    """Makes *replica* take its transactions from *primary*, by GTID."""
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
    if is_earlier:
        run(replica, f"CHANGE MASTER TO {options}", "START SLAVE")
    else:
        run(replica, f"CHANGE REPLICATION SOURCE TO {options}", "START REPLICA")


def wait_for(replica: Server, gtids: str) -> None:
    """Waits until *replica* has executed *gtids*."""
    question = "MASTER_GTID_WAIT(%s, 30)" if replica.flavor == "mariadb" else "WAIT_FOR_EXECUTED_GTID_SET(%s, 30)"
    assert replica.sql(f"SELECT {question}", gtids) == ((0,),), _status(replica)


def promote(replica: Server) -> None:
    """Ends the replication, so that *replica* goes on by itself."""
    word = "SLAVE" if _has_earlier_words(replica) else "REPLICA"
    run(replica, f"STOP {word}", f"RESET {word} ALL")


def _status(replica: Server) -> str:
    """What the replica says of itself, without what is empty."""
    word = "SLAVE" if _has_earlier_words(replica) else "REPLICA"
    with replica.connect() as connection, connection.cursor(DictCursor) as cursor:
        cursor.execute(f"SHOW {word} STATUS")
        return str([{name: value for name, value in row.items() if value not in (None, "")} for row in cursor])


def _has_earlier_words(server: Server) -> bool:
    """Whether it knows masters and slaves alone, as MariaDB and MySQL 5.7 do."""
    ((version,),) = server.sql("SELECT @@version")
    return server.flavor == "mariadb" or str(version).startswith("5.7")
