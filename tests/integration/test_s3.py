"""A lake in S3: the connector writes it as one on a disk, whatever the store answers, through a crash that leaves files of no table; people use it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from connectors.cli.terminal.outcome import ExitCode
from connectors.config import load_config
from connectors.pipeline.run import run
from connectors.spark.jvm_s3 import s3_jars
from lakes.faulty_s3 import (
    BUSY,
    DENIED,
    EXPIRED,
    LOST,
    PASSING,
    REGION,
    RESET,
    SLOW,
    TRUNCATED,
    Faults,
    Rule,
    behind_entry,
    faulty_s3,
    mixed,
    of_each,
    stored_in_s3,
)
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
COMPARED = frozenset({"shop_products"})
"""Tables that we write, where no people come by: their rows alone would be compared if Spark wrote all files."""
USES = ("shop_products_changes=offset", "shop_products=sku")


@pytest.fixture
def s3() -> Iterator[tuple[str, pafs.S3FileSystem]]:
    """The address of an S3 endpoint with a bucket, and the endpoint as a file system."""
    with stored_in_s3() as stored:
        yield stored


@pytest.fixture(scope="module")
def expected(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the lake that a run on a disk makes of a configuration, once for each."""

    @cache
    def made(more: str) -> Path:
        directory = tmp_path_factory.mktemp("disk")
        lake = directory / "lake"
        run(load_config(_config(directory, str(lake), more)), once=True, spark=spark)
        return lake

    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "more,uses",
    [(PLAIN, ()), pytest.param(MANY_PLANS, USES, marks=pytest.mark.soak)],
    ids=["one plan", "many plans, and what people do to tables"],
)
def test_a_lake_in_s3_holds_what_one_on_a_disk_does(
    s3: tuple[str, pafs.S3FileSystem],
    spark: SparkSession,
    expected: Callable[[str], Path],
    tmp_path: Path,
    more: str,
    uses: Sequence[str],
) -> None:
    """The first run is killed when the rows' files are there and no table knows them.

    The second one ends, with credentials that end before it does, and a store of which each kind of bad answer comes. Where
    there are many plans, some merge, some change schemas, files are joined, and Spark writes one of the tables.
    """
    endpoint, files = s3
    s3_jars()
    assert f"killed at {PLACE}" in _run(tmp_path / "s3", more, PLACE, endpoint, SECRETS)
    left = _data_files(files)
    assert left
    with _faulty(endpoint, mixed()) as (through, faults, renewed):
        assert "ended" in _run(tmp_path / "s3", more, "-", through, renewed, *uses)
    assert PASSING <= {*faults.met}, faults.met
    assert faults.given > 2

    used = {use.partition("=")[0] for use in uses}
    known = _same_as_on_a_disk(files, spark, tmp_path, expected(more), compared=COMPARED - used)
    assert left - known, "the crash left no file that no table knows"
    assert known <= _data_files(files)


@pytest.mark.soak
@pytest.mark.parametrize("kind,every", [(BUSY, 3), (TRUNCATED, 2), (RESET, 4), (LOST, 3), (SLOW, 25)])
def test_what_passes_of_a_store_costs_no_row_and_doubles_none(
    s3: tuple[str, pafs.S3FileSystem],
    spark: SparkSession,
    expected: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    every: int,
) -> None:
    endpoint, files = s3
    with _faulty(endpoint, of_each(kind, every)) as (through, faults, renewed):
        assert "ended" in _run(tmp_path / "s3", MANY_PLANS, "-", through, renewed)
    assert faults.met[kind] > 3
    _same_as_on_a_disk(files, spark, tmp_path, expected(MANY_PLANS))


@pytest.mark.soak
@pytest.mark.parametrize(
    "kind,said",
    [
        (REGION, "expecting 'eu-central-1'.* next set fs.s3a.endpoint.region to the bucket's region"),
        (DENIED, "Access Denied.* next allow GetObject, PutObject"),
        (EXPIRED, "The provided token has expired.* next renew the credentials"),
    ],
)
def test_what_does_not_pass_is_one_sentence(
    s3: tuple[str, pafs.S3FileSystem], tmp_path: Path, kind: str, said: str
) -> None:
    endpoint, _ = s3
    with faulty_s3(endpoint, lambda _: kind) as (through, _):
        told = _refused(tmp_path, PLAIN, through)
    assert re.search(said, " ".join(told.split())), told
    assert "s3a://bucket/lake" in told
    assert "\tat " not in told
    assert len([line for line in told.splitlines() if line.strip()]) < 12, told


@pytest.mark.soak
@pytest.mark.parametrize("kind", [REGION, DENIED, EXPIRED])
def test_what_ends_a_run_amid_its_plans_is_mended_and_the_next_one_goes_on(
    s3: tuple[str, pafs.S3FileSystem],
    spark: SparkSession,
    expected: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
) -> None:
    endpoint, files = s3
    with faulty_s3(endpoint, behind_entry(kind, 7)) as (through, faults):
        told = _refused(tmp_path / "s3", MANY_PLANS, through)
        assert faults.met[kind]
        assert "\tat " not in told
        faults.rule = lambda _: None
        assert "ended" in _run(tmp_path / "s3", MANY_PLANS, "-", through, SECRETS)
    _same_as_on_a_disk(files, spark, tmp_path, expected(MANY_PLANS))


HISTORIAN = (sys.executable, "-c", "from connectors.cli import main; main()")
PLACE = "files_written"
SECRETS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
PATHS = {"PYSPARK_SUBMIT_ARGS": "--conf spark.hadoop.fs.s3a.path.style.access=true pyspark-shell"}


@contextmanager
def _faulty(endpoint: str, rule: Rule) -> Iterator[tuple[str, Faults, dict[str, str]]]:
    """An endpoint with faults, and the variables of a process whose credentials it gives and takes back after a few seconds."""
    with faulty_s3(endpoint, rule, life_s=12) as (through, faults):
        yield through, faults, {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{through}/credentials"}


def _run(directory: Path, more: str, place: str, endpoint: str, credentials: dict[str, str], *uses: str) -> str:
    config = _config(directory, "s3a://bucket/lake", more)
    return run_killed(config, place, *uses, **PATHS, **credentials, AWS_ENDPOINT_URL=endpoint)


def _refused(directory: Path, more: str, endpoint: str) -> str:
    """What a run says that the store ends."""
    found = subprocess.run(
        [*HISTORIAN, "run", "--once", str(_config(directory, "s3a://bucket/lake", more))],
        env={**os.environ, **SECRETS, **PATHS, "AWS_ENDPOINT_URL": endpoint},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert found.returncode == ExitCode.SINK, found.stderr
    return found.stderr


def _same_as_on_a_disk(
    files: pafs.S3FileSystem, spark: SparkSession, tmp_path: Path, disk: Path, compared: Collection[str] = COMPARED
) -> set[str]:
    """Fails unless the lake is *disk*, which a run made: rows, and the bytes of our files where no run's own time is in them.

    Gives the names of files that tables know.

    Args:
        compared: tables that have files of ours whose bytes are compared.
    """
    pafs.copy_files("bucket/lake", str(tmp_path / "lake"), source_filesystem=files)
    names = sorted(path.name for path in disk.iterdir())
    assert sorted(path.name for path in (tmp_path / "lake").iterdir()) == names
    assert sum(name.endswith("_history") for name in names) == 2
    known, without = set(), {*compared}
    for name in names:
        found, other = (_read(spark, lake / name) for lake in (tmp_path / "lake", disk))
        assert _rows(found, name) == _rows(other, name), name
        digests = _bytes(found, name)
        assert digests == _bytes(other, name), name
        without -= {name} if digests else set()
        known |= {Path(unquote(urlsplit(file).path)).name for file in found.inputFiles()}
    assert set() == without
    return known


def _config(directory: Path, path: str, more: str) -> Path:
    directory.mkdir(exist_ok=True)
    config = directory / "shop.yaml"
    config.write_text(CONFIG.format(binlog=ROOT / "examples/shop/binlog", directory=directory, path=path, more=more))
    return config


def _data_files(files: pafs.S3FileSystem) -> set[str]:
    found = files.get_file_info(pafs.FileSelector("bucket/lake", recursive=True))
    return {info.base_name for info in found if info.path.endswith(".parquet") and "/_delta_log/" not in info.path}


def _bytes(frame: DataFrame, name: str) -> list[str]:
    """Digests of the files of a table, but of those that Spark wrote: which rows come first there goes by how it happened to join.

    Of these the rows alone are compared.
    """
    if name.startswith("historian_") or "system_time" in frame.columns:
        return []
    paths = [Path(unquote(urlsplit(file).path)) for file in frame.inputFiles()]
    ours = [path for path in paths if not pq.read_metadata(path).created_by.startswith("parquet-mr")]
    return sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in ours)


def _read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path))


def _rows(frame: DataFrame, name: str) -> list[Any]:
    """What does not tell one run from another: each has an identity of its own, which its plans name."""
    if name.startswith("historian_"):
        frame = frame.select(
            *(column for column in frame.columns if column in ("plan", "number", "table_id", "changelog"))
        )
    return sorted((tuple(row) for row in frame.drop("system_time").collect()), key=repr)
