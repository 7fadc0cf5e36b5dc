"""Random statements that change rows without row events, beside a connector that follows: each table goes on by itself, as the source is."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.replica import Replica
from workload.beside import beside
from workload.notes import Recorded
from workload.run import Workload
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASES = "^(shop|archive|brief.*)$"
FILLED_S = 2
"""The connector begins by then, so that there are rows to copy."""
LONGEST_S = 300


@pytest.mark.parametrize("seed", seeds((1,)))
@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_every_table_goes_on_by_itself_and_is_as_the_source(
    name: str, seed: int, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    _follow(fresh_server(name), seed, tmp_path, spark, changes=2_000, ddls=70, runs=4)


@pytest.mark.soak
@pytest.mark.parametrize("seed", seeds((1, 2, 3)))
@pytest.mark.parametrize("name", ["mysql9", "mysql8", "mysql57", "mariadb118", "mariadb1011", "mariadb105"])
def test_every_table_goes_on_by_itself_on_every_server(
    name: str, seed: int, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    _follow(fresh_server(name), seed + 100, tmp_path, spark, changes=6_000, ddls=150, runs=8)


def _follow(
    server: Server, seed: int, directory: Path, spark: SparkSession, *, changes: int, ddls: int, runs: int
) -> None:
    """A connector is started and stopped beside the writers, who wait for it now and then; then once more."""
    history = "history_{database}_{table}"
    backfill = "{chunk_rows: 100, connections: 1}"
    replica = Replica(server, directory / "replica", history=history, start="initial", backfill=backfill)
    turn = threading.Condition()
    written, done = threading.Event(), 0.0
    recorded: list[Recorded] = []

    def pace(share: float) -> None:
        with turn:
            assert turn.wait_for(lambda: share <= (done + 1) / (runs + 1), timeout=LONGEST_S)

    def write(_: threading.Event) -> None:
        try:
            workload = Workload(server, seed, changes=changes, ddls=ddls, rewrites=True, pace=pace)
            recorded.append(workload.run())
        finally:
            written.set()

    with beside(write):
        written.wait(FILLED_S)
        try:
            while not written.is_set():
                replica.run(spark)
                with turn:
                    done += 1
                    turn.notify_all()
        finally:
            with turn:
                done = math.inf
                turn.notify_all()
    stopped = replica.run(spark)
    (notes,) = recorded
    kinds = Counter(one.ddl.kind for one in notes.transactions if one.ddl is not None)
    print(f"{server.flavor} {server.version}, seed {seed}: {dict(kinds)}, given up {dict(notes.discarded)}")
    assert {} == stopped
    rows = assert_lake_is_what_a_server_holds(server, replica.reading(spark), DATABASES)
    repairs = replica.reading(spark).table("historian_repairs")
    print(f"{rows} rows, {repairs.num_rows} repairs")
    assert rows
    assert repairs.num_rows
