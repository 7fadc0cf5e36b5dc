"""Compiled code that is kept and travels: what a process says when it compiles, and where others find the code."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from historian import jit
from historian.shipped_code import BASELINE

if TYPE_CHECKING:
    import pytest

SOURCE = """
from pathlib import Path
from historian.jit import compiled, content_stamp

def double(value):
    return 2 * value

double = compiled(double, stamp=content_stamp(Path(__file__).parent), nogil=True)

if __name__ == "__main__":
    import kernel_module
    print(kernel_module.double(21))
"""
SHIPPED = """
from pathlib import Path
from historian import shipped_code

shipped_code.DIRECTORY = Path('{}')
"""
ROOT = Path(__file__).parent.parent.parent


def run(package: Path, kept: Path | None, **more: str) -> subprocess.CompletedProcess[str]:
    kept_in = {} if kept is None else {"NUMBA_CACHE_DIR": str(kept)}
    environment = {**os.environ, **kept_in, "PYTHONPATH": f"{ROOT}{os.pathsep}{package}", **more}
    command = [sys.executable, str(package / "kernel_module.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def test_code_is_compiled_with_a_word_once_and_found_by_an_installation_elsewhere_until_its_source_changes(
    tmp_path: Path,
) -> None:
    here, there, kept = tmp_path / "here", tmp_path / "there", tmp_path / "kept"
    here.mkdir()
    (here / "kernel_module.py").write_text(SOURCE)
    first = run(here, kept)
    assert first.stdout == "42\n"
    assert "compiling kernels" in first.stderr
    assert str(kept) in first.stderr
    shutil.copytree(here, there, ignore=shutil.ignore_patterns("__pycache__"))
    assert run(there, kept).stderr == ""
    (there / "kernel_module.py").write_text(SOURCE.replace("2 * value", "3 * value"))
    changed = run(there, kept)
    assert changed.stdout == "63\n"
    assert "compiling kernels" in changed.stderr


def test_shipped_code_is_found_where_nothing_can_be_written(tmp_path: Path) -> None:
    package, kept = tmp_path / "package", tmp_path / "kept"
    package.mkdir()
    (package / "kernel_module.py").write_text(SOURCE)
    assert "compiling kernels" in run(package, kept).stderr
    code = sorted(kept.rglob("*.nb*"))
    # Files where numba would make directories: beside the package, in the home, and in the shipped directory.
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (package / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    for made in [path for path in kept.iterdir() if path.name != "kernel_module"]:
        shutil.rmtree(made)
        made.write_text("")
    home = str(tmp_path / "home" / "user")

    found = run(package, kept, HOME=home, XDG_CACHE_HOME=home, PYTHONDONTWRITEBYTECODE="1")

    assert (found.stdout, found.stderr) == ("42\n", "")
    assert sorted(kept.rglob("*.nb*")) == code


def test_code_that_came_with_the_wheel_is_taken_where_it_is_of_this_source(tmp_path: Path) -> None:
    package, shipped = tmp_path / "package", tmp_path / "shipped"
    package.mkdir()
    (package / "kernel_module.py").write_text(f"{SHIPPED.format(shipped)}{SOURCE}")
    assert "compiling kernels" in run(package, shipped, NUMBA_CPU_NAME=BASELINE, NUMBA_CPU_FEATURES="").stderr
    code = {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()}

    # As installed: no directory is named.
    found = run(package, None)
    asked = run(package, tmp_path / "kept")
    generic = run(package, None, NUMBA_CPU_NAME="generic")
    (package / "kernel_module.py").write_text(f"{SHIPPED.format(shipped)}{SOURCE.replace('2 * value', '3 * value')}")
    changed = run(package, None)

    assert ("42\n", "") == (found.stdout, found.stderr)
    assert ("42\n", True) == (asked.stdout, str(tmp_path / "kept") in asked.stderr)
    assert ("42\n", True) == (generic.stdout, "compiling kernels" in generic.stderr)
    assert ("63\n", True) == (changed.stdout, "compiling kernels" in changed.stderr)
    assert code == {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()}


def test_shipped_code_is_taken_for_each_kernel_where_numba_has_no_place_for_its_own(tmp_path: Path) -> None:
    package, shipped, temporary = tmp_path / "package", tmp_path / "shipped", tmp_path / "temporary"
    package.mkdir()
    temporary.mkdir()
    both = SOURCE.replace(
        "\nif __name__",
        "\ndef triple(value):\n    return 3 * value\n\n"
        "triple = compiled(triple, stamp=content_stamp(Path(__file__).parent), nogil=True)\n\nif __name__",
    )
    both += "    print(kernel_module.triple(21))\n"
    (package / "kernel_module.py").write_text(f"{SHIPPED.format(shipped)}{both}")
    assert "compiling kernels" in run(package, shipped, NUMBA_CPU_NAME=BASELINE, NUMBA_CPU_FEATURES="").stderr
    shutil.rmtree(package / "__pycache__", ignore_errors=True)
    (package / "__pycache__").write_text("")
    (tmp_path / "home").write_text("")
    home = str(tmp_path / "home" / "user")

    nowhere = {"HOME": home, "XDG_CACHE_HOME": home, "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    found = run(package, None, **nowhere)

    assert ("42\n63\n", "") == (found.stdout, found.stderr)


def test_a_place_that_cannot_be_written_is_no_hindrance(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "kernel_module.py").write_text(SOURCE)
    # A file where the directory should be: nobody can make one there, whoever runs this.
    (tmp_path / "kept").write_text("")
    assert run(package, tmp_path / "kept" / "kernels").stdout == "42\n"


def test_the_last_place_for_code_is_the_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    mine = tmp_path / f"pyspark-historian-kernels-{os.getuid()}"
    assert [mine, mine] == [jit._own_directory(), jit._own_directory()]
    assert 0o700 == stat.S_IMODE(mine.stat().st_mode)

    mine.chmod(0o777)
    other = jit._own_directory()
    assert (mine != other, 0o700) == (True, stat.S_IMODE(other.stat().st_mode))
    mine.rmdir()
    mine.symlink_to(tmp_path)
    assert mine != jit._own_directory()
