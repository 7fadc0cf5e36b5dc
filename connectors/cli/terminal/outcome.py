"""How a command ends: exit codes, and errors as one block on standard error."""

from __future__ import annotations

import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from enum import IntEnum
from typing import ParamSpec, TypeVar

import typer

from connectors.cli.terminal.aside import aside
from connectors.cli.terminal.logs import log
from connectors.cli.terminal.plain_text import as_lines, broken
from connectors.spark.bundle import BundleError
from connectors.spark.executors import ExecutorsDiffer, ExecutorsLost
from historian import errors
from historian.errors import ConfigError, HistorianError
from sinks.session import SessionUnusable

__all__ = ["DEBUG", "EXIT_CODES", "ExitCode", "ending", "exit_code", "say", "tell", "tell_error"]

P = ParamSpec("P")
R = TypeVar("R")

_INDENT = " " * 12

DEBUG: ContextVar[bool] = ContextVar("debug", default=False)
"""Whether errors come with their traceback."""


class ExitCode(IntEnum):
    """What a command's exit code says. :data:`EXIT_CODES` has the words."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SOURCE = 3
    STORE = 4
    SINK = 5
    BUG = 70
    INTERRUPTED = 130


EXIT_CODES = {
    ExitCode.OK: "Done. A run that Ctrl-C or SIGTERM ended after its batch is done too.",
    ExitCode.FAILED: "A check failed, or a captured table is stopped. Other tables are complete.",
    ExitCode.USAGE: "The command line, the configuration, or a position in it cannot be used.",
    ExitCode.SOURCE: "The source cannot be read: server, log or files.",
    ExitCode.STORE: "The history cannot be used: store, lease, or an unknown position or table.",
    ExitCode.SINK: "A sink cannot be written.",
    ExitCode.BUG: "A defect in historian itself. The traceback is printed.",
    ExitCode.INTERRUPTED: "Interrupted with Ctrl-C.",
}
"""What each exit code means, as the reference page prints it."""

_CODES: tuple[tuple[type[HistorianError], ExitCode], ...] = (
    (errors.ConfigError, ExitCode.USAGE),
    (errors.PositionError, ExitCode.USAGE),
    (errors.SinkError, ExitCode.SINK),
    (errors.StoreError, ExitCode.STORE),
    (errors.LeaseHeld, ExitCode.STORE),
    (errors.PlanOutdated, ExitCode.STORE),
    (errors.RowCorrupt, ExitCode.STORE),
    (errors.PositionExpired, ExitCode.STORE),
    (errors.PositionAhead, ExitCode.STORE),
    (errors.PositionUnknown, ExitCode.STORE),
    (errors.UnknownTable, ExitCode.STORE),
    (errors.EditConflict, ExitCode.STORE),
    (errors.TableStopped, ExitCode.FAILED),
    (errors.SourceError, ExitCode.SOURCE),
    (errors.ValueUnrepresentable, ExitCode.SOURCE),
    (SessionUnusable, ExitCode.USAGE),
    (ExecutorsDiffer, ExitCode.USAGE),
    (ExecutorsLost, ExitCode.SINK),
    (BundleError, ExitCode.USAGE),
)


def exit_code(error: HistorianError) -> ExitCode:
    """The exit code that stands for *error*."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.BUG)


def ending(command: Callable[P, R]) -> Callable[P, R]:
    """Makes *command* end with the exit code of what stopped it, after telling what that was."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except HistorianError as error:
            if DEBUG.get():
                traceback.print_exc()
            tell_error(error)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            # Who read our output has had enough, as `head` does. Python's own flush at exit must not fail on it again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.OK) from None
        except (typer.Exit, typer.BadParameter):
            raise
        except Exception:  # noqa: BLE001 the last place that can give a mistake of ours its own exit code
            trace = traceback.format_exc()
            if not log(logging.ERROR, "a mistake in historian itself; please report it", trace=trace):
                tell(trace.rstrip())
            tell("this is a mistake in historian itself; please report it with the lines above")
            raise typer.Exit(ExitCode.BUG) from None

    return wrapped


def say(text: str) -> None:
    """Writes a part of a command's result to standard output. What a terminal would obey is shown as an escape, and lines behind the first are indented."""
    with aside():
        typer.echo(as_lines(text))


def tell(text: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Writes a note to standard error: the text, or a record with *fields* where records are JSON."""
    if not log(level, text, **fields):
        with aside():
            print(as_lines(text), file=sys.stderr, flush=True)  # noqa: T201 the command line's own output


def tell_error(error: HistorianError) -> None:
    """Writes an error to standard error: a block of lines, or a record with its facts."""
    facts = {name: str(fact) for name, fact in _facts(error).items() if fact is not None}
    problems = error.problems if isinstance(error, ConfigError) else ()
    fields: dict[str, object] = {**facts, "error": type(error).__name__, "retryable": error.retryable}
    if not log(logging.ERROR, error.what, **fields, **({"problems": list(problems)} if problems else {})):
        tell(_block(error))


def _facts(error: HistorianError) -> dict[str, object]:
    return {"where": error.where, "expected": error.expected, "found": error.found, "next": error.next_step or None}


def _block(error: HistorianError) -> str:
    """A terminal breaks its lines itself. What was found may be a statement, and a place a path with blanks: they stay whole elsewhere too."""
    breaks = not sys.stderr.isatty()
    lines = [f"error: {error.what}"]
    lines += [f"  {name:<9} {_indented(fact)}" for name, fact in _facts(error).items() if fact is not None]
    if isinstance(error, ConfigError):
        lines += [f"  - {problem}" for problem in error.problems]
    if error.retryable:
        lines.append("  this may pass: the same command can be tried again")
    return "\n".join(broken(line, indent=_indent(line)) if breaks and _is_prose(line) else line for line in lines)


def _indent(line: str) -> str:
    return "    " if line.startswith("  - ") else _INDENT


def _is_prose(line: str) -> bool:
    return "\n" not in line and not line.startswith(("  found ", "  where "))


def _indented(fact: object) -> str:
    return str(fact).strip("\n").replace("\n", f"\n{_INDENT}")
