"""The page of checks names each of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
CELLS = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
NAMED = {name for cell in CELLS for name in re.findall(r"`([^`]+)`", cell)}
MAKERS = ("ok", "warning", "failed", "_recommended", "_check")


def _told() -> Iterator[tuple[str, str]]:
    """Names of results in the code, and where they stand; what is filled in is TABLE, NAME or a number."""
    for file in sorted((ROOT / "connectors" / "check").glob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
                at = 1 if node.func.id == "_recommended" else 0
                for name in _texts(node.args[at], constants):
                    yield name, f"{file.name}:{node.lineno}"


def _texts(node: ast.expr, constants: dict[str, object]) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.Name) and node.id in constants:
        yield str(constants[node.id])
    elif isinstance(node, ast.JoinedStr):
        parts = (
            str(part.value) if isinstance(part, ast.Constant) else next(_texts(part.value, constants), "FILLED")
            for part in node.values
            if isinstance(part, (ast.Constant, ast.FormattedValue))
        )
        yield "".join(parts)


def _is_named(name: str) -> bool:
    pattern = re.escape(name).replace("FILLED", "[A-Z]+")
    return any(re.fullmatch(pattern, each) for each in NAMED)


def test_each_check_stands_on_the_page() -> None:
    told = list(_told())

    assert len({name for name, _ in told}) > 40
    assert [] == [(name, place) for name, place in told if not _is_named(name)]
