"""A connector on a database of its own; a file of tests says with its fixture ``source`` on which servers."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from databases.servers import Server
from replicas.tracked import Tracked

_NUMBERS = count(1)


@pytest.fixture
def database(source: Server) -> str:
    name = f"tracked_{next(_NUMBERS)}"
    source.sql(f"CREATE DATABASE {name}")
    return name


@pytest.fixture
def tracked(source: Server, database: str, tmp_path: Path) -> Tracked:
    """A connector that begins at the log's present end, and has looked at it."""
    found = Tracked.of(source, tmp_path, database)
    found.begin()
    return found
