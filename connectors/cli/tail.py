"""``historian tail``: the changelog on a terminal, without Spark and without a lake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.arguments import configured
from connectors.cli.terminal.aside import aside
from connectors.cli.terminal.kernels import compile_first
from connectors.cli.terminal.outcome import ExitCode, ending, tell
from connectors.cli.terminal.plain_text import as_lines
from connectors.cli.terminal.tables import terminal
from connectors.cli.terminal.work_progress import log_progress

if TYPE_CHECKING:
    from connectors.config import PipelineConfig, TableFilter
    from connectors.tail.follow import TailedRange
    from historian.plans.plans import PlannedVersion

__all__ = ["Format", "tail"]


class Format(str, Enum):
    """How rows are written."""

    TABLE = "table"
    NDJSON = "ndjson"


@ending
def tail(
    sources: Annotated[
        list[Path] | None, typer.Argument(metavar="[CONFIG]", help="The connector's YAML file.", show_default=False)
    ] = None,
    *,
    binlog: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="Binlog files, or directories of them, instead of CONFIG. Files without a number count in the order given.",
        ),
    ] = None,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="POS", help="Show what lies behind this position.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="POS", help="End at this position; by default at the log's end.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="At the log's end wait for more, until Ctrl-C.")
    ] = False,
    table: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Only these tables, such as 'shop.*'; repeatable.")
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE.sql", help="Statements that make the tables whose CREATE is not in the log."),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="For eyes, or one JSON object a line.")] = Format.TABLE,
) -> None:
    """Print the changelog of a configured source, or of binlog files.

    Needs neither Spark nor a sink, and records nothing. A position is GTIDs, file:offset, earliest or latest;
    of topics offsets, or a moment with its zone.
    Ends with 1 where a table stopped on the way.
    """
    from connectors.tail.follow import Tail

    config = _config(sources or [], binlog or [], schema)
    compile_first()
    tailing = Tail(config, begin=begin, end=end, tables=_filter(table))
    write = _write_ndjson if form is Format.NDJSON else _table_writer()
    stopped = False
    try:
        with log_progress("reading the log", tailing.reader, tailing.first, tailing.end) as told:

            def hide() -> None:
                told.is_hidden = True

            for shown in tailing.shown(follow=follow, at_end=hide):
                with aside():
                    write(shown)
                for message in shown.unread:
                    tell(f"cannot be read: {message}")
                for change in shown.unlogged:
                    tell(str(change))
                for table_stopped in shown.stopped:
                    stopped = True
                    tell(str(table_stopped))
    finally:
        tailing.close()
    if stopped:
        raise typer.Exit(ExitCode.FAILED)


def _config(sources: Sequence[Path], binlog: Sequence[Path], schema: Path | None) -> PipelineConfig:
    if binlog:
        return _of_files([*binlog, *sources], schema)
    if len(sources) != 1:
        raise typer.BadParameter("give one CONFIG, or --binlog FILE...")
    config = configured(sources[0])
    return config if schema is None else replace(config, source=replace(config.source, schema=schema))


def _of_files(paths: Sequence[Path], schema: Path | None) -> PipelineConfig:
    """A configuration for files that have none."""
    from connectors.config import BinlogFilesSource, HistoryConfig, PipelineConfig, RunConfig
    from connectors.readers.binlog.files_reader import BinlogFilesReader

    files = tuple(path.expanduser() for path in paths)
    return PipelineConfig(
        path=Path("binlog"),
        name="tail",
        source=BinlogFilesSource(flavor=BinlogFilesReader(files).flavor, files=files, schema=schema),
        history=HistoryConfig(store="sqlite://"),
        sinks=(),
        run=RunConfig(),
    )


def _filter(patterns: list[str] | None) -> TableFilter | None:
    from connectors.config import TableFilter

    if not patterns:
        return None
    try:
        return TableFilter(tuple(patterns))
    except ValueError as error:
        raise typer.BadParameter(f"--table: {error}") from None


def _write_ndjson(shown: TailedRange) -> None:
    from connectors.tail.log_order import in_log_order

    if shown.chunks:
        sys.stdout.writelines(f"{row}\n" for row in in_log_order(shown))
        sys.stdout.flush()


def _table_writer() -> Callable[[TailedRange], None]:
    from rich.text import Text

    from connectors.tail.log_order import runs_in_log_order
    from connectors.tail.tables import rich_table

    console = terminal()

    def write(shown: TailedRange) -> None:
        versions = list(shown.versions)
        for rows in runs_in_log_order(shown):
            while versions and (versions[0].version <= rows.chunk.version or stands_before(versions[0], rows.place)):
                announce(versions.pop(0))
            console.print(rich_table(rows.chunk, rows.snapshot))
        for version in versions:
            announce(version)

    def stands_before(version: PlannedVersion, place: int) -> bool:
        return version.place is not None and version.place.offset < place

    def announce(version: PlannedVersion) -> None:
        text = f"schema version {version.version} at {version.place or ''}: {version.statement}\n"
        console.print(Text(as_lines(text), style="magenta"), soft_wrap=True)

    return write
