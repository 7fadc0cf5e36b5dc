"""Random DML and DDL on real servers, replicated into Delta, compared value by value with what the writers noted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from historian.errors import EditRefused
from historian.positions import GtidSet, MariadbGtids
from lakes.few_rows import as_for_few_rows
from replicas.replica import Replica
from workload.folding import assert_notes_fold_to_final
from workload.notes import Recorded
from workload.run import Workload
from workload.seeds import seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLAVORS = {"mysql": ("mysql9", "mysql8", "mysql57"), "mariadb": ("mariadb105", "mariadb1011", "mariadb118")}
RUNS = 4
PRESETS = ("strict", "lenient", "evolve")
LOOKS = 4
"""Moments at which the server's rows are noted, to compare the history as of then with them."""


def _cases() -> list[tuple[str, int]]:
    """Flavors and seeds: those that the environment names on both flavors, else few that have all presets, live and behind the writers."""
    named = [(flavor, seed) for seed in seeds(()) for flavor in FLAVORS]
    return named or [("mysql", 13), ("mysql", 14), ("mariadb", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("flavor, seed", _cases())
def test_lake_equals_source(
    flavor: str, seed: int, fresh_server: Callable[..., Server], spark: SparkSession, tmp_path: Path
) -> None:
    """Three seeds from a multiple of three on have all presets; nine, all presets on all servers.

    Odd seeds: the connector runs live beside the writers. Even ones: it begins when all is done. Both are restarted.
    Where the preset is lenient, columns get types too that no lake's column follows. Of MariaDB these lakes, of MySQL the strict
    ones, are such as delta-rs reads, and no type widens: that of a key's column would be a new one, which stops its table.
    """
    names = FLAVORS[flavor]
    server = fresh_server(names[seed % len(names)])
    preset = PRESETS[(seed + seed // 3) % len(PRESETS)]
    print(f"seed {seed} on {server.flavor} {server.version}, evolution {preset}")
    plain = preset == {"mysql": "strict", "mariadb": "lenient"}[flavor]
    history = "history_{database}_{table}"
    replica = Replica(server, tmp_path / "replica", history=history, evolution=preset, plain=plain, positions=True)
    workload = partial(Workload, server, seed, looks=LOOKS, conversions=preset == "lenient", widenings=not plain)
    # What is evolved is so in a session as users have it.
    with nullcontext() if preset == "evolve" else as_for_few_rows(spark):
        recorded = _recorded(workload, replica, spark, beside=seed % 2 == 1)
        _check(recorded, replica, spark, preset, plain=plain)


def _recorded(workload: Callable[..., Workload], replica: Replica, spark: SparkSession, *, beside: bool) -> Recorded:
    if beside:
        return _record_beside(workload, replica, spark)
    recorded = workload().run()
    for until in _quarters(recorded, recorded.flavor):
        _run(replica, spark, until=until)
    _run(replica, spark)
    return recorded


def _check(recorded: Recorded, replica: Replica, spark: SparkSession, preset: str, *, plain: bool) -> None:
    assert recorded.change_count >= 20_000
    assert recorded.ddl_count >= 40
    assert len(recorded.looks) == LOOKS
    converted = sum(t.ddl is not None and t.ddl.kind == "convert" for t in recorded.transactions)
    assert (converted > 0) == (preset == "lenient")
    assert_notes_fold_to_final(recorded)
    replica.assert_equals(recorded, spark)
    if preset == "evolve":
        replica.assert_spark_reads_the_same(spark)
    if plain:
        replica.assert_delta_rs_reads_the_same(spark)


def _run(replica: Replica, spark: SparkSession, *, until: str | None = None) -> None:
    """A run; one that ends at an edit that its preset refuses goes on under another preset, and the next one is as before."""
    try:
        replica.run(spark, until=until)
    except EditRefused as refused:
        print(refused)
        preset = replica.evolution
        replica.evolve_by("evolve")
        replica.run(spark, until=until)
        replica.evolve_by(preset)


def _record_beside(made: Callable[..., Workload], replica: Replica, spark: SparkSession) -> Recorded:
    """Runs the workload with the connector started and stopped beside it; the writers wait for it now and then."""
    runs = 0
    turn = threading.Condition()

    def pace(share: float) -> None:
        with turn:
            turn.wait_for(lambda: share <= (runs + 1) / RUNS, timeout=120)

    workload = made(pace=pace)
    result: list[Recorded | BaseException] = []

    def write() -> None:
        try:
            result.append(workload.run())
        except BaseException as error:  # noqa: BLE001 raised again below
            result.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        _run(replica, spark)
        with turn:
            runs += 1
            turn.notify_all()
    writer.join()
    _run(replica, spark)
    if isinstance(result[0], BaseException):
        raise result[0]
    assert runs >= 3
    return result[0]


def _quarters(recorded: Recorded, flavor: str) -> list[str]:
    """Three positions inside the log, each behind a whole transaction."""
    gtids = [transaction.gtid for transaction in recorded.transactions]
    positions = []
    for part in (1, 2, 3):
        prefix = gtids[: len(gtids) * part // 4]
        if flavor == "mariadb":
            positions.append(str(MariadbGtids.parse(prefix[-1])))
        else:
            sources: dict[str, list[tuple[int, int]]] = {}
            for gtid in prefix:
                source, _, number = gtid.rpartition(":")
                sources.setdefault(source, []).append((int(number), int(number)))
            positions.append(str(GtidSet.of(sources)))
    return positions
