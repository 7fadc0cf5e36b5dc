"""``historian changelog``: a changelog in a lake or in files, checked, projected to a state, or written in another form."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.arguments import Json
from connectors.cli.outcome import ExitCode, ending
from connectors.cli.sessions import session
from connectors.cli.terminal import columns, terminal
from historian.errors import SinkError, SourceError
from historian.validation.findings import Profile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from historian.validation import Finding
    from sinks.delta.recorded import Recorded

__all__ = ["Form", "changelog", "check_changelog", "convert", "project"]

changelog = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@changelog.callback()
def _changelogs() -> None:
    """Work on a changelog in a lake or in Parquet files: check it, project it to a state, or write it in another form."""


class Form(str, Enum):
    """What a changelog can be written as."""

    RETRACT = "retract"
    UPSERT = "upsert"
    EVENTS = "events"
    ROW_KINDS = "row-kinds"
    APPEND = "append"
    ODF = "odf"


_Path = Annotated[
    str, typer.Argument(metavar="PATH", help="A Delta table, or a directory of Parquet files.", show_default=False)
]
_Key = Annotated[
    str,
    typer.Option(
        "--key", metavar="COLUMNS", help="The key's columns, with commas between; by default as the lake has it."
    ),
]
_Out = Annotated[str, typer.Option("--out", metavar="OUT", help="Where to write it, as Delta or Parquet like PATH.")]


@changelog.command("check")
@ending
def check_changelog(
    path: _Path,
    *,
    key: _Key = "",
    profile: Annotated[
        Profile, typer.Option("--profile", help="binlog, or odf for strict Open Data Fabric.")
    ] = Profile.BINLOG,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="Show at most so many findings.")] = 100,
    as_json: Json = False,
) -> None:
    """Check that a changelog keeps its rules: codes, offsets, pairs of -C and +C, and rows taken back as they were.

    Ends with 1 where something is wrong.
    """
    with session("changelog", [path]) as spark:
        from pyspark_historian.validation import check, findings_of

        names = _names(key) or _recorded(spark, path).key
        findings = findings_of(check(_read(spark, path), names, profile=profile), limit)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if findings:
        raise typer.Exit(ExitCode.FAILED)


@changelog.command("project")
@ending
def project(
    path: _Path,
    *,
    key: _Key = "",
    until: Annotated[
        int | None, typer.Option("--until", metavar="OFFSET", help="The last row that counts; by default all do.")
    ] = None,
    out: _Out,
) -> None:
    """Write the state that a changelog leads to, at its end or at an offset. Without a key whole rows are counted."""
    with session("changelog", [path]) as spark:
        from pyspark_historian.state import project_changelog

        known = _recorded(spark, path)
        rows = project_changelog(_read(spark, path), _names(key) or known.key, until=until, added=known.added)
        _write(rows, path, out)


@changelog.command("convert")
@ending
def convert(
    path: _Path,
    *,
    form: Annotated[Form, typer.Option("--to", help="Which form: see docs/conversions.md.", show_default=False)],
    key: _Key = "",
    out: _Out,
) -> None:
    """Write a changelog in another form: retract stream, upsert stream, events, Flink's row kinds, append stream, strict ODF.

    Only odf needs the key.
    """
    with session("changelog", [path]) as spark:
        names = _names(key) or _recorded(spark, path).key
        if form is Form.ODF and not names:
            raise typer.BadParameter("--to odf needs --key")
        _write(_conversion(form, names)(_read(spark, path)), path, out)


def _conversion(form: Form, key: tuple[str, ...]) -> Callable[[DataFrame], DataFrame]:
    from pyspark_historian import conversions as to

    return {
        Form.RETRACT: to.to_retract_stream,
        Form.UPSERT: to.to_upsert_stream,
        Form.EVENTS: to.to_single_events,
        Form.ROW_KINDS: to.to_row_kinds,
        Form.APPEND: to.to_append_stream,
        Form.ODF: lambda rows: to.to_odf(rows, key),
    }[form]


def _names(key: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in key.split(",") if name.strip())


def _recorded(spark: SparkSession, path: str) -> Recorded:
    """What the lake knows of the changelog; nothing of one that we did not write."""
    from sinks.delta.recorded import Recorded, recorded_changelog

    found = recorded_changelog(spark, path) if _kind(path) == "delta" else None
    return found or Recorded(key=(), added={})


def _read(spark: SparkSession, path: str) -> DataFrame:
    kind = _kind(path)
    if kind is None:
        raise SourceError(
            "no changelog is there", where=path, expected="a Delta table, or a directory of Parquet files"
        )
    return spark.read.format(kind).option("mergeSchema", "true").load(path)


def _write(rows: DataFrame, path: str, out: str) -> None:
    from pyspark.errors import AnalysisException, PySparkException

    try:
        rows.write.format(_kind(path) or "delta").mode("errorifexists").save(out)
    except AnalysisException as error:
        raise SinkError("the result cannot be written", where=out, found=error.getMessage()) from error
    except PySparkException as error:
        raised = (error.getMessageParameters() or {}).get("errorMessage")
        if raised is None:
            raise
        raise SourceError("the changelog cannot be read so", where=path, found=raised) from error


def _kind(path: str) -> str | None:
    """Spark's name of the format at *path*; None where nothing is there."""
    import pyarrow.fs as pafs

    from sinks.storage import located

    system, root = located(path if "://" in path else str(Path(path).absolute()))
    found = {info.base_name: info.type for info in system.get_file_info(pafs.FileSelector(root, allow_not_found=True))}
    if found.get("_delta_log") is pafs.FileType.Directory:
        return "delta"
    return "parquet" if any(name.endswith(".parquet") for name in found) else None


def _print(findings: tuple[Finding, ...]) -> None:
    from rich.text import Text

    if not findings:
        typer.echo("nothing is wrong")
        return
    table = columns("offset", "rule", "expected", "found")
    for finding in findings:
        offset = "" if finding.offset is None else str(finding.offset)
        table.add_row(offset, finding.rule.value, Text(finding.expected), Text(finding.found))
    terminal().print(table)
