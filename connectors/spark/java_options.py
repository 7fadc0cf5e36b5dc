"""Options with which Java starts soon: classes that it need not load and verify anew, and less compiling while it starts.

`python -m connectors.java_classes` makes the archive of classes once. Where it does not fit Java, which looks at the paths and times of
jars, it goes on without it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from connectors.spark.jvm import cache_directory, find_java

__all__ = ["archive_path", "java_options"]

_LATE = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times Java's own: what a run does once is not compiled twice, and what it does all day is compiled well all the same."""
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
"""Java speaks on standard output of an archive that does not fit."""


def archive_path() -> Path:
    """Where the archive of classes is kept for this Java and this PySpark."""
    from pyspark import __file__ as pyspark
    from pyspark import __version__ as version

    key = hashlib.sha256(f"{find_java().resolve()} {version} {Path(pyspark).parent}".encode()).hexdigest()[:12]
    return cache_directory() / "java" / f"classes-{key}.jsa"


def java_options(others: str = "") -> str:
    """The options as ``SPARK_SUBMIT_OPTS`` has them; *others* are the user's, who may name another archive."""
    archive = archive_path()
    if "-XX:SharedArchiveFile" in others or "-XX:ArchiveClassesAtExit" in others or not archive.is_file():
        return " ".join(_LATE)
    return " ".join((*_LATE, f'"-XX:SharedArchiveFile={archive}"', *_QUIET))
