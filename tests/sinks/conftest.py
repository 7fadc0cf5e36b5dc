"""What tests of sinks share: a lake of two tables, and silence about the tables that they have stopped on purpose."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.held_rows import HeldLake
from lakes.sink_lab import INT, Lab
from sinks.delta import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> HeldLake:
    """A lake with one row in shop.t, none in shop.other."""
    lake = HeldLake(spark, tmp_path / "lake", Lab())
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    lake.lab.create("shop.other", {"id": INT})
    lake.lab.insert("shop.t", {"id": 1, "a": 1})
    lake.cut()
    return lake


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is logged but what is critical; faults are disarmed at the end."""
    with caplog.at_level(logging.CRITICAL):
        yield
    faults.disarm()
