"""Configurations of connectors that begin by copying what their source holds."""

from __future__ import annotations

from pathlib import Path

from databases.servers import Server

__all__ = ["copying_config"]


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
