"""An archive for executors has our packages, compiled kernels, and what is asked for; executors are held against the driver."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.compile import KERNELS, compiled_part
from connectors.spark import bundle, executor_report
from connectors.spark.bundle import BundleError, make_bundle
from connectors.spark.executors import ExecutorsDiffer, check_executors


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels take a minute; a test on a cluster has them."""
    monkeypatch.setattr(bundle, "_compiled", lambda *_: {})


@pytest.mark.usefixtures("without_kernels")
def test_what_it_holds_is_imported_where_nothing_is_installed_and_says_its_version(tmp_path: Path) -> None:
    made = make_bundle(tmp_path / "historian.zip", ["PyMySQL", "pyspark"])
    with zipfile.ZipFile(made.path) as archive:
        archive.extractall(tmp_path / "historian")

    names = ("connectors", "historian", "sinks", "pyspark_historian", "pymysql")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from importlib import metadata, util;"
        f"print(metadata.version('pyspark-historian'), *(util.find_spec(n).origin for n in {names}))"
    )
    packages = tmp_path / "historian" / "packages"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(packages)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )

    assert [version("pyspark-historian"), *(f"{packages}/{name}/__init__.py" for name in names)] == done.stdout.split()
    assert {"pymysql"} == set(made.distributions), "Spark's own stay the cluster's"
    assert [] == [
        str(path) for path in packages.rglob("*") if "__pycache__" in str(path) and "historian" not in str(path)
    ]


def test_what_is_compiled_is_told_by_the_files_that_are_there(tmp_path: Path) -> None:
    found = [compiled_part(tmp_path)]
    for kernel in KERNELS:
        file = tmp_path / kernel.py_func.__module__ / kernel._cache._cache_file._index_name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        found.append(compiled_part(tmp_path))

    assert found[0] == 0
    assert found == sorted(set(found))
    assert 0.7 < found[-1] < 1


@pytest.mark.usefixtures("without_kernels")
def test_the_same_code_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = make_bundle(tmp_path / "a.zip"), make_bundle(tmp_path / "b.zip")

    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.usefixtures("without_kernels")
def test_what_is_not_installed_is_refused_and_what_stood_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "historian.zip"
    path.write_text("former")

    with pytest.raises(BundleError, match="not installed here \\(no-such-thing\\)"):
        make_bundle(path, ["no_such.thing"])

    assert ["former"] == [each.read_text() for each in tmp_path.iterdir()]


def _session(told: list[tuple[str, str, str]]) -> Any:
    job = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: told))
    return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2, parallelize=lambda *_: job))


def test_an_executor_that_has_other_code_is_named_with_both_sides() -> None:
    [(host, _, ours)] = executor_report.report(None)

    with pytest.raises(ExecutorsDiffer) as raised:
        check_executors(_session([(host, "/here", ours), ("far", "/there/python", f"{ours[:-4]}0000")]))

    assert ours in str(raised.value)
    assert f"{ours[:-4]}0000 on far (/there/python)" in str(raised.value)
    assert "historian bundle" in str(raised.value)


def test_the_third_number_of_python_does_not_matter() -> None:
    [(host, path, ours)] = executor_report.report(None)
    python, _, digest = ours.partition(", ")

    check_executors(_session([(host, path, f"{python.rpartition('.')[0]}.99, {digest}")]))


@pytest.mark.usefixtures("without_kernels")
def test_ctrl_c_leaves_nothing_beside_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        assert [".historian.zip"] == [path.stem for path in tmp_path.iterdir()], "the file is being written"
        raise KeyboardInterrupt

    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupted)

    with pytest.raises(KeyboardInterrupt):
        make_bundle(tmp_path / "historian.zip")

    assert [] == list(tmp_path.iterdir())
