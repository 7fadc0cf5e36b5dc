"""Runs a connector in a process of its own and kills it with SIGKILL when a write reaches a place.

``python killed_run.py CONFIG PLACE|NUMBER|- [DIRECTORY=KEY ...]``: a place by its name, or so many places behind the start. Prints the
place before the end. With ``-`` the run ends by itself; what people do to Delta tables is then done to those directories of the lake
(:mod:`delta_uses`).
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

from connectors.cli.sessions import session
from connectors.config import load_config
from connectors.pipeline import run
from delta_uses import assert_usable
from sinks.delta import faults

__all__ = ["run_killed"]


def run_killed(config: Path, place: str, *uses: str, **environment: str) -> str:
    """Runs a connector up to *place*, as above, under those variables of the environment.

    Returns what it printed; fails unless the place's SIGKILL ended it or, for ``-``, it ended by itself.
    """
    paths = (Path(__file__).parent, Path(__file__).parents[2], os.environ.get("PYTHONPATH", ""))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path),
        **environment,
    }
    command = [sys.executable, __file__, str(config), place, *uses]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment)
    ended = {"killed at": -signal.SIGKILL, "ended": 0}
    assert any(word in done.stdout and done.returncode == code for word, code in ended.items()), done.stderr[-3000:]
    return done.stdout.strip()


def main() -> None:
    """Arms the fault and runs once."""
    config, wanted = load_config(sys.argv[1]), sys.argv[2]
    number = itertools.count(1)

    def fault(place: str) -> None:
        if wanted in (place, str(next(number))):
            print(f"killed at {place}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(fault)
    lake = config.sink_paths[0]
    with session("killed run", config.sink_paths) as spark:
        run(config, once=True, spark=spark)
        faults.disarm()
        for use in sys.argv[3:]:
            directory, _, key = use.partition("=")
            assert_usable(spark, f"{lake}/{directory}", key)
    print("ended", flush=True)


if __name__ == "__main__":
    main()
