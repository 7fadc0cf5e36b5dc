"""Java for tests: its options, and an archive of classes that it need not load and verify anew in every process.

As a script: writes those of a session that makes a small lake and reads it. They are good for one environment, as Java compares
the paths and times of jars; where they do not fit it goes on without them.

Source: https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html (application class data sharing)
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["java_options"]

ARCHIVE = Path(__file__).parents[3] / "build" / "java-classes.jsa"

# A test's statements run once or a few times, so that to compile them well would take more of two cores than it gives, and so
# would collecting garbage beside them. What Spark does stays the same. Java reserves little for code that is compiled this
# way; a session that runs hundreds of plans would fill it.
_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java speaks on standard output of an archive that does not fit, and of classes that it leaves out."""


def java_options() -> str:
    """``SPARK_SUBMIT_OPTS`` for tests, and what executors are started with; with the archive of classes where `make test` has made it."""
    return f'{_OPTIONS} "-XX:SharedArchiveFile={ARCHIVE}" {_QUIET}' if ARCHIVE.exists() else _OPTIONS


def _write(archive: Path) -> None:
    unfinished = archive.with_suffix(".unfinished")
    os.environ["SPARK_SUBMIT_OPTS"] = f'{_OPTIONS} "-XX:ArchiveClassesAtExit={unfinished}" {_QUIET}'
    from pyspark import SparkContext

    from connectors.cli.terminal.sessions import session

    with tempfile.TemporaryDirectory() as directory:
        with session("classes", [directory], None) as spark:
            _use(spark, Path(directory))
        gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
    unfinished.rename(archive)


def _use(spark: SparkSession, directory: Path) -> None:
    """A table of every kind, written here and on executors, and read."""
    from lakes.lake import Lake
    from lakes.sink_lab import INT, Lab

    lake = Lake(spark, directory, Lab(), history="{database}_{table}_history")
    lake.lab.create("shop.t", {"id": INT, "a": INT})
    for turn in range(3):
        lake.lab.insert("shop.t", {"id": turn, "a": 1}, {"id": turn + 3, "a": 1})
        lake.cut(on_executors=turn == 2)
    lake.check_all()


if __name__ == "__main__":
    Path(sys.argv[1]).parent.mkdir(exist_ok=True)
    _write(Path(sys.argv[1]))
