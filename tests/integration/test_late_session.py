"""A run that ends has its Spark session made with its first rows; one that finds nothing new has none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, os, signal, sys
from pyspark import SparkContext
from connectors.config import load_config
from connectors.monitoring.memory import java_process
from connectors.monitoring.observer import Observer
from connectors.pipeline.run import run

begin = SparkContext._do_init

def interrupted(context, *arguments):
    begin(context, *arguments)
    os.kill(os.getpid(), signal.SIGINT)

SparkContext._do_init = interrupted

class Looks(Observer):
    def __init__(self):
        self.seen = []
    def look(self, what):
        self.seen.append((what, SparkContext._active_spark_context is not None))
    def opened(self):
        self.look("opened")
        self.seen.append(("java", java_process() is not None))
        self.handler = signal.getsignal(signal.SIGINT)
    def written(self, plan):
        self.look("written")
        self.seen.append(("signals", signal.getsignal(signal.SIGINT) is self.handler))
        hadoop = SparkContext._active_spark_context._jsc.hadoopConfiguration()
        self.seen.append(("endpoint", hadoop.get("fs.s3a.endpoint")))
    def closed(self):
        self.look("closed")

for _ in range(2):
    looks = Looks()
    stopped = run(load_config(sys.argv[1]), once=True, observer=looks)
    print(json.dumps([looks.seen, dict(stopped), SparkContext._active_spark_context is not None]))
"""


def test_a_run_that_finds_nothing_new_makes_no_session_and_one_that_does_keeps_its_signals(tmp_path: Path) -> None:
    """Ctrl-C while the session is made, when Spark's context has its own handler, ends it behind its plan."""
    log = ROOT / "examples" / "shop" / "binlog"
    config = tmp_path / "shop.yaml"
    config.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {log}, tables: [shop.coupons]}}\n"
        f"sinks: [{{type: delta, path: {tmp_path}/lake}}]\nhistory: {{store: 'sqlite:///{tmp_path}/store.db'}}\n"
        "run: {spark: {master: 'local[1]', conf: {spark.hadoop.fs.s3a.endpoint: 'http://127.0.0.1:9'}}}\n"
    )

    done = subprocess.run([sys.executable, "-c", SCRIPT, config], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("[["))
    written = [["written", True], ["signals", True], ["endpoint", "http://127.0.0.1:9"]]
    assert first == [[["opened", False], ["java", True], *written, ["closed", True]], {}, False]
    assert second == [[["opened", False], ["java", True], ["closed", False]], {}, False]
    assert list((tmp_path / "lake" / "shop_coupons").glob("*.parquet"))
