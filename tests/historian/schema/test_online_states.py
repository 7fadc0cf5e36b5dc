"""Servers at two states of a column at once: every sequence of statements, on every path, against what may go wrong."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from historian.schema.online_states import (
    ADD_OPTIONAL,
    ADD_REQUIRED,
    DROP_OPTIONAL,
    DROP_REQUIRED,
    RULES,
    OnlineState,
    neighbours,
)

PATHS = [ADD_OPTIONAL, ADD_REQUIRED, DROP_OPTIONAL, DROP_REQUIRED]
REQUIRED = [ADD_REQUIRED, DROP_REQUIRED]
ABSENT, DELETE_ONLY, WRITE_ONLY, WRITE_REORG, PUBLIC = OnlineState

Row = tuple[bool, bool]  # whether the row is there, and whether the column's value is


def after(row: Row, statement: str, state: OnlineState) -> Row | None:
    """None where the statement cannot be: an insert of a row that is there, another of one that is not."""
    there, stored = row
    if there == (statement == "insert"):
        return None
    return statement != "delete", RULES[state].stored_after(statement, stored=stored)


def reachable(rows: set[Row], states: tuple[OnlineState, ...]) -> set[Row]:
    """All that any sequence of statements by servers at those states makes of one row."""
    found, waiting = set(rows), list(rows)
    while waiting:
        row = waiting.pop()
        for statement, state in product(("insert", "update", "delete"), states):
            new = after(row, statement, state)
            if new is not None and new not in found:
                found.add(new)
                waiting.append(new)
    return found


def along(path: tuple[OnlineState, ...], *, required: bool) -> list[tuple[tuple[OnlineState, ...], set[Row]]]:
    """The rows that there can be while servers stand at each pair of a path, one pair after the other."""
    begin: set[Row] = {(False, False), (True, False)} if path[0] is ABSENT else {(False, False), (True, True)}
    seen = []
    for pair in neighbours(path):
        if required and pair == (WRITE_REORG, PUBLIC):
            # Older rows were filled while all servers stood at WRITE_REORG.
            begin = {(there, stored or there) for there, stored in reachable(begin, (WRITE_REORG,))}
        if pair == (DELETE_ONLY, ABSENT):
            # Values that are left were taken away while all servers stood at DELETE_ONLY.
            begin = {(there, False) for there, _ in reachable(begin, (DELETE_ONLY,))}
        begin = reachable(begin, pair)
        seen.append((pair, begin))
    return seen


@pytest.mark.parametrize("path", PATHS)
def test_no_value_is_left_without_its_row(path: tuple[OnlineState, ...]) -> None:
    assert [] == [pair for pair, rows in along(path, required=path in REQUIRED) if (False, True) in rows]


@pytest.mark.parametrize("path", REQUIRED)
def test_no_row_that_a_reader_sees_lacks_a_required_value(path: tuple[OnlineState, ...]) -> None:
    seen = along(path, required=True)

    assert [] == [pair for pair, rows in seen if PUBLIC in pair and (True, False) in rows]


@pytest.mark.parametrize(
    "states,wrong",
    [
        ((ABSENT, WRITE_ONLY), (False, True)),
        ((ABSENT, PUBLIC), (False, True)),
        ((DELETE_ONLY, PUBLIC), (True, False)),
    ],
)
def test_states_further_apart_would_go_wrong(states: tuple[OnlineState, ...], wrong: Row) -> None:
    assert wrong in reachable({(False, False), (True, True)}, states)


def test_without_filling_older_rows_a_required_value_would_lack() -> None:
    assert (True, False) in reachable({(True, False)}, (WRITE_REORG, PUBLIC))


def test_without_taking_values_away_a_dropped_one_would_be_left() -> None:
    assert (False, True) in reachable({(True, True)}, (DELETE_ONLY, ABSENT))


def test_paths_go_from_one_end_to_the_other_by_neighbours_that_differ_in_one_rule() -> None:
    for path in PATHS:
        assert {ABSENT, PUBLIC} == {path[0], path[-1]}
        for one, other in neighbours(path):
            a, b = RULES[one], RULES[other]
            differ = [n for n in ("deletes", "writes", "reads") if getattr(a, n) != getattr(b, n)]
            assert len(differ) <= (2 if path in (ADD_OPTIONAL, DROP_OPTIONAL) else 1), (one, other)


def test_each_state_allows_what_the_one_before_it_does_and_more() -> None:
    order = [RULES[state] for state in OnlineState]

    for less, more in combinations(order, 2):
        assert (less.deletes, less.writes, less.reads) <= (more.deletes, more.writes, more.reads)


@pytest.mark.parametrize(
    "statement,state,stored,expected",
    [
        ("insert", ABSENT, False, False),
        ("update", ABSENT, True, True),
        ("delete", ABSENT, True, True),
        ("insert", DELETE_ONLY, False, False),
        ("update", DELETE_ONLY, True, False),
        ("delete", DELETE_ONLY, True, False),
        ("insert", WRITE_ONLY, False, True),
        ("update", WRITE_REORG, False, True),
        ("delete", PUBLIC, True, False),
    ],
)
def test_what_is_stored_after_a_statement(statement: str, state: OnlineState, stored: bool, expected: Any) -> None:
    assert expected == RULES[state].stored_after(statement, stored=stored)
