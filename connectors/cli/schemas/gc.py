"""``historian schemas CONFIG gc``: forgets what lies before a position."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.arguments import Json, configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.recorded_history import located, open_recorded
from historian.positions import LogPosition

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.store.forgetting import ForgetResult

__all__ = ["gc"]


@ending
def gc(
    context: typer.Context,
    *,
    before: Annotated[str, typer.Option(metavar="POS", help="GTIDs, or file:offset.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Forget versions that went out of force before a position, and plans that every target and stream has behind it.

    The version in force at the position stays, and so does what the oldest plan needs that some target lacks; to know that
    this starts Spark, where sinks are configured. Safe beside a run.
    """
    config = configured(context.obj)
    with closing(open_recorded(config)) as store:
        position = located(config, before, store.history())
        forgotten = store.forget(position, _held(config))
    if as_json:
        typer.echo(json.dumps({**asdict(forgotten), "position": str(forgotten.position)}, indent=2))
    else:
        for line in _lines(forgotten, position):
            say(line)


def _held(config: PipelineConfig) -> tuple[int, ...]:
    """The last plan that each sink holds."""
    if not config.sinks:
        return ()
    from connectors.pipeline.opening import idle_sinks

    with idle_sinks(config, "gc") as sinks:
        return tuple(held for sink in sinks if (held := sink.held()) is not None)


def _lines(forgotten: ForgetResult, asked: LogPosition) -> Iterator[str]:
    yield f"the history begins at {forgotten.position}"
    yield f"forgotten: {forgotten.entries} statements, {forgotten.edits} edits, {forgotten.plans} plans"
    if forgotten.position != asked:
        behind = (
            "" if forgotten.needed is None else f": plan {forgotten.needed} is the last one that all have behind them"
        )
        yield f"not at {asked}{behind}"
