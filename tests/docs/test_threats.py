"""The page of threats names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "explanation" / "threats.md").read_text(encoding="utf-8")
ROWS = [
    line.strip("|").split(" | ")[-1] for line in PAGE.splitlines() if line.startswith("|") and line.count(" | ") == 2
]
NAMED = [
    (file, part)
    for cell in ROWS
    for file, parts in re.findall(r"`([\w/]+\.py)`((?:,? ?`\w+`)*)", cell)
    for part in re.findall(r"`(\w+)`", parts)
]


def test_the_page_names_many() -> None:
    assert len(NAMED) > 15


def test_each_threat_names_a_test_or_that_of_the_row_above() -> None:
    assert [] == [
        cell for cell in ROWS if ".py`" not in cell and "the same" not in cell and cell.strip(" -") not in ("", "test")
    ]


@pytest.mark.parametrize("file,part", NAMED)
def test_it_exists(file: str, part: str) -> None:
    functions = re.findall(r"^def (test_\w+)", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert any(part in name for name in functions), f"{file} has no test with {part} in its name"
