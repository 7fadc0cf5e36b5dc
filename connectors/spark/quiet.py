"""Spark soon there, and without the messages about which a user can do nothing: at its start, and around errors of the data source."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from historian.errors import HistorianError

__all__ = ["SHOWS_EVERYTHING", "plain_errors", "quiet_child", "quiet_start"]

SHOWS_EVERYTHING: ContextVar[bool] = ContextVar("shows_everything", default=False)
"""Whether all of Spark's messages are shown."""

_LOG4J = Path(__file__).with_name("log4j2.properties")
_OPTIONS = "SPARK_SUBMIT_OPTS"
_STDERR = 2
# Java has no switch against it, and Spark's launcher always asks for the module.
_NOISE = re.compile(rb"WARNING: Using incubator modules: ")


@contextmanager
def quiet_start(*, loopback: bool = True) -> Iterator[None]:
    """A Spark session that is made inside says only errors. One that runs already stays as it is.

    A user's own ``log4j2.properties`` in ``SPARK_CONF_DIR`` wins over ours, and so does ``SPARK_LOCAL_IP``.
    Standard error is another one inside, so nobody else may write to it there.

    Args:
        loopback: whether nobody on another machine has to reach it.
    """
    if SHOWS_EVERYTHING.get() or _runs():
        yield
        return
    with _only_errors(loopback=loopback), _without_noise():
        yield


@contextmanager
def quiet_child(*, loopback: bool = True, everything: bool = False) -> Iterator[int | None]:
    """The same for Java that is started inside while others are at work: gives what it is to have as its standard error.

    What it writes there goes where this process's standard error leads by then. None: Java is to have that one itself.

    Args:
        loopback: as of :func:`quiet_start`.
        everything: whether all of its messages are shown; it may be started in a thread that does not know :data:`SHOWS_EVERYTHING`.
    """
    if everything or _runs():
        yield None
        return
    reading, writing = os.pipe()
    _copying(reading, _STDERR)
    try:
        with _only_errors(loopback=loopback):
            yield writing
    finally:
        os.close(writing)


def _runs() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None  # noqa: SLF001 there is no public way to ask


@contextmanager
def _only_errors(*, loopback: bool) -> Iterator[None]:
    from connectors.spark.java_options import java_options

    logging.getLogger().addFilter(_is_news)
    before = os.environ.get(_OPTIONS)
    # Java takes the last word, so what the user says wins.
    options = f"{java_options(before or '')} {before or ''}".strip()
    if not (Path(os.environ.get("SPARK_CONF_DIR", "")) / "log4j2.properties").is_file():
        options = f'{options} "-Dlog4j2.configurationFile={_LOG4J.as_uri()}"'
    os.environ[_OPTIONS] = options
    # Spark warns where the machine's name means the loopback interface; a local session listens there alone.
    if loopback:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_OPTIONS, None)
        else:
            os.environ[_OPTIONS] = before


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record tells more than that Java is gone, which Py4J logs before it raises the error."""
    return record.msg != "Exception while sending command."


@contextmanager
def _without_noise() -> Iterator[None]:
    """Processes that are started inside have a standard error from which lines of :data:`_NOISE` are left out, as long as they live."""
    real = os.dup(_STDERR)
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    _copying(reading, os.dup(real))
    try:
        yield
    finally:
        os.dup2(real, _STDERR)
        os.close(real)


def _copying(reading: int, to: int) -> None:
    threading.Thread(target=_copy, args=(reading, to), name="historian stderr", daemon=True).start()


def _copy(reading: int, to: int) -> None:
    """Until nobody can write any more. Lines go on being taken where nobody reads them, so that Java does not wait."""
    with os.fdopen(reading, "rb") as lines, os.fdopen(to, "wb", buffering=0, closefd=to != _STDERR) as stderr:
        for line in lines:
            if not _NOISE.match(line):
                with suppress(OSError):
                    stderr.write(line)


@contextmanager
def plain_errors() -> Iterator[None]:
    """An error of ours that is raised inside reaches Spark's driver as its own sentences, without a traceback.

    Spark asks the environment of the Python process that failed, which ends with the error. Any other error is told whole.
    """
    try:
        yield
    except HistorianError:
        main = getattr(sys.modules.get("__main__"), "__spec__", None)
        if main is not None and main.name.startswith("pyspark."):
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
