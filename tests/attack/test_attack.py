"""A few rounds of each class of attack, the same ones in every run; `make attack` looks for new ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from adversary.classes import CLASSES
from adversary.rounds import play
from adversary.stops import named_stops, stop_of
from server_builds import BUILDS
from servers import Server

ROOT = Path(__file__).parents[2]
CODE = [path for part in ("historian", "connectors", "sinks") for path in (ROOT / part).rglob("*.py")]
KINDS = [*BUILDS]
SEEDS = {
    "cascades": (0, 3, 5),
    "charsets": (1, 5, 7),
    "keys": (0, 3, 5),
    "literals": (2, 3, 6),
    "logs": (3, 5, 9),
    "moves": (0, 1, 2),
    "names": (0, 2, 5),
    "recreate": (0, 1, 2),
    "swaps": (6,),
    "temporary": (1, 3, 4),
    "transactions": (0, 1, 2),
    "wrappers": (1, 2, 3),
    "zones": (1, 2, 3),
}


@pytest.mark.parametrize("attack", CLASSES)
def test_an_attack_finds_neither_a_wrong_value_nor_a_stop_that_no_page_names(
    attack: str, request: pytest.FixtureRequest
) -> None:
    at = [*CLASSES].index(attack)
    for seed in SEEDS[attack]:
        server: Server = request.getfixturevalue(KINDS[(at + seed) % len(KINDS)])
        outcome = play(attack, server, seed)
        assert outcome.found == [], str(outcome)


def _literals() -> set[str]:
    """The first words of all reasons that stand at a place where a table is stopped."""
    found: set[str] = set()
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "TableStopped" and node.args:
                first = node.args[0]
                if isinstance(first, ast.JoinedStr):
                    first = first.values[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def test_each_reason_of_a_stop_is_one_that_the_page_names() -> None:
    literals = _literals()

    assert len(literals) > 15
    assert {text for text in literals if stop_of(text) is None} == set()


def test_the_page_names_no_reason_that_nothing_gives() -> None:
    texts = [path.read_text(encoding="utf-8") for path in CODE]
    strings = "\n".join(
        node.value
        for text in texts
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )

    begins = {begin for all_begins in named_stops().values() for begin in all_begins}
    assert {begin for begin in begins if begin not in strings} == set()
