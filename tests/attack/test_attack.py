"""A few rounds of each class of attack, the same ones in every run; `make attack` looks for new ones."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adversary.classes import CLASSES, servers_of
from adversary.rounds import play
from adversary.stops import named_stops, stop_of
from databases.server_builds import BUILDS
from databases.servers import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
CODE = [path for part in ("historian", "connectors", "sinks") for path in (ROOT / part).rglob("*.py")]
KINDS = [*BUILDS]
SEEDS = {
    "captured": (0, 1, 2),
    "cascades": (0, 1, 2),
    "charsets": (0, 1, 3),
    "engines": (0, 1, 2),
    "indirect": (0, 1, 2),
    "keys": (0, 2, 3),
    "literals": (1, 2, 3),
    "logs": (1, 2, 3),
    "moves": (0, 1, 2),
    "names": (0, 1, 2),
    "recreate": (0, 1, 2),
    "settings": (0, 1, 2),
    "shards": (0, 1, 2),
    "swaps": (3, 4),
    "temporary": (0, 1, 2),
    "torn": (0, 1, 2),
    "transactions": (0, 1, 2),
    "versioned": (0, 1, 2),
    "wrappers": (0, 1, 2),
    "zones": (1, 2, 3),
}


@pytest.mark.parametrize("attack", SEEDS)
def test_an_attack_finds_neither_a_wrong_value_nor_a_stop_that_no_page_names(
    attack: str, request: pytest.FixtureRequest
) -> None:
    at = len(attack)  # so that a new class moves no other one to another server
    for seed in SEEDS[attack]:
        kinds = KINDS if attack != "versioned" else servers_of(attack)
        server: Server = request.getfixturevalue(kinds[(at + seed) % len(kinds)])
        outcome = play(attack, server, seed)
        assert outcome.found == [], str(outcome)


def test_names_in_two_letter_cases_are_one_where_the_server_makes_them_small(
    fresh_server: Callable[..., Server],
) -> None:
    server = fresh_server("mariadb118", "lower_case_table_names=1")
    for seed in range(4):
        outcome = play("cases", server, seed)
        assert outcome.found == [], str(outcome)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["mysql8", "mariadb118"])
def test_a_replica_that_takes_the_place_of_its_server_goes_on(name: str, fresh_server: Callable[..., Server]) -> None:
    server, second = fresh_server(name), fresh_server(name)
    for seed in range(3):
        outcome = play("failovers", server, seed, second=second)
        assert outcome.found == [], str(outcome)


def test_tables_that_hold_rows_before_the_connector_are_copied_whatever_goes_on(
    request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    for seed, kind in enumerate(KINDS):
        outcome = play("copied", request.getfixturevalue(kind), seed, spark=spark)
        assert outcome.found == [], str(outcome)


def test_each_class_is_tried_here() -> None:
    assert {*SEEDS, "cases", "copied", "expressions", "failovers"} == {*CLASSES}


def _literals() -> set[str]:
    """The first words of all reasons that stand at a place where a table is stopped."""
    found: set[str] = set()
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and (getattr(node.func, "id", "") in ("TableStopped", "conflict") or _is_of_a_value(node, path))
                and node.args
            ):
                first = node.args[0]
                if isinstance(first, ast.JoinedStr):
                    first = first.values[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    return found


def _is_of_a_value(node: ast.Call, path: Path) -> bool:
    """Whether a row in the log stops its table there."""
    return getattr(node.func, "id", "") == "ValueUnrepresentable" and "readers" in path.parts


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
    assert {begin for begin in begins if begin.removeprefix("…") not in strings} == set()
