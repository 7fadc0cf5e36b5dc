"""``historian orphans``: files in a lake that no table has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ending, say
from connectors.cli.terminal.sessions import session
from connectors.cli.terminal.sizes import bytes_text
from historian.errors import ConfigError

if TYPE_CHECKING:
    from connectors.config import PipelineConfig

__all__ = ["orphans"]

_LEAST_S = 3600.0
_WEEK_S = 168 * 3600.0
"""No plan takes so long; what is younger may be of the one that a run is writing."""


@ending
def orphans(
    config: Config,
    *,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="TIME",
            help="Only files written before that; longer than any plan takes, at least 1 hour.",
        ),
    ] = "168 hours",
    removes: Annotated[
        bool, typer.Option("--remove", help="Remove the files. Without it they are shown alone.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find data files below the lake that no committed version of a table names, as lost tasks and killed runs leave them.

    Files that older versions name stay: VACUUM removes those. The connector may run meanwhile. Where --remove is to take files younger
    than 168 hours it may not: a plan of its could have them.
    """
    from connectors.config.values import parse_duration_s
    from connectors.sink_kinds import lakes
    from sinks.contract.storage import is_s3
    from sinks.delta.log.orphans import orphaned_files, remove

    try:
        age_s = parse_duration_s(older_than)
    except ValueError as error:
        raise typer.BadParameter(f"--older-than: {error}") from None
    if age_s < _LEAST_S:
        raise typer.BadParameter(
            "give --older-than at least 1 hour: files of a plan that is being written are in no version yet"
        )
    settings = configured(config)
    paths = [lake.path for lake in lakes(settings.sinks) if lake.path]
    if not paths:
        problem = "expected a sink of type delta with a path @ $.sinks"
        raise ConfigError("orphans are looked for below a lake's path", problems=(problem,), where=str(config))
    before = datetime.now(timezone.utc) - timedelta(seconds=age_s)
    # How a bucket is reached may stand in Spark's settings alone.
    needs_spark = any(is_s3(path) for path in paths)
    with (
        _no_run(settings) if removes and age_s < _WEEK_S else nullcontext(),
        session(f"orphans {settings.name}", paths, settings.run.spark) if needs_spark else nullcontext(),
    ):
        for path in paths:
            found = orphaned_files(path, before)
            for each in found:
                if as_json:
                    typer.echo(json.dumps({"lake": path} | asdict(each) | {"written": each.written.isoformat()}))
                else:
                    say(f"{each.path}: {bytes_text(each.size_bytes)}, written {each.written:%Y-%m-%d %H:%M} UTC")
            if removes:
                remove(path, found)
            if not as_json:
                size = bytes_text(sum(each.size_bytes for each in found))
                done = "removed" if removes else "would be removed by --remove" if found else ""
                say(f"{path}: {len(found)} orphaned files, {size}{f'; {done}' if done else ''}")


@contextmanager
def _no_run(settings: PipelineConfig) -> Iterator[None]:
    """Keeps runs of the connector away. Raises :class:`historian.errors.LeaseHeld` where one is alive."""
    from historian.store import Store

    with closing(Store.open(settings.history.store)) as store, store.lease(settings.name):
        yield
