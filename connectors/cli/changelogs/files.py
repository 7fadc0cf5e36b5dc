"""What the commands on changelogs read and write: Delta tables and directories of Parquet files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.work_progress import spark_progress
from historian.errors import HistorianError, SinkError, SourceError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

    from sinks.delta.lake.recorded import RecordedSchema

__all__ = ["Key", "Out", "Source", "format_of", "names_of", "read", "recorded", "require", "write"]

Source = Annotated[
    str, typer.Argument(metavar="PATH", help="A Delta table, or a directory of Parquet files.", show_default=False)
]
Key = Annotated[
    str,
    typer.Option(
        "--key", metavar="COLUMNS", help="The key's columns, with commas between; by default as the lake has it."
    ),
]
Out = Annotated[str, typer.Option("--out", metavar="OUT", help="Where to write it, as Delta or Parquet like PATH.")]

_TIMES = "spark.sql.parquet.outputTimestampType"
_RAISED = re.compile(r"^historian\.errors\.\w+: (.+)$|\[USER_RAISED_EXCEPTION\] (.+) SQLSTATE", re.MULTILINE)


def names_of(columns: str) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in columns.split(",") if name.strip())


def format_of(path: str) -> str | None:
    """Spark's name of the format at *path*; None where nothing is there."""
    import pyarrow.fs as pafs

    from sinks.contract.storage import located

    system, root = located(path if "://" in path else str(Path(path).absolute()))
    found = {info.base_name: info.type for info in system.get_file_info(pafs.FileSelector(root, allow_not_found=True))}
    if found.get("_delta_log") is pafs.FileType.Directory:
        return "delta"
    return "parquet" if any(name.endswith(".parquet") for name in found) else None


def read(spark: SparkSession, path: str, needed: Iterable[str] = ()) -> DataFrame:
    """The rows at *path*, which have the columns *needed*."""
    kind = format_of(path)
    if kind is None:
        raise SourceError("no table is there", where=path, expected="a Delta table, or a directory of Parquet files")
    rows = spark.read.format(kind).option("mergeSchema", "true").load(path)
    require(rows, needed, path)
    return rows


def require(rows: DataFrame, names: Iterable[str], path: str) -> None:
    """Refuses *rows*, which are of what is at *path*, where they lack one of the columns *names*."""
    missing = [name for name in dict.fromkeys(names) if name not in rows.columns]
    if missing:
        raise SourceError("columns are missing", where=path, expected=", ".join(missing), found=", ".join(rows.columns))


def recorded(spark: SparkSession, path: str) -> RecordedSchema:
    """What the lake knows of the changelog at *path*; nothing of one that we did not write."""
    from sinks.delta.lake.recorded import RecordedSchema, recorded_changelog

    found = recorded_changelog(spark, path) if format_of(path) == "delta" else None
    return found or RecordedSchema(key=(), added={})


def write(path: str, out: str, made: Callable[[], DataFrame], *, kind: str = "") -> None:
    """Writes the rows that are *made* of what is at *path*. *out* must not be there.

    Args:
        path: where what is refused comes from.
        out: a directory.
        made: the rows; what it raises is told too.
        kind: ``delta``, ``parquet``, or ``odf``: Parquet files of a strict changelog, with the types and encodings that Open
            Data Fabric wants; by default that of *path*.

    Raises:
        SourceError: the rows at *path* cannot be read so.
        SinkError: something is at *out*, or nothing can be written there.
    """
    from pyspark.errors import AnalysisException

    from sinks.parquet.odf import write_odf

    with _errors_of(path):
        rows = made()
        if kind == "odf":
            with spark_progress(f"writing {out}", rows.sparkSession):
                write_odf(rows, out)
            return
        try:
            with _microseconds(rows.sparkSession), spark_progress(f"writing {out}", rows.sparkSession):
                rows.write.format(kind or format_of(path) or "delta").mode("errorifexists").save(out)
        except AnalysisException as error:
            raise SinkError("the result cannot be written", where=out, found=error.getMessage()) from error


@contextmanager
def _microseconds(spark: SparkSession) -> Iterator[None]:
    """Times in Parquet files are moments in UTC; Spark's default is INT96, which other readers take for local times."""
    before = str(spark.conf.get(_TIMES))
    spark.conf.set(_TIMES, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(_TIMES, before)


@contextmanager
def _errors_of(path: str) -> Iterator[None]:
    """Says of what functions on changelogs refuse, at once or in a query, that it is about *path*."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    try:
        yield
    except Py4JJavaError as error:
        # Several tasks at once raised it, which Spark has no exception of Python's for.
        found = _in_text(error)
        if found is None:
            raise
        raise SourceError("the rows cannot be read so", where=path, found=found) from error
    except PySparkException as error:
        found = error.getMessage() if isinstance(error, AnalysisException) else _raised(error)
        if found is None:
            raise
        raise SourceError("the rows cannot be read so", where=path, found=found) from error
    except HistorianError as error:
        if type(error) is not HistorianError:
            raise
        where = path if error.where is None else f"{path}: {error.where}"
        raise SourceError(
            error.what, where=where, expected=error.expected, found=error.found, next_step=error.next_step
        ) from error


def _raised(error: PySparkException) -> str | None:
    """What an expression or an executor of ours raised; None where something else went wrong."""
    message = (error.getMessageParameters() or {}).get("errorMessage")
    return message or _in_text(error)


def _in_text(error: Exception) -> str | None:
    found = _RAISED.search(str(error))
    return None if found is None else found[1] or found[2]
