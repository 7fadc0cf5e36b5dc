"""Runs that copy are killed, at their steps and at any moment, while others write: the last one ends with what the source holds."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.pipeline.run import run
from databases.servers import Server
from historian.store import Store
from lakes.killed_run import COPYING, run_killed
from replicas.copied_tables import change, make_tables
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica import Replica
from replicas.tracked import unlogged
from workload.beside import beside
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKFILL = "{chunk_rows: 60, connections: 2}"
PAUSE_S = 0.2
"""Between the writers' changes: the log is to hold some in each plan, and not more than a run can read."""
MOMENTS = 10


@pytest.mark.slow
def test_a_copy_that_is_killed_at_its_steps_ends_with_what_the_source_holds(
    fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    _kill(fresh_server("mysql9"), spark, tmp_path, ["rows_selected", "copy_stored", "changelog_committed"])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds((1,)))
@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_a_copy_that_is_killed_at_any_moment_ends_with_what_the_source_holds(
    name: str, seed: int, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    random = Random(seed)
    moments = [f"{random.uniform(0, 6):.2f} s" for _ in range(MOMENTS)]
    steps = [*COPYING, *(str(random.randrange(3, 60)) for _ in range(MOMENTS))]
    places = random.sample([*moments, *steps], len(moments) + len(steps))
    _kill(fresh_server(name), spark, tmp_path, places)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mysql8", pytest.param("mariadb118", marks=pytest.mark.soak)])
def test_a_run_of_initial_only_that_is_killed_in_mid_copy_goes_on_and_ends_by_itself(
    name: str, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    server = fresh_server(name)
    make_tables(server)
    lake = Replica(server, tmp_path / "lake", ["c"], start="initial_only", backfill="{chunk_rows: 60, connections: 1}")
    with _writing(server):
        assert run_killed(lake.path, "25").startswith("killed at")
        with closing(Store.open(lake.config.history.store)) as store:
            open_copies = [progress.rows for progress in store.copies().values() if not progress.is_done]
        assert sum(open_copies) > 0
        # Nobody says "once", and others write all the time.
        assert {} == run(replace(lake.config, run=replace(lake.config.run, once=False)), spark=spark)
    with closing(Store.open(lake.config.history.store)) as store:
        assert all(progress.is_done for progress in store.copies().values())
    assert {} == lake.run(spark)
    assert assert_lake_is_what_a_server_holds(server, lake.reading(spark), "^c$")


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_repairs_that_are_killed_at_their_steps_end_with_what_the_source_holds(
    name: str, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    """By ranges, by a condition, as a whole, and of the child of a cascade."""
    server = fresh_server(name)
    make_tables(server)
    server.sql("CREATE TABLE c.p (id INT PRIMARY KEY)")
    server.sql(
        "CREATE TABLE c.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES c.p (id) ON DELETE CASCADE)"
    )
    server.sql("INSERT INTO c.p SELECT id FROM c.t WHERE id < 20")
    server.sql("INSERT INTO c.child SELECT id, id % 20 FROM c.t")
    lake = Replica(server, tmp_path / "lake", ["c"], start="initial", backfill=BACKFILL)
    assert {} == lake.run(spark)
    killed = 0
    for number, place in enumerate(("rows_selected", "copy_stored", "changelog_committed", "repairs_recorded")):
        for table, *more in (("c.t", "--where", f"id % 3 = {number % 3}"), ("c.s",), ("c.t",)):
            unlogged(
                server,
                f"DELETE FROM c.s WHERE v % 50 = {number}",
                f"UPDATE c.t SET v = 'unseen {number}' WHERE id % 9 = {number}",
            )
            done = CliRunner().invoke(app, ["backfill", str(lake.path), "--table", table, *more])
            assert done.exit_code == 0, done.output
            server.sql(f"DELETE FROM c.p WHERE id = {number * 3 + len(more) + len(table)}")
            killed += run_killed(lake.path, place).startswith("killed at")
            assert {} == lake.run(spark)
    assert {} == lake.run(spark)
    assert assert_lake_is_what_a_server_holds(server, lake.reading(spark), "^c$")
    assert killed > 6


def _kill(server: Server, spark: SparkSession, directory: Path, places: list[str]) -> None:
    make_tables(server)
    lake = Replica(server, directory / "lake", ["c"], start="initial", backfill=BACKFILL)
    killed = 0
    with _writing(server):
        for place in places:
            told = run_killed(lake.path, place)
            print(told)
            killed += told.startswith("killed at")
    assert {} == lake.run(spark)
    assert assert_lake_is_what_a_server_holds(server, lake.reading(spark), "^c$")
    assert killed > len(places) // 2


def _writing(server: Server) -> AbstractContextManager[None]:
    """Others write meanwhile."""

    def write(ended: threading.Event) -> None:
        for turn in itertools.count():
            change(server, turn)
            if ended.wait(PAUSE_S):
                return

    return beside(write)
