"""``historian check``: can this run?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.tables import columns, terminal

if TYPE_CHECKING:
    from rich.table import Table

    from connectors.check import CheckResult

__all__ = ["check"]

_MARKS = {"ok": ("ok", "green"), "warning": ("warning", "yellow"), "failed": ("FAILED", "bold red")}


@ending
def check(config: Config, *, as_json: Json = False) -> None:
    """Check whether a configuration can run, and whether its data would be right.

    Each failed check comes with the statement that mends it. Ends with 1 where a check failed; `run` refuses then.
    """
    from connectors.check import run_checks

    results = run_checks(configured(config))
    if as_json:
        typer.echo(json.dumps([asdict(result) for result in results], indent=2))
    else:
        _print(results)
    if any(result.status == "failed" for result in results):
        raise typer.Exit(ExitCode.FAILED)


def _print(results: Sequence[CheckResult]) -> None:
    from rich.text import Text

    console = terminal()
    console.print(_table(results))
    # Statements stand outside the table, unbroken, so that they can be copied.
    for result in results:
        if result.mend:
            console.print()
            console.print(Text(f"{result.name}:", style=_MARKS[result.status][1]), Text(result.mend), soft_wrap=True)


def _table(results: Sequence[CheckResult]) -> Table:
    from rich.text import Text

    table = columns("check", "", "found", "expected")
    for result in results:
        word, style = _MARKS[result.status]
        table.add_row(Text(result.name), Text(word, style=style), Text(result.found), Text(result.expected))
    return table
