"""Rows of a live MySQL 9 table copied into Delta by a run of our pipeline, against Spark's JDBC source with the same splits.

All in one Spark session, in turn, into new tables; rows are counted and summed on both sides.

``delta_vs_spark_jdbc``: rows a second into a mirror, ours through those of ``spark.read.jdbc(…).write.format("delta")``, over as many
connections. ``verify_vs_copy``: seconds of what `historian verify` does for that mirror, through those of its copy. ``under_load``: rows a
second of the copy while a process updates 5,000 rows a second of the table, through those without; the mirror is compared with the server
afterwards. Run: ``python benchmarks/backfill_lake.py [--rounds 3] [--rows 5000000]``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import report
from orders import create_orders, fill_orders

from connectors.cli.heal import held_tracker
from connectors.cli.verify import differing_tables
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm import Jar, cache_directory, delta_jars, fetch_jars
from databases.servers import start_server
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

CONNECTIONS = 2
CHANGES_PER_S, STATEMENT_ROWS = 5_000, 100
DRIVER = Jar(
    organisation="com.mysql",
    name="mysql-connector-j",
    revision="9.4.0",
    sha256="49ed93c8b2bea9cb0929b85a8a28837b191d0f8eac6919fdcef16e36e2cd53b3",
)
SUMS = ("COUNT(*)", "SUM(id)", "SUM(amount)", "SUM(LENGTH(note))", "SUM(quantity)")


def configured(server: Server, work: Path) -> Path:
    """The configuration of a connector that copies the table into a mirror."""
    work.mkdir(parents=True)
    config = work / "pipeline.yaml"
    config.write_text(
        f"""
name: bench
source:
  type: mysql
  host: {server.host}
  port: {server.port}
  user: {server.user}
  password: "{server.password}"
  tls: {{mode: disabled}}
  server_id: 4711
  tables: ["bench.orders"]
  start: initial_only
  backfill: {{connections: {CONNECTIONS}}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: null, mirror: "{{database}}_{{table}}"}}]
"""
    )
    return config


def ours(spark: SparkSession, server: Server, work: Path) -> float:
    """Seconds from the call to the last commit of our pipeline."""
    config = load_config(configured(server, work))
    begin = time.perf_counter()
    run(config, spark=spark)
    return time.perf_counter() - begin


def theirs(spark: SparkSession, server: Server, rows: int, target: Path) -> float:
    """Seconds that Spark takes by its JDBC source."""
    begin = time.perf_counter()
    spark.read.jdbc(
        f"jdbc:mysql://{server.host}:{server.port}/bench?useSSL=false&allowPublicKeyRetrieval=true",
        "orders",
        column="id",
        lowerBound=0,
        upperBound=rows,
        numPartitions=CONNECTIONS,
        properties={"user": server.user, "password": server.password, "driver": "com.mysql.cj.jdbc.Driver"},
    ).write.format("delta").save(str(target))
    return time.perf_counter() - begin


def verified(spark: SparkSession, work: Path) -> float:
    """Seconds to compare the mirror with the server."""
    said = io.StringIO()
    begin = time.perf_counter()
    with held_tracker(work / "pipeline.yaml") as (settings, tracker), contextlib.redirect_stdout(said):
        differing = differing_tables(spark, settings, tracker)
    seconds = time.perf_counter() - begin
    if differing or "0 changelog rows" not in said.getvalue():
        raise SystemExit(f"expected no difference, found {said.getvalue()}")
    return seconds


@contextlib.contextmanager
def changed(server: Server, rows: int) -> Iterator[None]:
    """While a process of its own updates rows."""
    where = [server.host, str(server.port), server.user, server.password, str(rows)]
    with subprocess.Popen(
        [sys.executable, __file__, "--write", *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        yield
        said, _ = writer.communicate()
    rate = float(said)
    print(f"meanwhile {rate:,.0f} rows changed a second", flush=True)
    if rate < 0.9 * CHANGES_PER_S:
        raise SystemExit(f"expected {CHANGES_PER_S} changes a second")


def write(host: str, port: str, user: str, password: str, rows: str) -> None:
    """Updates rows at the rate that is wanted until the standard input ends; prints the rate."""
    connection = pymysql.connect(host=host, port=int(port), user=user, password=password, autocommit=True)
    with contextlib.closing(connection), connection.cursor() as cursor:
        begin, done, ends = time.perf_counter(), 0, False
        print("begun", flush=True)
        while not ends:
            first = done * 7919 % (int(rows) - STATEMENT_ROWS)
            cursor.execute(
                "UPDATE bench.orders SET quantity = MOD(quantity + 1, 100), note = 'changed' WHERE id BETWEEN %s AND %s",
                (first, first + STATEMENT_ROWS - 1),
            )
            done += STATEMENT_ROWS
            pause_s = max(0.0, begin + done / CHANGES_PER_S - time.perf_counter())
            ends = bool(select.select([sys.stdin], [], [], pause_s)[0])
        print(done / (time.perf_counter() - begin), flush=True)


def check(spark: SparkSession, server: Server, *tables: Path) -> None:
    """Raises where tables are not in count and sums what the server says."""
    wanted = tuple(map(str, server.sql(f"SELECT {', '.join(SUMS)} FROM bench.orders")[0]))
    for path in tables:
        row = spark.read.format("delta").load(str(path)).selectExpr(*SUMS).first()
        if row is None or tuple(map(str, row)) != wanted:
            raise SystemExit(f"{path.name}: expected {wanted}, found {row}")


def measure(spark: SparkSession, server: Server, directory: Path, rows: int, rounds: int) -> list[dict[str, Any]]:
    """In turn, after a round that is not counted."""
    found: list[tuple[float, float, float, float]] = []
    for number in range(-1, rounds):
        work = directory / str(number)
        mine = ours(spark, server, work)
        other = theirs(spark, server, rows, work / "jdbc")
        check(spark, server, work / "lake" / "bench_orders", work / "jdbc")
        compared = verified(spark, work)
        with changed(server, rows):
            loaded = ours(spark, server, directory / "loaded")
        run(load_config(directory / "loaded" / "pipeline.yaml"), once=True, spark=spark)
        verified(spark, directory / "loaded")
        shutil.rmtree(work)
        shutil.rmtree(directory / "loaded")
        rates = [rows / seconds for seconds in (mine, other, loaded)]
        print(
            "copied rows/s: {:,.0f}, by JDBC {:,.0f}, under load {:,.0f}; ".format(*rates)
            + f"compared in {compared:.1f} s, copied in {mine:.1f} s",
            flush=True,
        )
        if number >= 0:
            found.append((mine, other, loaded, compared))
    mine, other, loaded, compared = (statistics.median(column) for column in zip(*found, strict=True))
    pairs = (
        ("delta_vs_spark_jdbc", rows / mine, rows / other, [b / a for a, b, _, _ in found]),
        ("under_load", rows / loaded, rows / mine, [a / c for a, _, c, _ in found]),
        ("verify_vs_copy", compared, mine, [d / a for a, _, _, d in found]),
    )
    return [
        {"name": name, "ours": round(one, 1), "other": round(two, 1), "ratio": round(statistics.median(ratios), 2)}
        for name, one, two, ratios in pairs
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=5_000_000)
    options.add_argument("--write", nargs=5, help="only update rows of that server")
    chosen = options.parse_args()
    if chosen.write:
        write(*chosen.write)
        return
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        server = start_server("mysql9", directory / "server", "innodb_buffer_pool_size=2G")
        try:
            with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:
                create_orders(cursor)
                fill_orders(cursor, chosen.rows)
                connection.commit()
            jars = [*delta_jars(), *fetch_jars([DRIVER], cache_directory() / "jars")]
            spark = spark_session(jars=jars, name="bench", settings={"spark.driver.memory": "4g"})
            results = measure(spark, server, directory, chosen.rows, chosen.rounds)
            spark.stop()
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
