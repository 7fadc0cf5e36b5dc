"""``historian schemas CONFIG export`` and ``import``: a whole history as a file."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from connectors.cli.terminal.arguments import configured
from connectors.cli.terminal.outcome import ending, tell
from connectors.cli.terminal.progress import progress
from connectors.cli.terminal.recorded_history import open_recorded
from historian.errors import ConfigError, StoreError

__all__ = ["export_history", "import_history"]

_Target = Annotated[
    Path, typer.Argument(metavar="[FILE]", help="Where to; by default standard output.", show_default=False)
]
_Source = Annotated[
    Path, typer.Argument(metavar="[FILE]", help="Where from; by default standard input.", show_default=False)
]


@ending
def export_history(context: typer.Context, file: _Target = Path("-")) -> None:
    """Write the whole history as JSON lines, see docs/reference/history-format.md."""
    from historian.history.export import HistoryFile, write_history

    config = configured(context.obj)
    with closing(open_recorded(config)) as store:
        resolved = store.resolved()
        if resolved is None:
            raise StoreError("there is no history yet", where=config.name, next_step="`historian run` makes it")
        history = HistoryFile(
            connector=store.connector(config.name),
            resolved=resolved,
            entries=store.entries(),
            gaps=store.gaps(),
            horizon=store.horizon(),
        )
    lines = (f"{line}\n" for line in write_history(history))
    if str(file) == "-":
        sys.stdout.writelines(lines)
        return
    try:
        with (
            file.open("w", encoding="utf-8", newline="\n") as target,
            progress(f"writing {file}", len(history.entries)) as told,
        ):
            for number, line in enumerate(lines):
                target.write(line)
                told.reach(number)
    except OSError as error:
        raise ConfigError(f"the file cannot be written: {error.strerror}", where=str(file)) from error


@ending
def import_history(context: typer.Context, file: _Source = Path("-")) -> None:
    """Read a history that `export` wrote into the connector's store, which is empty or holds the same.

    Nothing is imported where a line does not fit. The store takes over the identity of the connector that recorded it.
    """
    from historian.history.export import read_history
    from historian.store import Store

    config = configured(context.obj)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file cannot be read: {error}", where=str(file)) from error
    # Statements may hold characters that str.splitlines takes for line ends.
    history = read_history(text.removesuffix("\n").split("\n"), where=str(file))
    with closing(Store.open(config.history.store)) as store, store.lease(config.name):
        store.restore(config.name, history.connector, history.entries, (), horizon=history.horizon)
        store.record((), history.resolved, history.gaps)
    tell(f"{len(history.entries)} entries and {len(history.gaps)} gaps, read up to {history.resolved}")
