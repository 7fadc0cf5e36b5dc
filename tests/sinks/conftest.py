"""What tests of sinks share: a lake of two tables, and silence about the tables that they have stopped on purpose."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from held_rows import HeldLake
from sink_lab import INT, Lab
from sinks.delta import faults

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture(scope="module", autouse=True)
def _interpreted(request: pytest.FixtureRequest) -> Iterator[None]:
    """Spark interprets expressions, which is an eighth of the processor time less than to compile classes for a few rows each.

    Lakes of tests/integration, which are compared with their servers, are written with what Spark compiles.
    """
    if not any(item.get_closest_marker("spark") for item in request.session.items if item.path == request.path):
        yield
        return
    settings = request.getfixturevalue("spark").conf
    for name, value in _INTERPRETED.items():
        settings.set(name, value)
    yield
    for name in _INTERPRETED:
        settings.unset(name)


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
