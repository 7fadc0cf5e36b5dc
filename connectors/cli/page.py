"""``historian page``: the connector as one HTML file."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from connectors.cli.terminal.arguments import Config, configured
from connectors.cli.terminal.outcome import ending, tell
from connectors.cli.terminal.sizes import bytes_text
from historian.errors import ConfigError, StoreError

__all__ = ["page"]


@ending
def page(
    config: Config,
    *,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where index.html is written; made where it is not there.")
    ],
) -> None:
    """Write the connector as one HTML file: tables, their schema timelines, and where each target stands.

    The file needs no network and no server. It has statements and names from the source in it: give it to those who may see them.
    Starts no Spark. What targets hold is told as the run noted it.
    """
    from connectors.monitoring.state import connector_state
    from connectors.page.page import Page
    from connectors.tracking.recorded import recorded_store
    from sinks.contract.storage import share_said_settings
    from sinks.spark_settings import said_settings

    settings = configured(config)
    for sink in settings.sinks:
        share_said_settings(sink.path, {**said_settings(), **dict(settings.run.spark.conf)})
    store = recorded_store(settings)
    if store is None:
        raise StoreError("the connector has not run yet", where=settings.name, next_step="`historian run` starts it")
    with closing(store):
        text = Page(settings).html(store, connector_state(settings, store))
    file = out / "index.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        _write(file, text)
    except OSError as error:
        problem = f"{error.strerror or error} @ --out (got {out})"
        raise ConfigError("the page cannot be written", problems=(problem,)) from None
    tell(f"{file} ({bytes_text(len(text))})", file=str(file))


def _write(file: Path, text: str) -> None:
    """At once, so that nobody reads half a page; for its owner alone, as it has statements in it."""
    handle, name = tempfile.mkstemp(prefix=".index.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(text)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
