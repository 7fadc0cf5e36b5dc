"""Whether a lake in S3 can be worked with: it is asked as a run would ask it, without Spark."""

from __future__ import annotations

from connectors.check.result import CheckResult, failed, ok
from connectors.config import PipelineConfig
from historian.errors import SinkError
from sinks.contract.storage import is_s3, share_said_settings
from sinks.spark_settings import said_settings

__all__ = ["s3_check"]


def s3_check(config: PipelineConfig, name: str, path: str) -> CheckResult | None:
    """Puts an object below *path*, lists, reads and removes it, by what Spark is told in the configuration and in its own files.

    None: it is not in S3.

    Args:
        name: of the check; that of the sink in the configuration.
    """
    from sinks.contract.probe import probe

    if not is_s3(path):
        return None
    share_said_settings(path, {**said_settings(), **dict(config.run.spark.conf)})
    try:
        probe(path)
    except SinkError as error:
        found = f"{path}: {error.what}: {error.found}"
        mend = f"correct {name}.path, spark.hadoop.fs.s3a.* of run.spark.conf, or the rights of its user"
        return failed(name, found, "objects can be written, listed, read and removed", mend)
    return ok(name, f"{path}: an object was written, listed, read and removed")
