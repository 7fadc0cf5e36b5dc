"""Checks of what a run would make before its first row: store and lake, where they are directories or in S3; and Spark's expressions."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from connectors.check.object_storage import s3_check
from connectors.check.result import CheckResult, failed
from connectors.config import PipelineConfig, SinkConfig
from connectors.sink_kinds import lake
from historian.errors import HistorianError

__all__ = ["place_checks", "syntax_checks"]


def place_checks(config: PipelineConfig) -> Iterator[CheckResult]:
    """Whether the store's file and the sinks' directories are there, or can be made; and whether a lake in S3 can be worked with.

    Leaves nothing behind but, in S3, the mark of an empty directory where a sink's was not there.
    """
    scheme, _, path = config.history.store.partition(":///")
    if scheme.startswith("sqlite") and path and not path.startswith(":memory:"):
        yield from _check("history store", Path(path).parent, "history.store")
    for at, sink in enumerate(config.sinks):
        if (asked := s3_check(config, f"sinks[{at}]", sink.path)) is not None:
            yield asked
        elif sink.path and "://" not in sink.path:
            yield from _check(f"sinks[{at}]", Path(sink.path), f"sinks[{at}].path")


def _check(name: str, directory: Path, key: str) -> Iterator[CheckResult]:
    there = next(path for path in (directory, *directory.parents) if os.path.exists(path))  # noqa: PTH110 raises nothing
    mend = f"correct {key}, or the rights of {there}"
    if not there.is_dir():
        yield failed(name, f"{there} is no directory", f"a directory, {directory}", mend)
        return
    try:
        # Rights alone do not tell: root has them in /proc too, and on what is mounted read-only.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        found = f"{there} cannot be written to: {error.strerror or error}"
        yield failed(name, found, f"{directory}, there or to be made", mend)


def syntax_checks(sinks: Sequence[SinkConfig]) -> Iterator[CheckResult]:
    """Whether Spark can parse the sinks' expressions; what their columns are is not known yet. Starts Java where there are some."""
    texts = {place: text for at, sink in enumerate(sinks) for place, text in _texts(f"sinks[{at}].tables", sink)}
    if not texts:
        return
    try:
        found = _parsed(texts)
    except HistorianError as error:
        yield failed("expressions", str(error), "Java, which parses them", error.next_step)
        return
    for place, reason in found.items():
        yield failed(place, f"{texts[place]}: {reason}", "an expression of Spark SQL", f"correct {place}")


def _texts(place: str, sink: SinkConfig) -> Iterator[tuple[str, str]]:
    settings = lake(sink)
    for pattern, chosen in () if settings is None else settings.tables:
        for key, value in chosen:
            if key == "where":
                yield f"{place}[{pattern!r}].where", str(value)
            elif key == "compute":
                yield from ((f"{place}[{pattern!r}].compute.{name}", text) for name, text in value)


def _parsed(texts: Mapping[str, str]) -> dict[str, str]:
    """The reasons for which Spark's parser refuses *texts*, by their keys."""
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    from connectors.spark.jvm import find_java
    from connectors.spark.quiet import quiet_start

    find_java()
    if (
        "PYSPARK_GATEWAY_PORT" in os.environ
    ):  # Java is there, and ends with what is ours of it: the run's session needs it
        SparkContext._ensure_initialized()  # noqa: SLF001 same
    running: Any = SparkContext._gateway  # noqa: SLF001 there is no public way to ask
    with quiet_start():
        gateway: Any = running or launch_gateway()  # type: ignore[no-untyped-call]
    try:
        parser: Any = gateway.jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
        found = {}
        for place, text in texts.items():
            try:
                parser.parseExpression(text)
            except (Py4JJavaError, PySparkException) as error:  # the latter where a session has been
                told = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
                found[place] = told.strip().splitlines()[0]
        return found
    finally:
        if running is None:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
