"""Tasks of executors that are hindered right behind a file that they have written: they fail, or never answer.

What they have written is an orphan then, and another attempt writes the rows again. Which tasks are hindered is the order in which they come
there, on all executors together.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["FAILS", "STAYS", "arm", "arrived", "hindering"]

FAILS, STAYS = "fails", "stays"
"""The attempt raises; it never answers."""

_DIRECTORY, _ORDER = "HINDERED_TASKS", "HINDERED_ORDER"
_LONGEST_S = 600.0


def hindering(directory: Path, *order: str) -> dict[str, str]:
    """Settings of an application whose tasks meet those in that *order*; later ones are left alone."""
    directory.mkdir()
    # Python runs a module of this name before anything else.
    (directory / "sitecustomize.py").write_text("from replicas.hindered_tasks import arm\narm()\n")
    paths = (str(directory), str(Path(__file__).parents[1]))
    return {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
        f"spark.executorEnv.{_DIRECTORY}": str(directory),
        f"spark.executorEnv.{_ORDER}": ",".join(order),
    }


def arrived(directory: Path) -> list[int]:
    """Processes of the attempts that were hindered so far, in order."""
    marks = sorted(directory.glob("[0-9]"), key=lambda mark: int(mark.name))
    return [int(text) for mark in marks if (text := mark.read_text())]


def arm() -> None:
    """Hinders the tasks of this process and of its children; called on executors."""
    from sinks.delta import faults

    if _DIRECTORY in os.environ:
        faults.arm(_hinder)


def _hinder(place: str) -> None:
    if place != "file_written":
        return
    kind = _next(Path(os.environ[_DIRECTORY]), os.environ[_ORDER].split(","))
    if kind == FAILS:
        raise OSError("the disk of this executor is gone")
    if kind == STAYS:
        time.sleep(_LONGEST_S)


def _next(directory: Path, order: Sequence[str]) -> str | None:
    for number, kind in enumerate(order):
        try:
            with (directory / str(number)).open("x") as mark:
                mark.write(str(os.getpid()))
        except FileExistsError:
            continue
        return kind
    return None
