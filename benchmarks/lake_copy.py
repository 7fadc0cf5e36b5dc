"""Binlog files to a Delta changelog, against Spark copying the same rows from Parquet to Delta.

Both run in one Spark session, in turn, into new tables; rows are counted and summed on both sides. Prints medians, how the rate
grows from one file to ten, and last one JSON object. Run: ``python benchmarks/lake_copy.py [--rounds 3] [--rows 200000]``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm import delta_jars
from databases.servers import start_server
from sinks.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 10
CREATE = """
CREATE TABLE shop.orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL, status VARCHAR(20), total DECIMAL(12,2),
    placed DATETIME(3), touched TIMESTAMP(6) NULL, weight DOUBLE, note VARCHAR(200))
"""
INSERT = """
INSERT INTO shop.orders WITH RECURSIVE n (i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {last})
SELECT i, i % 9973, ELT(1 + i % 4, 'new', 'paid', 'shipped', 'returned'), (i % 100000) / 100,
    TIMESTAMP('2024-01-01') + INTERVAL i SECOND, TIMESTAMP('2024-01-01') + INTERVAL i * 1000 MICROSECOND, i / 7,
    CONCAT('order ', i, ' of customer ', i % 9973) FROM n
"""


def record(directory: Path, rows: int) -> list[Path]:
    """Binlog files of a real MySQL 9, *rows* inserts in each."""
    server = start_server("mysql9", directory / "server")
    try:
        connection = server.connect()
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
            cursor.execute("CREATE DATABASE shop")
            cursor.execute(CREATE)
            for number in range(FILES):
                cursor.execute(INSERT.format(first=number * rows, last=(number + 1) * rows))
                connection.commit()
                cursor.execute("FLUSH BINARY LOGS")
        connection.close()
        logs = sorted(path for path in (directory / "server" / "data").glob("binlog.[0-9]*"))[:FILES]
        return [Path(shutil.copy(path, directory)) for path in logs]
    finally:
        server.kill()


def ours(spark: SparkSession, files: list[Path], work: Path) -> float:
    """Seconds from the call to the last commit of our pipeline."""
    (work / "log").mkdir(parents=True)
    for path in files:
        (work / "log" / path.name).hardlink_to(path)
    config = work / "pipeline.yaml"
    config.write_text(
        f"""
name: bench
source: {{type: binlog-files, directory: "{work}/log", tables: ["shop.*"]}}
history: {{store: "sqlite:///{work}/store.db"}}
sinks: [{{type: delta, path: "{work}/lake", changelog: "changes_{{database}}_{{table}}", mirror: null}}]
run: {{trigger: once}}
"""
    )
    begin = time.perf_counter()
    run(load_config(config), once=True, spark=spark)
    return time.perf_counter() - begin


def copy(spark: SparkSession, source: Path, target: Path) -> float:
    """Seconds that Spark takes to copy the same rows from Parquet to Delta."""
    begin = time.perf_counter()
    spark.read.parquet(str(source)).write.format("delta").save(str(target))
    return time.perf_counter() - begin


def check(spark: SparkSession, left: Path, right: Path, expected: int) -> None:
    """Raises where the two tables differ in count or sums."""
    facts = [
        spark.read.format("delta")
        .load(str(path))
        .selectExpr("count(*)", "sum(id)", "sum(total)", "sum(length(note))")
        .first()
        for path in (left, right)
    ]
    if facts[0] != facts[1] or facts[0][0] != expected:
        raise SystemExit(f"rows differ: {facts}, expected {expected}")


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=200_000, help="in each file")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        directory = Path(name)
        files = record(directory, chosen.rows)
        size = sum(path.stat().st_size for path in files)
        print(f"{FILES} binlog files, {chosen.rows:,} rows and {size / FILES / 1e6:.0f} MB each", flush=True)
        spark = spark_session(jars=delta_jars(), name="bench", settings={"spark.driver.memory": "4g"})
        ours(spark, files[:1], directory / "warm")
        results = []
        for count in (1, FILES):
            taken: dict[str, list[float]] = {"ours": [], "other": []}
            for number in range(chosen.rounds):
                work = directory / f"{count}-{number}"
                taken["ours"].append(ours(spark, files[:count], work))
                changelog = work / "lake" / "changes_shop_orders"
                source = work / "parquet"
                spark.read.format("delta").load(str(changelog)).write.parquet(str(source))
                taken["other"].append(copy(spark, source, work / "copy"))
                check(spark, changelog, work / "copy", count * chosen.rows)
                shutil.rmtree(work)
            rates = {side: count * chosen.rows / statistics.median(seconds) for side, seconds in taken.items()}
            ratio = rates["ours"] / rates["other"]
            print(
                f"{count:2} files: changelog {rates['ours']:,.0f} rows/s, Spark's copy {rates['other']:,.0f} rows/s, "
                f"ratio {ratio:.2f} (median of {chosen.rounds})",
                flush=True,
            )
            suffix = "" if count == FILES else "_1_file"
            results.append({"name": f"changelog_vs_spark_copy{suffix}", **rates, "ratio": ratio})
        spark.stop()
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
