"""The manual page ``historian(1)``, written from the commands: ``make reference`` writes docs/reference/historian.1."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import typer.main

from connectors.cli import app
from connectors.cli.reference import argument_text
from connectors.cli.terminal.outcome import EXIT_CODES

__all__ = ["manual_page"]

_HEAD = r"""
.TH HISTORIAN 1 "" "pyspark\-historian" "User Commands"
.SH NAME
historian \- change data capture for Spark
.SH SYNOPSIS
.B historian
.RI [ OPTION ]...\& " COMMAND " [ ARGUMENT ]...
.SH DESCRIPTION
Reads the changes of a MySQL or MariaDB server, decodes each with the schema it was written under, and writes them into a lake.
CONFIG is a connector's YAML file.
POS is a position: GTIDs, or FILE:OFFSET.
TABLE is DATABASE.TABLE.
Results go to standard output; progress, warnings and errors go to standard error.
""".strip()
_FOOT = r"""
.SH SEE ALSO
.BR mysqlbinlog (1)
""".strip()


def manual_page() -> str:
    """The page as roff with the macros of man(7), the same at every call."""
    root = typer.main.get_command(app)
    parts = [
        _HEAD,
        ".SH OPTIONS",
        *_options(root),
        ".SH COMMANDS",
        *_commands(root, "historian"),
        *_exit_codes(),
        _FOOT,
    ]
    return "\n".join(parts) + "\n"


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        arguments = [each for each in command.params if each.param_type_name == "argument"]
        words = " ".join([f"{path} {name}", *map(argument_text, arguments)])
        if hasattr(command, "commands"):
            yield from _commands(command, words)
            continue
        yield f".SS {_escaped(words)}"
        for number, paragraph in enumerate(inspect.cleandoc(command.help or "").replace("\f", "").split("\n\n")):
            if number:
                yield ".PP"
            yield _escaped(" ".join(paragraph.split()))
        yield from _options(command)


def _options(command: Any) -> Iterator[str]:
    for each in command.params:
        if each.param_type_name != "option" or each.hidden:
            continue
        value = "" if each.is_flag else rf" \fI{_escaped(each.metavar or each.name.upper())}\fR"
        names = [rf"\fB{_escaped(name)}\fR{value}" for name in (*each.opts, *each.secondary_opts)]
        yield ".TP"
        yield ", ".join(names)
        yield _escaped(" ".join((each.help or "").split()))


def _exit_codes() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES.items():
        yield ".TP"
        yield str(int(code))
        yield _escaped(meaning)


def _escaped(text: str) -> str:
    """The text as it stands in roff: a line that begins with a dot or a quote would be a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-").replace("`", "")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    sys.stdout.write(manual_page())
