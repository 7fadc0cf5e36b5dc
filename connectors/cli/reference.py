"""The reference page of the command line, written from the commands: ``make reference`` writes docs/reference/cli.md."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import typer.main

from connectors.cli import app
from connectors.cli.terminal.outcome import EXIT_CODES

__all__ = ["argument_text", "command_line_page"]

_HEAD = """\
# Command line

```
historian run shop.yaml --once
```

This page lists every command and option. It is written from the code by `make reference`; `historian COMMAND --help` says the
same.

- `CONFIG` is a connector's YAML file. See [configure a connector](../how-to/configure.md).
- `POS` is a position: a GTID set (`3e11fa47-71ca-11e1-9e33-c80aa9429562:1-57`), MariaDB GTIDs (`0-5-812`), or `FILE:OFFSET`
  of the end of a transaction.
- `TABLE` is `DATABASE.TABLE`.

Results go to standard output. Progress, warnings and errors go to standard error. An error says what failed, where, what was
expected, what was found, and what to do next.
"""


def command_line_page() -> str:
    """The page as Markdown, the same at every call."""
    root = typer.main.get_command(app)
    return "\n".join([_HEAD, *_options_of_all(root), *_commands(root, "historian"), *_exit_codes()])


def _options_of_all(root: Any) -> Iterator[str]:
    yield "## Options before the command\n"
    yield from _table(root)


def _commands(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        arguments = "".join(f" {argument_text(each)}" for each in command.params if each.param_type_name == "argument")
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path} {name}{arguments}")
            continue
        yield f"## `{path} {name}`\n"
        yield f"```text\n{path} {name}{arguments} [OPTIONS]\n```\n"
        yield inspect.cleandoc(command.help or "").replace("\f", "") + "\n"
        yield from _table(command)


def argument_text(argument: Any) -> str:
    """An argument as it stands in a command line."""
    name = str(argument.metavar or argument.name.upper())
    # typer puts optional ones into brackets, but not those whose name it was given.
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _table(command: Any) -> Iterator[str]:
    options = [each for each in command.params if each.param_type_name == "option"]
    shown = [(_names(each), (each.help or "").strip()) for each in options if not each.hidden]
    if not shown:
        return
    yield "| option | meaning |"
    yield "|---|---|"
    for names, text in shown:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in (names, text)) + " |"
    yield ""


def _names(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}{value}`" for name in names)


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |"
    yield "|---|---|"
    for code, meaning in EXIT_CODES.items():
        yield f"| {int(code)} | {meaning} |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(command_line_page())
