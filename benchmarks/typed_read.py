"""What a first look at a table costs: a typed batch read of the demo's log, in a process and a Spark session of its own.

``typed_read_s``: seconds from before the session starts until all rows of ``shop.orders`` are counted in Python; the median of some calls. Kernels are
compiled before, the archive of Java's classes is made, Delta's jars are there. The line before says where the time goes, and the processor's
time of all processes, which other work on the machine leaves as it is.
Prints what it does, and last one JSON object. Run: ``python benchmarks/typed_read.py [--calls 3] [--table shop.orders]``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from processor import processor_s

CONFIG = f"""
name: shop
source: {{type: binlog-files, flavor: mysql, directory: {ROOT}/examples/shop/binlog, tables: ["shop.*"]}}
"""


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=3)
    options.add_argument("--table", default="shop.orders")
    options.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.once:
        print(json.dumps(read(chosen.table)))
        return
    _run([sys.executable, "-m", "connectors.compile"])
    from connectors.spark.java_options import archive_path

    if not archive_path().exists():
        _run([sys.executable, "-m", "connectors.java_classes"])
    with tempfile.TemporaryDirectory() as work:
        command = [sys.executable, __file__, "--once", "--table", chosen.table]
        calls = [json.loads(_run(command, work).splitlines()[-1]) for _ in range(chosen.calls)]
    for call in calls:
        print("  ".join(f"{name} {value:,.1f}" for name, value in call.items()))
    from binlog_work import report  # what it needs is not to be in the process that is measured

    median_s = statistics.median(call["total_s"] for call in calls)
    report([{"name": "typed_read_s", "value": round(median_s, 1), "unit": "s"}])


def read(table: str) -> dict[str, float]:
    """Reads *table*; seconds by what they were spent on."""
    began_s = time.perf_counter()
    from pyspark_historian.session import local_session

    spark = local_session("typed read")
    session_s = time.perf_counter()
    rows = spark.read.format("historian").option("config_text", CONFIG).option("table", table).load()
    loaded_s = time.perf_counter()
    count = rows.toArrow().num_rows
    ended_s = time.perf_counter()
    spent = {"rows": count, "processor_s": processor_s()}
    spark.stop()
    return {
        "total_s": ended_s - began_s,
        "session_s": session_s - began_s,
        "load_s": loaded_s - session_s,
        "collect_s": ended_s - loaded_s,
        **spent,
    }


def _run(command: list[str], directory: str | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # Modules are compiled once on a machine, too, and not in each process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=directory, env=environment)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    return done.stdout


if __name__ == "__main__":
    main()
