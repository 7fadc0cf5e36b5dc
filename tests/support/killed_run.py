"""Runs a connector in a process of its own and kills it with SIGKILL when a write reaches a place.

``python killed_run.py CONFIG PLACE|NUMBER|-``: a place by its name, or so many places behind the start. Prints the place before
the end. With ``-`` the run ends by itself.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

from connectors.config import load_config
from connectors.pipeline import run
from sinks.delta import faults


def main() -> None:
    """Arms the fault and runs once."""
    config, wanted = load_config(sys.argv[1]), sys.argv[2]
    number = itertools.count(1)

    def fault(place: str) -> None:
        if wanted in (place, str(next(number))):
            print(f"killed at {place}", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    faults.arm(fault)
    run(config, once=True)
    print("ended", flush=True)


if __name__ == "__main__":
    main()
