"""A run that ends has Java started when it writes, and its Spark session where it needs one; one that finds nothing new has neither."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pyarrow.fs as pafs
import pytest

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
        context = SparkContext._active_spark_context
        if context is not None:
            self.seen.append(("endpoint", context._jsc.hadoopConfiguration().get("fs.s3a.endpoint")))
    def closed(self):
        self.look("closed")
        self.seen.append(("java", java_process() is not None))

looks = Looks()
stopped = run(load_config(sys.argv[1]), once=True, observer=looks)
print(json.dumps([looks.seen, dict(stopped), SparkContext._active_spark_context is not None]))
"""


def test_a_run_that_finds_nothing_new_starts_no_java_and_one_that_needs_a_session_keeps_its_signals(
    tmp_path: Path,
) -> None:
    """Ctrl-C while the session is made, when Spark's context has its own handler, ends it behind its plan."""
    config = _config(tmp_path, "writer: spark, ")

    first, second = _run(config), _run(config)

    written = [["written", True], ["signals", True], ["endpoint", "http://127.0.0.1:9"]]
    assert first == [[["opened", False], ["java", True], *written, ["closed", True], ["java", True]], {}, False]
    assert second == [[["opened", False], ["java", False], ["closed", False], ["java", False]], {}, False]
    assert list((tmp_path / "lake" / "shop_coupons").rglob("part-*.parquet"))


def test_a_run_whose_tables_are_not_spark_s_to_write_makes_no_session(tmp_path: Path) -> None:
    written = [["written", False], ["signals", True]]
    expected = [[["opened", False], ["java", True], *written, ["closed", False], ["java", True]], {}, False]

    assert expected == _run(_config(tmp_path, ""))

    assert list((tmp_path / "lake" / "shop_coupons").glob("*.parquet"))


@pytest.mark.soak
def test_a_run_into_s3_makes_no_session_either_and_finds_its_lake_again(tmp_path: Path) -> None:
    """Its Java knows how the bucket is reached from Spark's settings, and Python from its Java."""
    from moto.server import ThreadedMotoServer

    storage = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    storage.start()
    try:
        _, port = storage.get_host_and_port()
        urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
        files = pafs.S3FileSystem(
            access_key="key", secret_key="secret", region="us-east-1", scheme="http",
            endpoint_override=f"127.0.0.1:{port}", allow_bucket_creation=True,
        )  # fmt: skip
        files.create_dir("bucket")
        config = _config(tmp_path, "")
        hadoop = {
            "endpoint": f"http://127.0.0.1:{port}",
            "path.style.access": "true",
            "access.key": "key",
            "secret.key": "secret",
        }
        said = ", ".join(f"spark.hadoop.fs.s3a.{name}: '{value}'" for name, value in hadoop.items())
        text = config.read_text().replace("spark.hadoop.fs.s3a.endpoint: 'http://127.0.0.1:9'", said)
        config.write_text(text.replace(f"{tmp_path}/lake", "s3a://bucket/lake"))

        first, second = _run(config), _run(config)
    finally:
        storage.stop()

    java = ["java", True]
    expected = [["opened", False], java, ["written", False], ["signals", True], ["closed", False], java]
    assert first == [expected, {}, False]
    assert second == [[["opened", False], java, ["closed", False], java], {}, False]


def _config(directory: Path, more: str) -> Path:
    log = ROOT / "examples" / "shop" / "binlog"
    config = directory / "shop.yaml"
    config.write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {log}, tables: [shop.coupons]}}\n"
        f"sinks: [{{type: delta, {more}path: {directory}/lake}}]\nhistory: {{store: 'sqlite:///{directory}/store.db'}}\n"
        "run: {spark: {master: 'local[1]', conf: {spark.hadoop.fs.s3a.endpoint: 'http://127.0.0.1:9'}}}\n"
    )
    return config


def _run(config: Path) -> Any:
    done = subprocess.run([sys.executable, "-c", SCRIPT, config], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [told] = [line for line in done.stdout.splitlines() if line.startswith("[[")]
    return json.loads(told)
