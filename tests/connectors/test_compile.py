"""The kernels that are compiled before they are needed."""

from __future__ import annotations

import ast
from pathlib import Path

import connectors
from connectors.compile import KERNELS

READER = Path(connectors.__file__).parent / "readers" / "binlog"
PREFIX = "connectors.readers.binlog.kernels"


def test_each_kernel_that_python_calls_is_among_them() -> None:
    called: set[str] = set()
    for path in READER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX):
                module = __import__(node.module or "", fromlist=["_"])
                named = [getattr(module, alias.name) for alias in node.names]
                called |= {found.py_func.__name__ for found in named if hasattr(found, "py_func")}
    assert called - {kernel.py_func.__name__ for kernel in KERNELS} <= {"first_wrong_checksum", "first_wrong_folded"}
    assert {"walk", "scan", "find_in_file", "json_text"} <= called
