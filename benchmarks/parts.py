"""Measurements of one thing, one after the other: each of them alone in its process, as when it is called by itself."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["run_parts"]

HERE = Path(__file__).parent


def run_parts(description: str, parts: Mapping[str, Sequence[str]]) -> None:
    """Runs the *parts* that ``--only`` names, or all; prints what they print, and last one JSON object with all their results."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--only", nargs="+", choices=list(parts), default=list(parts))
    chosen = options.parse_args()
    print(json.dumps({"results": [result for name in chosen.only for result in _results_of(parts[name])]}))


def _results_of(command: Sequence[str]) -> list[dict[str, object]]:
    """What a measurement says on its last line; the lines before are printed as they come."""
    line = ""
    with subprocess.Popen([sys.executable, HERE / command[0], *command[1:]], stdout=subprocess.PIPE, text=True) as part:
        assert part.stdout is not None
        for line in part.stdout:
            if not line.startswith("{"):
                print(line, end="", flush=True)
    if part.returncode:
        raise SystemExit(f"{command[0]} ended with {part.returncode}")
    found: list[dict[str, object]] = json.loads(line)["results"]
    return found
