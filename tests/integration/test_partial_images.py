"""Row images that lack columns from the server to people, typed rows and mirrors: nothing becomes NULL on the way."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from image_lab import DATABASE, ImageLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from servers import Server

ROW = """INSERT INTO tail_it.t VALUES (1, 'v', '{"a": 1, "b": "long enough to be worth a partial update, they say"}')"""


def config(path: Path, server: Server, database: str) -> Path:
    text = f"""
        name: partial
        source:
          kind: {server.flavor}
          host: {server.host}
          port: {server.port}
          user: {server.user}
          password: "{server.password}"
          tls: {{mode: disabled}}
          tables: ["{database}.*"]
          start: earliest
        sinks:
          - {{kind: delta, path: {path / "lake"}}}
        history: {{store: "sqlite:///{path / "history.db"}"}}
        run: {{checkpoint: {path / "checkpoint"}}}
    """
    made = path / "pipeline.yaml"
    made.write_text("\n".join(line[8:] for line in text.splitlines()))
    return made
