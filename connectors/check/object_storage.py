"""Whether a lake in S3 can be worked with: it is asked as a run would ask it, without Spark."""

from __future__ import annotations

from pathlib import Path

from connectors.check.result import CheckResult, failed, ok, warning
from connectors.config import PipelineConfig
from historian.errors import SinkError
from sinks.contract.storage import is_s3, share_said_settings
from sinks.spark_settings import core_sites, said_settings

__all__ = ["s3_check"]


def s3_check(config: PipelineConfig, name: str, path: str) -> CheckResult | None:
    """Puts an object below *path*, lists, reads and removes it, by what Spark is told in the configuration and in its own files.

    None: it is not in S3. A warning, and nothing is asked, where a ``core-site.xml`` tells a run what Hadoop alone can read.

    Args:
        name: of the check; that of the sink in the configuration.
    """
    from sinks.contract.probe import probe

    if not is_s3(path):
        return None
    hadoops = next(filter(_tells_of_s3, core_sites()), None)
    if hadoops is not None:
        found = f"{path}: not asked, for {hadoops} says how S3 is reached, and is read by Spark alone"
        return warning(name, found, "an answer of the bucket", "start a run: it says what the bucket refuses")
    share_said_settings(path, {**said_settings(), **dict(config.run.spark.conf)})
    try:
        probe(path)
    except SinkError as error:
        found = f"{path}: {error.what}: {error.found}"
        mend = f"correct {name}.path, spark.hadoop.fs.s3a.* of run.spark.conf, or the rights of its user"
        return failed(name, found, "objects can be written, listed, read and removed", mend)
    return ok(name, f"{path}: an object was written, listed, read and removed")


def _tells_of_s3(file: Path) -> bool:
    try:
        return "fs.s3a." in file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
