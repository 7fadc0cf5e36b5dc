"""A first copy for `make demo`: a table whose log is purged is copied from a live server while others change its rows."""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from connectors.config import load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.pipeline import Pipeline
from connectors.pipeline.run import run
from databases.servers import Server, start_server
from historian.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console

    from connectors.config import PipelineConfig
    from historian.plans.plans import Plan

__all__ = ["show_first_copy"]

_CONFIG = Path(__file__).parent / "first_copy.yaml"
_SEED = 20250302
_ROWS = 100_000
_PAUSE_S = 0.002
_COLUMNS = ("id", "customer", "total", "weight", "placed", "note")
_TABLE = """CREATE TABLE shop.orders (
  id INT PRIMARY KEY, customer VARCHAR(40) NOT NULL, total DECIMAL(10,2), weight DOUBLE, placed DATETIME(3), note TEXT)"""
_FILL = f"""INSERT INTO shop.orders
  SELECT seq * 2, CONCAT('Kundin № ', seq % 997), seq / 7, seq / 3, '2024-02-29' + INTERVAL seq SECOND, IF(seq % 3, NULL, MD5(seq))
  FROM shop.seq_1_to_{_ROWS}"""
_CHANGES = (
    "UPDATE shop.orders SET total = total + 1.25 WHERE id BETWEEN {key} AND {key} + 4",
    "UPDATE shop.orders SET note = 'changed ✓', weight = weight * 1.1 WHERE id = {key}",
    "DELETE FROM shop.orders WHERE id = {key}",
    "INSERT IGNORE INTO shop.orders VALUES ({key} + 1, 'new', {key} / 100, NULL, NOW(3), 'came meanwhile')",
)


@dataclass(slots=True)
class _Copy:
    """What a run has done so far."""

    plans: int = 0
    rows: int = 0
    is_done: bool = False


def show_first_copy(console: Console, spark: SparkSession) -> bool:
    """Copies the table and compares it with the server; whether all values are equal."""
    console.rule("[bold]A first copy: rows from before the log, from a live MariaDB server")
    with tempfile.TemporaryDirectory(prefix="historian-demo-") as directory:
        server = start_server("mariadb1011", Path(directory))
        try:
            _fill(server)
            config = _config(server)
            with _changing(server):
                copy = _copied(config, spark)
            run(config, once=True, spark=spark)
            return _compared(console, server, config, spark, copy)
        finally:
            server.stop()


def _fill(server: Server) -> None:
    """Makes the table, and purges the log that tells of its rows."""
    for statement in ("CREATE DATABASE shop", _TABLE, _FILL, "FLUSH BINARY LOGS"):
        server.sql(statement)
    last = server.sql("SHOW BINARY LOGS")[-1][0]
    server.sql(f"PURGE BINARY LOGS TO '{last}'")


def _config(server: Server) -> PipelineConfig:
    known = {"PORT": str(server.port), "USER": server.user, "PASSWORD": server.password}
    return load_config(_CONFIG, environment={f"FIRST_COPY_{name}": value for name, value in known.items()})


@contextmanager
def _changing(server: Server) -> Iterator[None]:
    """Someone changes rows meanwhile, one transaction after the other."""
    stopping = threading.Event()

    def change() -> None:
        rng = random.Random(_SEED)
        with server.connect() as connection, connection.cursor() as cursor:
            while not stopping.wait(_PAUSE_S):
                cursor.execute(rng.choice(_CHANGES).format(key=2 * rng.randint(1, _ROWS)))
                connection.commit()

    writer = threading.Thread(target=change)
    writer.start()
    try:
        yield
    finally:
        stopping.set()
        writer.join()


def _copied(config: PipelineConfig, spark: SparkSession) -> _Copy:
    """Runs the connector until all rows are copied."""
    copy, stopping = _Copy(), threading.Event()

    def report(plan: Plan, _stopped: object) -> None:
        copies = [table.copy for table in plan.tables if table.copy is not None]
        copy.plans += 1
        copy.rows += sum(each.rows for each in copies)
        copy.is_done = copy.is_done or any(each.is_done for each in copies)
        if copy.is_done:
            stopping.set()

    with Pipeline.opened(config, spark, on_written(report)) as pipeline:
        pipeline.run(once=False, until=None, stopping=stopping)
    return copy


def _compared(console: Console, server: Server, config: PipelineConfig, spark: SparkSession, copy: _Copy) -> bool:
    """Compares the mirror with the server, value by value, and prints what came of it."""
    lake = Path(config.sinks[0].path)
    with closing(Store.open(config.history.store)) as store:
        stopped = [quarantine.reason for _, _, quarantine in store.stopped()]
    ours = _by_key(spark.read.format("delta").load(f"{lake}/orders").select(*_COLUMNS).toArrow().to_pylist())
    theirs = {row[0]: row for row in server.sql(f"SELECT {', '.join(_COLUMNS)} FROM shop.orders")}
    changes = spark.read.format("delta").load(f"{lake}/orders_changes").count() - copy.rows
    different = sum(ours.get(key) != theirs.get(key) for key in ours.keys() | theirs.keys())
    equal = copy.is_done and changes > 0 and not different and not stopped
    shown = Table("table", "rows copied", "in plans", "changelog rows of changes", "rows now", "values compared", "")
    values, verdict = len(theirs) * len(_COLUMNS), "all equal" if equal else f"{different:,} ROWS DIFFER"
    numbers = (copy.rows, copy.plans, changes, len(theirs), values)
    shown.add_row("shop.orders", *(f"{number:,}" for number in numbers), verdict)
    console.print(shown, style="green" if equal else "bold red")
    for reason in stopped:
        console.print(reason, style="bold red", markup=False)
    return equal


def _by_key(rows: list[dict[str, Any]]) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: tuple(row[name] for name in _COLUMNS) for row in rows}
