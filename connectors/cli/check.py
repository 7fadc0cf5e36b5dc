"""``historian check``: can this run?"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from connectors.cli.terminal.arguments import Config, Json, configured
from connectors.cli.terminal.outcome import ExitCode, ending
from connectors.cli.terminal.plain_text import one_line
from connectors.cli.terminal.tables import print_table, terminal

if TYPE_CHECKING:
    from connectors.check import CheckResult

__all__ = ["check"]

_ALTERNATIVES = re.compile(r"; (?=(?:or|then) )")
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
    marked = ((result, *_MARKS[result.status]) for result in results)
    rows = ((one.name, Text(word, style=style), one.found, one.expected) for one, word, style in marked)
    print_table(("check", "", "found", "expected"), rows)
    # Statements stand outside the table, unbroken, so that they can be copied; what else can be done, or is to be done behind them, has lines of its own.
    for result in results:
        if result.mend:
            console.print()
            name = Text(f"{one_line(result.name)}:", style=_MARKS[result.status][1])
            first, *others = _ALTERNATIVES.split(result.mend)
            console.print(name, Text(first), soft_wrap=True)
            for other in others:
                console.print(Text(f"  {other}"), soft_wrap=True)
