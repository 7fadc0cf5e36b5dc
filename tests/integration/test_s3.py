"""A lake in S3: the connector writes it as one on a disk, through a crash that leaves files of no table, and people use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

import pyarrow.fs as pafs
import pytest

from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm_s3 import s3_jars
from lakes.killed_run import run_killed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
CONFIG = """
name: shop
source:
  type: binlog-files
  directory: {binlog}
  tables: ["shop.products", "shop.coupons"]
history:
  store: sqlite:///{directory}/store.db
sinks:
  - type: delta
    path: {path}
    history: "{{database}}_{{table}}_history"
{more}
  checkpoint: {directory}/checkpoint
  trigger: once
"""
PLAIN = "run:"
MANY_PLANS = """
    compact: {files: 2, target: 1 MB}
    tables:
      shop.coupons: {writer: spark}
run:
  max_batch_bytes: 2 MB"""
USES = ("shop_products_changes=offset", "shop_products=sku")


@pytest.fixture
def s3() -> Iterator[tuple[str, pafs.S3FileSystem]]:
    """The address of an S3 endpoint with a bucket, and the endpoint as a file system."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        # What other tests of this process put there is gone.
        urlopen(Request(f"http://127.0.0.1:{port}/moto-api/reset", method="POST")).close()
        files = pafs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            region="us-east-1",
            scheme="http",
            endpoint_override=f"127.0.0.1:{port}",
            allow_bucket_creation=True,
        )
        files.create_dir("bucket")
        yield f"http://127.0.0.1:{port}", files
    finally:
        server.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "more,uses",
    [(PLAIN, ()), pytest.param(MANY_PLANS, USES, marks=pytest.mark.soak)],
    ids=["one plan", "many plans, and what people do to tables"],
)
def test_a_lake_in_s3_holds_what_one_on_a_disk_does(
    s3: tuple[str, pafs.S3FileSystem], spark: SparkSession, tmp_path: Path, more: str, uses: Sequence[str]
) -> None:
    """The first run is killed when the rows' files are there and no table knows them; the second one ends.

    Where there are many plans, some merge, some change schemas, files are joined, and Spark writes one of the tables.
    """
    endpoint, files = s3
    s3_jars()
    assert f"killed at {PLACE}" in _run(tmp_path / "s3", more, PLACE, endpoint)
    left = _data_files(files)
    assert left
    assert "ended" in _run(tmp_path / "s3", more, "-", endpoint, *uses)
    run(load_config(_config(tmp_path / "disk", str(tmp_path / "expected"), more)), once=True, spark=spark)
    pafs.copy_files("bucket/lake", str(tmp_path / "lake"), source_filesystem=files)

    names = sorted(path.name for path in (tmp_path / "expected").iterdir())
    assert sorted(path.name for path in (tmp_path / "lake").iterdir()) == names
    assert sum(name.endswith("_history") for name in names) == 2
    known = set()
    for name in names:
        found, expected = (_read(spark, tmp_path / lake / name) for lake in ("lake", "expected"))
        assert _rows(found, name) == _rows(expected, name), name
        known |= {Path(unquote(urlsplit(file).path)).name for file in found.inputFiles()}
    assert left - known, "the crash left no file that no table knows"
    assert known <= _data_files(files)


PLACE = "files_written"


def _run(directory: Path, more: str, place: str, endpoint: str, *uses: str) -> str:
    return run_killed(
        _config(directory, "s3a://bucket/lake", more),
        place,
        *uses,
        PYSPARK_SUBMIT_ARGS="--conf spark.hadoop.fs.s3a.path.style.access=true pyspark-shell",
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="secret",
        AWS_ENDPOINT_URL=endpoint,
    )


def _config(directory: Path, path: str, more: str) -> Path:
    directory.mkdir(exist_ok=True)
    config = directory / "shop.yaml"
    config.write_text(CONFIG.format(binlog=ROOT / "examples/shop/binlog", directory=directory, path=path, more=more))
    return config


def _data_files(files: pafs.S3FileSystem) -> set[str]:
    found = files.get_file_info(pafs.FileSelector("bucket/lake", recursive=True))
    return {info.base_name for info in found if info.path.endswith(".parquet") and "/_delta_log/" not in info.path}


def _read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def _rows(frame: DataFrame, name: str) -> list[Any]:
    """What does not tell one run from another: each has an identity of its own, which its plans name."""
    if name.startswith("historian_"):
        frame = frame.select(
            *(column for column in frame.columns if column in ("plan", "number", "table_id", "changelog"))
        )
    return sorted((tuple(row) for row in frame.drop("system_time").collect()), key=repr)
