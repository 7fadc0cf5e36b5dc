"""The kernels that are compiled before they are needed."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import connectors
from connectors.compile import compile_kernels
from connectors.readers.binlog.compiling import KERNELS
from connectors.readers.kafka.compiling import KERNELS as KAFKA_KERNELS
from historian.changelog.fingerprints import kernels as fingerprints
from historian.encoding.kernels import containers, memory, plain

READER = Path(connectors.__file__).parent / "readers" / "binlog"
PREFIX = "connectors.readers.binlog.kernels"
ROOT = Path(__file__).parents[2]
USE = """
import sys
from hypothesis import given, settings
from connectors.cli import main
from connectors.compile import compile_kernels
from connectors.readers.binlog.compiling import KERNELS
from historian.encoding import decode_rows, encode_risingwave, encode_rows
from historian.encoding.kernels import containers, memory, plain
from historian.errors import ValueUnrepresentable
from models.random_rows import tables

def signatures():
    of_rows = [found for module in (containers, memory, plain) for found in vars(module).values()]
    kernels = [*KERNELS, *(found for found in of_rows if hasattr(found, "py_func"))]
    return {(kernel.py_func.__name__, str(each)) for kernel in kernels for each in kernel.signatures}

@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(tables(depth=1, more=False))
def rows_of_any_kind(rows):
    assert decode_rows(encode_rows(rows), rows.schema) == rows
    try:
        first = encode_risingwave(rows)
    except ValueUnrepresentable:
        return
    decode_rows(first, rows.schema)

compile_kernels()
made = signatures()
rows_of_any_kind()
sys.argv = ["historian", "tail", "--format", "ndjson", "--binlog", sys.argv[1]]
try:
    main()
except SystemExit as end:
    assert not end.code
assert signatures() == made, signatures() - made
"""


def _kept(folder: Path) -> dict[str, tuple[int, int]]:
    """All files, with size and time."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in files}


def _ship(folder: Path) -> None:
    """Fills *folder* as NUMBA_CACHE_DIR is, with code that is compiled already, since that takes a minute."""
    compile_kernels()
    of_rows = [found for module in (containers, fingerprints, memory, plain) for found in vars(module).values()]
    kernel: Any
    for kernel in (*KERNELS, *KAFKA_KERNELS, *(found for found in of_rows if hasattr(found, "py_func"))):
        module = kernel.py_func.__module__
        (folder / module).mkdir(parents=True, exist_ok=True)
        for file in Path(kernel._cache.cache_path).glob(f"{module.rpartition('.')[2]}.{kernel.py_func.__name__}-*"):
            shutil.copy2(file, folder / module)


def test_shipped_code_serves_a_process_without_a_home_that_compiles_nothing(tmp_path: Path) -> None:
    shipped = tmp_path / "kernels"
    _ship(shipped)
    # A file where directories would be: nobody can write there, whoever runs this.
    (tmp_path / "home").write_text("")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "support")])
    home = str(tmp_path / "home" / "user")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(shipped), "HOME": home, "PYTHONPATH": paths}
    environment.pop("XDG_CACHE_HOME", None)
    before = _kept(shipped)

    made, used = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)
        for command in (
            [sys.executable, "-m", "connectors.compile"],
            [sys.executable, "-c", USE, str(ROOT / "examples" / "shop" / "binlog" / "binlog.000001")],
        )
    )

    assert (made.returncode, used.returncode) == (0, 0), made.stderr + used.stderr
    assert "all kernels are ready" in made.stderr
    assert "compil" not in made.stderr
    assert used.stderr == ""
    assert used.stdout.count('"table": "shop.') > 100
    assert _kept(shipped) == before


def test_each_kernel_that_python_calls_is_among_them() -> None:
    called: set[str] = set()
    for path in (path for path in READER.rglob("*.py") if "kernels" not in path.parts):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
                module = __import__(node.module or "", fromlist=["_"])
                named = [getattr(module, alias.name) for alias in node.names]
                called |= {found.py_func.__name__ for found in named if hasattr(found, "py_func")}
    assert called - {kernel.py_func.__name__ for kernel in KERNELS} <= {"first_wrong_checksum", "first_wrong_folded"}
    assert {"walk", "scan", "find_in_file", "json_text"} <= called


def test_each_kernel_of_messages_that_python_calls_is_among_them() -> None:
    room = READER.parent / "kafka"
    called: set[str] = set()
    for path in (path for path in room.rglob("*.py") if "kernels" not in path.parts and path.name != "compiling.py"):
        tree = ast.parse(path.read_text())
        modules: dict[str, Any] = {}
        for node in ast.walk(tree):
            prefix = "connectors.readers.kafka.kernels"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(prefix):
                module = __import__(node.module or "", fromlist=["_", *(alias.name for alias in node.names)])
                for alias in node.names:
                    modules[alias.asname or alias.name] = getattr(module, alias.name)
        used = [modules.get(node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)]
        used += [
            getattr(modules.get(node.value.id), node.attr, None)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        ]
        called |= {found.py_func.__name__ for found in used if hasattr(found, "py_func")}
    assert called == {kernel.py_func.__name__ for kernel in KAFKA_KERNELS}
