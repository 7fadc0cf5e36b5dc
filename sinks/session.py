"""A Spark session with Delta, the way the command line, the demo and the tests want it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark_session"]

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    # A snapshot of Delta's log is a small data set; its default of 50 tasks costs more than the data.
    "spark.databricks.delta.snapshotPartitions": "1",
    # The rows that are merged are files already, so that a second copy of them only costs time.
    "spark.databricks.delta.merge.materializeSource": "none",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Off by default. The data source looks at filters before rows reach the JVM.
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # VACUUM lists a table with as many tasks, whatever its size; the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}


def spark_session(
    *,
    jars: Sequence[Path] = (),
    master: str = "local[2]",
    name: str = "historian",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running Spark session, or a new one that reads and writes Delta.

    Args:
        jars: Delta's jars; leave them out where the cluster has them.
        master: where Spark runs; with ``local`` it listens on the loopback interface only.
        name: that the session is listed under.
        settings: further Spark settings, which win over ours.
    """
    from pyspark.sql import SparkSession

    # Workers must run the interpreter that has our packages; the environment variable would win over the setting.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = {**_SETTINGS, "spark.pyspark.python": sys.executable}
    if jars:
        chosen["spark.jars"] = ",".join(map(str, jars))
    if master.startswith("local"):
        chosen |= _LOCAL
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
