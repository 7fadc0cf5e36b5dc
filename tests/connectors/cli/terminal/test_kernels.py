"""Kernels that have no code yet are compiled with a bar, before a command reads a log; and once."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from command_line import HISTORIAN
from monitoring.screens import on_a_screen

ROOT = Path(__file__).parents[4]
KERNELS = """
from pathlib import Path
from historian.jit import compiled, content_stamp

def double(value):
    return 2 * value

def triple(value):
    return 3 * value

STAMP = content_stamp(Path(__file__).parent)
double, triple = (compiled(each, stamp=STAMP, nogil=True) for each in (double, triple))
"""
SCRIPT = """
import few_kernels
from connectors.cli.terminal.kernels import compile_first
from connectors.cli.terminal.logs import LogFormat, LogLevel, configure_logs
from connectors.readers.binlog import compiling

compiling.KERNELS = (few_kernels.double, few_kernels.triple)
configure_logs(LogFormat.TEXT, LogLevel.WARNING)
compile_first()
assert () == compiling.missing_kernels()
"""


def _screen(words: list[str], package: Path, longest_s: float) -> str:
    """All that the terminal was told."""
    paths = os.pathsep.join([str(ROOT), str(package)])
    environment = {"NUMBA_CACHE_DIR": str(package / "kept"), "PYTHONPATH": paths}
    with on_a_screen(words, columns=120, environment=environment) as screen:
        assert 0 == screen.end(longest_s), screen.text()
        return re.sub(r"\x1b\[[0-9;]*m", "", screen.raw.decode())


def test_what_has_no_code_is_compiled_with_a_bar_once(tmp_path: Path) -> None:
    (tmp_path / "few_kernels.py").write_text(KERNELS)

    first, second = (_screen([sys.executable, "-c", SCRIPT], tmp_path, 120) for _ in range(2))

    assert "compiling kernels, once on this machine ━" in first
    kept = {path.name.partition("-")[0] for path in (tmp_path / "kept").rglob("*.nbi")}
    assert {"few_kernels.double", "few_kernels.triple"} == kept
    assert "" == second


@pytest.mark.soak
def test_a_new_installations_first_command_shows_how_far_it_is(tmp_path: Path) -> None:
    log = str(ROOT / "examples" / "shop" / "binlog" / "binlog.000001")
    words = ["tail", "--format", "ndjson", "--table", "shop.coupons", "--binlog", log]

    first, second = (_screen([*HISTORIAN, *words], tmp_path, 600) for _ in range(2))

    assert "compiling kernels, once on this machine ━" in first
    assert "compiling" not in second
    assert first.count('"op":') == second.count('"op":') > 100
