"""All measurements of Delta lakes, one after the other: each of them alone in its process, as when it is called by itself.

Prints what they print, and last one JSON object with all their results. Run: ``python benchmarks/lake.py [--only NAME ...]``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    "copy": ["lake_copy.py"],
    "mirror": ["lake_mirror.py"],
    "tables": ["lake_tables.py"],
    "latency": ["lake_latency.py"],
    "memory": ["lake_memory.py", "--mirror"],
}


def results_of(command: list[str]) -> list[dict[str, object]]:
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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    chosen = options.parse_args()
    print(json.dumps({"results": [result for name in chosen.only for result in results_of(PARTS[name])]}))


if __name__ == "__main__":
    main()
