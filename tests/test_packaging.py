"""What is shipped: one wheel with four packages, and a format that Spark finds by itself."""

from __future__ import annotations

import importlib.metadata
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from connectors.spark.jvm import DELTA_JARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
PACKAGES = {"connectors", "historian", "pyspark_historian", "sinks"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this work tree."""
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = target.glob("*.whl")
    return zipfile.ZipFile(path)


def test_wheel_holds_the_four_packages_and_no_other(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}

    assert PACKAGES == {name for name in top if not name.endswith((".dist-info", ".data"))}
    assert {"pyspark_historian"} == {name.split("-")[0] for name in top if name.endswith((".dist-info", ".data"))}


def test_wheel_brings_the_manual_page(wheel: zipfile.ZipFile) -> None:
    data = [name.partition(".data/")[2] for name in wheel.namelist() if ".data/" in name]

    assert ["data/share/man/man1/historian.1"] == data


def test_wheel_is_typed_and_carries_its_licence(wheel: zipfile.ZipFile) -> None:
    names = wheel.namelist()

    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert [True] == [name.endswith("licenses/LICENSE") for name in names if "LICENSE" in name]


def test_wheel_installs_the_command(wheel: zipfile.ZipFile) -> None:
    (path,) = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]

    assert "historian = connectors.cli:main" in wheel.read(path).decode().splitlines()


def test_wheel_has_what_the_page_is_made_of(wheel: zipfile.ZipFile) -> None:
    assets = [name for name in wheel.namelist() if name.startswith("connectors/page/assets/")]

    assert ["page.css", "page.html", "page.js"] == sorted(Path(name).name for name in assets)


def test_wheel_with_kernels_is_one_for_this_python_and_platform(tmp_path: Path) -> None:
    code = tmp_path / "kernels" / "some.module" / "some.kernel.nbi"
    code.parent.mkdir(parents=True)
    code.write_bytes(b"code")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path / "dist")]
    environment = {**os.environ, "HISTORIAN_KERNELS": str(tmp_path / "kernels")}
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=environment)

    (path,) = (tmp_path / "dist").glob("*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert path.name.endswith(f"-{python}-{python}-manylinux_2_17_x86_64.whl")
    with zipfile.ZipFile(path) as made:
        assert b"code" == made.read("historian/shipped/some.module/some.kernel.nbi")
        assert "historian/shipped_code.py" in made.namelist()


def test_jars_and_python_half_of_delta_are_of_one_version() -> None:
    (revision,) = {jar.revision for jar in DELTA_JARS if jar.organisation == "io.delta"}

    assert importlib.metadata.version("delta-spark") == revision
    assert {"delta-kernel-api", "delta-kernel-defaults"} <= {jar.name for jar in DELTA_JARS}


def test_delta_is_built_for_the_spark_we_pin() -> None:
    (name,) = [jar.name for jar in DELTA_JARS if jar.name.startswith("delta-spark")]

    series = importlib.metadata.version("pyspark").rpartition(".")[0]
    assert re.fullmatch(rf"delta-spark_{re.escape(series)}_2\.13", name)


def test_spark_finds_our_source() -> None:
    import pyspark_historian
    from connectors.spark.data_source import HistorianSource

    assert HistorianSource is pyspark_historian.DefaultSource
    assert pyspark_historian.DefaultSource.name() == "historian"


def test_format_needs_no_registration(spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"missing @ \$\.config"):
        spark.read.format("historian").load()


def test_source_that_cannot_be_imported_says_why_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.cloudpickle import dumps

    import pyspark_historian

    monkeypatch.setitem(sys.modules, "connectors.spark.data_source", None)

    # As Spark does it: the class is pickled in one process and used in another.
    source = pickle.loads(dumps(pyspark_historian.DefaultSource))

    assert source.name() == "historian"
    with pytest.raises(ImportError, match=r"cannot be loaded: .*connectors\.spark"):
        source({}).schema()


def test_session_sees_delta_and_its_kernel(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "table"))

    jvm, context = spark._jvm, spark.sparkContext
    assert jvm is not None
    engine = jvm.io.delta.kernel.defaults.engine.DefaultEngine.create(context._jsc.hadoopConfiguration())
    snapshot = jvm.io.delta.kernel.TableManager.loadSnapshot(str(tmp_path / "table")).build(engine)

    assert (0, 3) == (snapshot.getVersion(), spark.read.format("delta").load(str(tmp_path / "table")).count())
