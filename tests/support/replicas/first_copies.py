"""Configurations of connectors that begin by copying what their source holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from databases.servers import Server

__all__ = ["copying_config", "ends_behind", "fill"]


def fill(server: Server, rows: int) -> None:
    """Makes the database ``c`` with one table of that many rows."""
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v VARCHAR(20))")
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, %s)", [(i, f"v{i}") for i in range(rows)])
        connection.commit()


def copying_config(server: Server, directory: Path, *, backfill: str = "{}") -> Path:
    """The path of a configuration that copies the database ``c`` of *server* into a lake in *directory*."""
    path = directory / "c.yaml"
    path.write_text(
        f"""
name: c
source:
  type: {server.flavor}
  host: {server.host}
  port: {server.port}
  user: {server.user}
  password: "{server.password}"
  tables: ["c.*"]
  start: initial
  backfill: {backfill}
history: {{store: "sqlite:///{directory}/store.db"}}
sinks: [{{type: delta, path: "{directory}/lake"}}]
"""
    )
    return path


def ends_behind(plans: int) -> Callable[..., None]:
    """What is told of each plan that is written, and ends the run with an error behind so many."""
    left = plans

    def report(*_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise RuntimeError("the run ends here")

    return report
