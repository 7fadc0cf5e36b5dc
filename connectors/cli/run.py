"""``historian run``: replicates until stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.arguments import Config
from connectors.cli.outcome import ExitCode, ending, tell
from historian.errors import ConfigError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.plans import Plan

__all__ = ["run"]


@ending
def run(
    config: Config,
    *,
    once: Annotated[bool, typer.Option("--once", help="End at what the log holds now.")] = False,
    until: Annotated[
        str | None, typer.Option("--until", metavar="POS", help="End at this position: GTIDs, or file:offset.")
    ] = None,
) -> None:
    """Replicate the log into the configured sinks.

    Ctrl-C ends it after the running batch. Start it again and it goes on where it was; nothing is written twice.
    Ends with 1 where a captured table stopped on the way; the others are complete.
    """
    from connectors.config import load_config
    from connectors.pipeline import run as replicate

    settings = load_config(config)
    if once and until is not None:
        raise typer.BadParameter("give --once or --until, not both")
    if not settings.sinks:
        raise ConfigError("there is nothing to write to", problems=("missing @ $.sinks",), where=str(config))
    if until is not None:
        until = _located(settings, until)
    progress = _Progress()
    replicate(settings, once=once, until=until, report=progress.report)
    tell(progress.summary())
    if progress.stopped:
        raise typer.Exit(ExitCode.FAILED)


def _located(config: PipelineConfig, text: str) -> str:
    """The position in GTIDs where the log has them: file and offset do not compare with those of a plan."""
    from connectors.sources import make_reader
    from historian.positions import parse_position

    position = parse_position(text, config.source.flavor)
    reader = make_reader(config.source)
    try:
        return str(reader.locate(position))
    finally:
        reader.close()


class _Progress:
    """One line on standard error a plan with something in it."""

    def __init__(self) -> None:
        self.plans = 0
        self.end = ""
        self.stopped: dict[int, str] = {}

    def report(self, plan: Plan) -> None:
        """Takes note of a plan that all sinks hold."""
        self.plans += 1
        self.end = str(plan.end)
        for table in plan.tables:
            if table.quarantine is not None and table.table_id not in self.stopped:
                names = [str(version.snapshot.name) for version in table.versions if version.snapshot is not None]
                name = names[-1] if names else f"table {table.table_id}"
                self.stopped[table.table_id] = name
                tell(f"stopped: {name} at {table.quarantine.place.gtid or table.quarantine.place.file}\n"
                     f"  {table.quarantine.reason}")  # fmt: skip
        if plan.tables:
            statements = sum(version.place is not None for table in plan.tables for version in table.versions)
            changes = f", {statements} schema changes" if statements else ""
            tell(f"plan {plan.number}: {len(plan.tables)} tables{changes}, up to {plan.end}")

    def summary(self) -> str:
        """What the run did, in one line."""
        if not self.plans:
            return "nothing new in the log"
        stopped = f"; stopped: {', '.join(sorted(self.stopped.values()))}" if self.stopped else ""
        return f"{self.plans} plans written, up to {self.end}{stopped}"
