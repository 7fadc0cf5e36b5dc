"""``historian run``: replicates until stopped."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.live.display import live_display
from connectors.cli.live.lines import RunLines
from connectors.cli.terminal.arguments import configured
from connectors.cli.terminal.kernels import compile_first
from connectors.cli.terminal.logs import bind
from connectors.cli.terminal.outcome import ExitCode, ending, tell, tell_error
from connectors.cli.terminal.progress import can_be_live
from connectors.monitoring.observer import Observers
from historian.errors import ConfigError, HistorianError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.config import PipelineConfig

__all__ = ["replicated", "run"]


@ending
def run(
    configs: Annotated[
        list[Path],
        typer.Argument(
            metavar="CONFIG...", help="YAML files of connectors, or directories of them.", show_default=False
        ),
    ],
    *,
    once: Annotated[bool, typer.Option("--once", help="End at what the log holds now.")] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="POS", help="End at this position: GTIDs, or file:offset.")
    ] = None,
    no_live: Annotated[
        bool, typer.Option("--no-live", help="Print lines on a terminal too, where else a picture of the run stands.")
    ] = False,
) -> None:
    """Replicate the log into the configured sinks.

    Ctrl-C ends it after the running batch. Start it again and it goes on where it was; nothing is written twice.
    Ends with 1 where a captured table stopped on the way and did not come back; the others are complete.

    Several connectors run side by side in one process and one Spark session. One that fails ends alone, and the command with 1 when all have ended.
    """
    files = [file for path in configs for file in _files(path)]
    if len(files) != 1 or configs != files:
        if until is not None:
            raise typer.BadParameter("give --until with one configuration alone")
        _run_together(_configured(files), once=once)
        return
    [config] = files
    settings = configured(config)
    if once and until is not None:
        raise typer.BadParameter("give --once or --until, not both")
    if not settings.sinks:
        raise ConfigError("there is nothing to write to", problems=("missing @ $.sinks",), where=str(config))
    if until is not None:
        until = _located(settings, until)
    replicated(settings, once=once, until=until, live=not no_live and can_be_live())


def _files(path: Path) -> list[Path]:
    """The configurations that a path names: itself, or the YAML files of a directory, by name."""
    if not path.is_dir():
        return [path]
    found = sorted(file for suffix in ("yaml", "yml") for file in path.glob(f"*.{suffix}"))
    if not found:
        raise ConfigError("there is nothing to run", problems=("expected *.yaml files",), where=str(path))
    return found


def _configured(files: list[Path]) -> list[PipelineConfig]:
    """The configurations in *files*. What is wrong with each of them is told, and the command ends with the last error."""
    configs, errors = [], []
    for file in files:
        try:
            configs.append(configured(file))
        except ConfigError as error:
            errors.append(error)
    if errors:
        for each in errors[:-1]:
            tell_error(each)
        raise errors[-1]
    return configs


def _run_together(configs: list[PipelineConfig], *, once: bool) -> None:
    """Runs several connectors, told in lines that begin with their names."""
    from connectors.together.runs import Outcome, check_together, run_together

    check_together(configs)
    compile_first()
    lines = {config.name: RunLines(config, is_alone=False) for config in configs}

    def ended(name: str, outcome: Outcome) -> None:
        of_one, error = lines[name], outcome.error
        if error is None:
            of_one.look_for_stopped(outcome.stopped)
            tell(f"{name}: {of_one.summary()}", connector=name)
            return
        tell(f"{name}: has failed, and ends; the others go on", level=logging.ERROR, connector=name)
        if isinstance(error, HistorianError):
            tell_error(error)
        else:
            tell("".join(traceback.format_exception(error)).rstrip())
            tell("this is a mistake in historian itself; please report it with the lines above")

    try:
        for config in configs:
            lines[config.name].begins("the log's present end" if once or config.run.once else "")
        outcomes = run_together(configs, once=once, observers=lines, ended=ended)
    finally:
        for each in lines.values():
            each.close()
    failed = sorted(name for name, outcome in outcomes.items() if outcome.error is not None)
    tell(f"{len(outcomes) - len(failed)} of {len(outcomes)} connectors came to their end")
    if failed or any(each.stopped for each in lines.values()):
        raise typer.Exit(ExitCode.FAILED)


def replicated(
    settings: PipelineConfig, *, once: bool, until: str | None, live: bool, spark: SparkSession | None = None
) -> None:
    """Runs, told in lines, or *live* in a picture; raises :class:`typer.Exit` where a captured table stopped on the way.

    *spark*: the session to run in; None: one of its own.
    """
    bind(connector=settings.name)
    compile_first()
    lines = RunLines(settings, tells_plans=not live)
    lines.begins(until or ("the log's present end" if once or settings.run.once else ""))
    try:
        lines.look_for_stopped(_replicated(settings, lines, once=once, until=until, live=live, spark=spark))
    finally:
        lines.close()
    tell(lines.summary())
    if lines.stopped:
        raise typer.Exit(ExitCode.FAILED)


def _replicated(
    config: PipelineConfig, lines: RunLines, *, once: bool, until: str | None, live: bool, spark: SparkSession | None
) -> Mapping[str, str]:
    """Runs, told in *lines* and *live* shown as a picture too; gives the tables that sinks have stopped."""
    from connectors.pipeline.run import run as replicate

    if not live:
        return replicate(config, once=once, until=until, observer=lines, spark=spark)
    with live_display(config) as watch:
        return replicate(config, once=once, until=until, observer=Observers(lines, watch), spark=spark)


def _located(config: PipelineConfig, text: str) -> str:
    """The position in GTIDs where the log has them: file and offset do not compare with those of a plan."""
    from connectors.tracking.sources import make_reader
    from historian.positions import parse_position

    position = parse_position(text, config.source.flavor)
    with closing(make_reader(config.source)) as reader:
        return str(reader.locate(position))
