"""``historian bundle``: one archive with the code that executors of a cluster need."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from connectors.cli.terminal.outcome import ending, say, tell
from connectors.cli.terminal.progress import progress

__all__ = ["bundle"]


@ending
def bundle(
    path: Annotated[Path, typer.Argument(metavar="FILE.zip", help="The archive to write.", dir_okay=False)],
    *,
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with", metavar="NAME", help="A distribution that the cluster lacks, such as numba, with what it needs."
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            "--cpu", metavar="NAME", help="Compile for this processor; generic: any of the family of the one here."
        ),
    ] = None,
) -> None:
    """Write one archive with our packages and compiled kernels, for executors that have neither. Takes about a minute.

    Give it to Spark as spark.archives=FILE.zip#historian.
    """
    from connectors.spark.bundle import make_bundle

    tell("compiles kernels, which takes about a minute")
    with progress("compiling kernels", 1.0) as told:
        made = make_bundle(path, extra or (), cpu=cpu, reached=told.reach)
    beside = "".join(f", {name} {version}" for name, version in made.distributions.items())
    say(f"{made.path}: {made.size_bytes / 1e6:.1f} MB, {made.kernels} kernels{beside}")
    say(f"spark.archives={made.path}#historian")
    if cpu is not None:
        say(f"spark.executorEnv.NUMBA_CPU_NAME={cpu}")
