"""Runs a connector in a process of its own and kills it with SIGKILL when a write reaches a place.

The processes are forks of one that has imported the product and done nothing else: to import it takes as long as many a run.
Java starts anew in each.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from connectors.backfill import selecting, selection
from connectors.cli.terminal.sessions import session
from connectors.config import load_config
from connectors.pipeline.run import run
from historian.store import Store
from lakes.delta_uses import assert_usable
from sinks.delta import faults

__all__ = ["COPYING", "run_killed"]

COPYING: Mapping[str, tuple[object, str]] = {
    "snapshot_due": (selecting, "snapshot_behind"),
    "rows_selected": (selection, "changes_behind"),
    "copy_known": (Store, "append_plan"),
    "copy_stored": (Store, "copied_chunks"),
}
"""Places of a copy, each right before a call of that function: rows are about to be read; they are read, and the log behind them is not;
plan and rows are about to be stored; they are, and no sink has heard of them."""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["connectors.cli.terminal.sessions", "connectors.pipeline.run", "pyspark.testing.utils", "sinks.delta"]
)
_LONGEST_S = 600


def run_killed(config: Path, place: str, *uses: str, **environment: str) -> str:
    """Runs a connector up to *place*, under those variables of the environment.

    Returns what it printed; fails unless the place's SIGKILL ended it or, for ``-``, it ended by itself.

    Args:
        config: the connector's.
        place: by its name, or so many places behind the start, or a number of seconds as in ``1.5 s``, by when the run may have ended;
            with ``-`` the run ends by itself. Places are those of :data:`sinks.delta.faults.PLACES` and :data:`COPYING`.
        uses: ``DIRECTORY=KEY``: what people do to Delta tables is done to that one of the lake at the end (:mod:`delta_uses`).
        environment: is set for this run alone.
    """
    with tempfile.TemporaryDirectory() as directory:
        printed, said = Path(directory, "stdout"), Path(directory, "stderr")
        process = _FORKS.Process(target=_begin, args=(config, place, uses, environment, printed, said))
        process.start()
        process.join(_LONGEST_S)
        code = process.exitcode
        process.kill()
        process.join()
        told, errors = printed.read_text(), said.read_text()
    ended = {"killed at": -signal.SIGKILL, "ended": 0}
    assert any(word in told and code == expected for word, expected in ended.items()), errors[-3000:]
    return told.strip()


def _begin(
    config: Path, place: str, uses: Sequence[str], environment: Mapping[str, str], printed: Path, said: Path
) -> None:
    """Is the process: what it prints, and what Java does, goes into files."""
    os.environ.update(environment)
    for number, path in ((1, printed), (2, said)):
        with path.open("w") as file:
            os.dup2(file.fileno(), number)
    _run(config, place, uses)


def _run(path: Path, wanted: str, uses: Sequence[str]) -> None:
    """Arms the fault and runs once."""
    config = load_config(path)
    number = itertools.count(1)

    def fault(place: str) -> None:
        if wanted in (place, str(next(number))):
            print(f"killed at {place}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(fault)
    _mark_copies(fault)
    if wanted.endswith(" s"):
        ends = threading.Timer(float(wanted.removesuffix(" s")), fault, (wanted,))
        ends.daemon = True
        ends.start()
    lake = config.sink_paths[0]
    with session("killed run", config.sink_paths, config.run.spark) as spark:
        run(config, once=True, spark=spark)
        faults.disarm()
        for use in uses:
            directory, _, key = use.partition("=")
            assert_usable(spark, f"{lake}/{directory}", key)
    print("ended", flush=True)


def _mark_copies(fault: Callable[[str], None]) -> None:
    """Has *fault* called with the name of every place of a copy that is reached."""

    def marked(place: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def reached(*arguments: Any, **named: Any) -> Any:
            fault(place)
            return step(*arguments, **named)

        return reached

    for place, (owner, name) in COPYING.items():
        setattr(owner, name, marked(place, getattr(owner, name)))
