"""Spark's settings: which are ours, which the user has said before a session is made, and how much memory fits the machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

__all__ = [
    "DELTA_CATALOG",
    "DELTA_EXTENSION",
    "chosen_settings",
    "core_sites",
    "driver_memory",
    "is_local",
    "said_settings",
]

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_EXTENSIONS = "spark.sql.extensions"
_MASTER = "spark.master"
_JARS = "spark.jars"

_OURS = {
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
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

_S3 = {
    # The default one ends a read whose body was cut short; this one opens the object again.
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    # Hadoop's own list leaves out AWS's files and web identities, which Arrow looks at.
    "spark.hadoop.fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,"
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider,"
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
}

_ALWAYS_OURS = {"spark.sql.session.timeZone": "UTC"}
"""What rows mean depends on it, so nobody else says it."""

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # VACUUM lists a table with as many tasks, whatever its size; the default is 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
}

_BUNDLE = "#historian"
_BUNDLED = {
    "spark.executorEnv.PYTHONPATH": "historian/packages",
    "spark.executorEnv.NUMBA_CACHE_DIR": "historian/kernels",
}
"""Where executors find what `historian bundle` has put into an archive, which is unpacked under that name where they run."""

_GIB = 1 << 30
_LINE = re.compile(r"\s*([^#!\s:=][^\s:=]*)\s*[\s:=]\s*(.*?)\s*$")
_CONTROL_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def chosen_settings(
    said: Mapping[str, str], settings: Mapping[str, str], *, master: str | None, jars: str
) -> dict[str, str]:
    """The settings of a new session, its master among them: *settings*, then what is *said*, then ours.

    Args:
        said: by the user to Spark itself; see :func:`said_settings`.
        settings: of the configuration, which win over what is said elsewhere.
        master: of the configuration; None: what is said, else ``local[*]``.
        jars: paths joined by commas, beside those that the user names.
    """
    users = {**said, **settings}
    if master is not None:
        users[_MASTER] = master
    # Spark's settings would stand above what a core-site.xml of the user's says.
    ours = {**_OURS, **({} if core_sites() else _S3)}
    if is_local(users.setdefault(_MASTER, "local[*]")):
        ours |= _LOCAL
        ours["spark.sql.shuffle.partitions"] = str(max(2, len(os.sched_getaffinity(0))))
    ours["spark.driver.memory"] = driver_memory()
    chosen = {**ours, **users, **_ALWAYS_OURS}
    chosen[_EXTENSIONS] = _with(users.get(_EXTENSIONS, ""), DELTA_EXTENSION)
    if any(archive.strip().endswith(_BUNDLE) for archive in users.get("spark.archives", "").split(",")):
        for name, place in _BUNDLED.items():
            chosen.setdefault(name, place)
    for jar in filter(None, jars.split(",")):
        chosen[_JARS] = _with(chosen.get(_JARS, ""), jar)
    return chosen


def said_settings() -> dict[str, str]:
    """What ``spark-defaults.conf`` says, of ``$SPARK_CONF_DIR`` or of ``$SPARK_HOME``, as ``spark-submit`` would read it."""
    home = os.environ.get("SPARK_HOME")
    directory = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    path = None if directory is None else Path(directory, "spark-defaults.conf")
    if path is None or not path.is_file():
        return {}
    found = (_LINE.match(line) for line in path.read_text(encoding="utf-8").splitlines())
    return {match[1]: match[2] for match in found if match is not None and match[1].startswith("spark.")}


def core_sites() -> tuple[Path, ...]:
    """Each ``core-site.xml`` of the user's that Spark finds, in the directories that its scripts take."""
    home = os.environ.get("SPARK_HOME")
    said = [os.environ.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR")]
    found = (Path(place, "core-site.xml") for place in (*said, f"{home}/conf" if home else None) if place)
    return tuple(path for path in found if path.is_file())


def is_local(master: str) -> bool:
    """Whether all of Spark runs on this machine."""
    return master.startswith("local")


def driver_memory() -> str:
    """Java's heap on this machine: a quarter of the memory that the process may have, from 1 to 4 GiB.

    Half of it where that is less than 1 GiB. Rows are decoded and written outside of it.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _CONTROL_GROUPS:
        text = path.read_text(encoding="ascii").strip() if path.is_file() else ""
        if text.isdigit():
            total = min(total, int(text))
    heap = min(max(total // 4, min(_GIB, total // 2)), 4 * _GIB)
    return f"{heap >> 20}m"


def _with(names: str, name: str) -> str:
    """*names*, joined by commas, with *name* among them."""
    held = [each.strip() for each in names.split(",") if each.strip()]
    return ",".join(held if name in held else [*held, name])
