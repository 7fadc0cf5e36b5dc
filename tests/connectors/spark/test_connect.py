"""``format("historian")`` by Spark Connect: rows are those that the source gives, at once and as a stream."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from replicas.driven_source import read_batch

RECORDING = Path(__file__).parents[3] / "examples/shop/binlog"
CLIENT = """
import json, sys
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

options, directory = json.loads(sys.argv[1]), sys.argv[2]
spark = SparkSession.builder.remote("local[1]").getOrCreate()
pq.write_table(spark.read.format("historian").options(**options).load().toArrow(), directory + "/batch.parquet")
rows = spark.readStream.format("historian").options(name="connect", **options).load()
query = rows.writeStream.option("checkpointLocation", directory + "/checkpoint").trigger(availableNow=True)
query.start(directory + "/stream", format="parquet").awaitTermination()
try:
    spark.read.format("historian").options(**{**options, "table": "shop.no_such"}).load().count()
except Exception as error:
    print(str(error).splitlines()[0])
"""
"""A job of Spark Connect's, whose server is another process than its driver."""


@pytest.mark.soak
def test_a_client_of_spark_connect_reads_the_same_rows_at_once_and_as_a_stream(tmp_path: Path) -> None:
    config = tmp_path / "shop.yaml"
    config.write_text(
        f"name: shop\nsource: {{type: binlog-files, flavor: mysql, directory: {RECORDING}, tables: ['shop.*']}}\n"
        f"history: {{store: 'sqlite:///{tmp_path}/shop.db'}}\n"
    )
    options = {"config": str(config), "table": "shop.products"}
    # Spark's own tests, too, have ports of their own so.
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_TESTING": "1"}

    command = [sys.executable, "-c", CLIENT, json.dumps(options), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)

    assert done.returncode == 0, done.stderr[-3000:]
    wanted = _sorted(read_batch(options))
    assert wanted
    assert wanted == _sorted(pq.read_table(tmp_path / "batch.parquet"))
    assert wanted == _sorted(pq.read_table(tmp_path / "stream"))
    assert "shop.no_such" in done.stdout, done.stdout


def _sorted(rows: pa.Table) -> list[str]:
    """Files of Spark's writer have moments without a zone."""
    return sorted(json.dumps(row, default=lambda value: str(value).removesuffix("+00:00")) for row in rows.to_pylist())
