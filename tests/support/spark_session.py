"""A small local Spark session with Delta for tests, which starts without the network and leaves nothing behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.jvm import delta_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["start_spark"]


def start_spark(directory: Path, *, master: str = "local[2]", **settings: str) -> SparkSession:
    """Starts Spark with Delta; what it writes by itself goes to ``directory``.

    Args:
        directory: warehouse, metastore and temporary files.
        master: ``local[2]``, or ``local-cluster[2,1,1024]`` for executors that are other processes.
        settings: Spark settings with ``__`` for each dot; they win.
    """
    from pyspark.sql import SparkSession

    defaults = {
        "spark.jars": ",".join(map(str, delta_jars())),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={directory / 'derby'}",
        "spark.local.dir": str(directory / "local"),
        "spark.pyspark.python": sys.executable,
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    wanted = {key.replace("__", "."): value for key, value in settings.items()}
    builder = SparkSession.builder.master(master).appName("tests")
    for key, value in {**defaults, **wanted}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
