"""How long `historian run --once` takes where there is nothing new, with warm caches: the floor of every command that starts Spark.

``python benchmarks/cluster_start.py [--rounds 3]``. The archive of Java's classes is made first where there is none. The last line is the
result as JSON: ``start_s``, the best of the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from connectors.spark.java_options import archive_path

SHOP = Path(__file__).parents[1] / "examples" / "shop"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    if not archive_path().exists():
        subprocess.run([sys.executable, "-m", "connectors.java_classes"], check=True)
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as directory:
        config = Path(directory, "shop.yaml")
        config.write_text(
            f"name: shop\nsource: {{type: binlog-files, directory: {SHOP / 'binlog'}, tables: [shop.coupons]}}\n"
            f"sinks: [{{type: delta, path: {directory}/lake}}]\n"
        )
        first, *others = [_run(config) for _ in range(rounds + 1)]
    print(f"with a plan: {first:.1f} s; with none: {', '.join(f'{each:.1f}' for each in others)} s")
    print(json.dumps({"results": [{"name": "start_s", "value": round(min(others), 2)}]}))


def _run(config: Path) -> float:
    begin_s = time.perf_counter()
    # Else each run compiles anew what it imports, which an installed package has compiled.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", "from connectors.cli import main; main()", "run", str(config), "--once"]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - begin_s


if __name__ == "__main__":
    main()
