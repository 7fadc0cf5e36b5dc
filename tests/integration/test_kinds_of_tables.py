"""One name, two tables of different kinds one after the other: each target is what its table is, or says why it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from adversary.held import server_rows
from adversary.lakes import FileLake, Known
from adversary.oracle import findings
from adversary.script import FOLLOW, Script
from adversary.stops import stop_of
from databases.servers import Server
from historian.names import TableName

KINDS = {
    "keyed": "(id INT PRIMARY KEY, v INT)",
    "unique": "(id INT NOT NULL UNIQUE, v INT)",
    "keyless": "(x INT NOT NULL, w INT)",
}
REPLACED = "create or replace"
WAYS = {
    "drop and create": "DROP TABLE {c}.t; CREATE TABLE {c}.t {new}",
    REPLACED: "CREATE OR REPLACE TABLE {c}.t {new}",
    "drop of the database": "DROP DATABASE {c}; CREATE DATABASE {c}; CREATE TABLE {c}.t {new}",
    "rename away": "RENAME TABLE {c}.t TO {c}.old; CREATE TABLE {c}.t {new}",
    "rename out": "RENAME TABLE {c}.t TO {x}.old; CREATE TABLE {c}.t {new}",
    "rename of another": "CREATE TABLE {c}.u {new}; INSERT INTO {c}.u VALUES (5, 5); DROP TABLE {c}.t; RENAME TABLE {c}.u TO {c}.t",
    "rename in": "CREATE TABLE {x}.u {new}; INSERT INTO {x}.u VALUES (5, 5); DROP TABLE {c}.t; RENAME TABLE {x}.u TO {c}.t",
    "rename in of an empty one": "CREATE TABLE {x}.u {new}; DROP TABLE {c}.t; RENAME TABLE {x}.u TO {c}.t",
    "swap": (
        "CREATE TABLE {c}.u {new}; INSERT INTO {c}.u VALUES (5, 5);"
        "RENAME TABLE {c}.t TO {c}.w, {c}.u TO {c}.t, {c}.w TO {c}.u"
    ),
    "swap with one outside": (
        "CREATE TABLE {x}.u {new}; INSERT INTO {x}.u VALUES (5, 5); RENAME TABLE {c}.t TO {x}.w, {x}.u TO {c}.t"
    ),
    "swap under a tool's names": (
        "CREATE TABLE {c}._t_new {new}; INSERT INTO {c}._t_new VALUES (5, 5);"
        "RENAME TABLE {c}.t TO {c}._t_old, {c}._t_new TO {c}.t"
    ),
    "swap under a tool's names in two steps": (
        "CREATE TABLE {c}._t_gho {new}; INSERT INTO {c}._t_gho VALUES (5, 5);"
        "RENAME TABLE {c}.t TO {c}._t_del; RENAME TABLE {c}._t_gho TO {c}.t"
    ),
    "set aside, and another one": "RENAME TABLE {c}.t TO {c}._t_old; CREATE TABLE {c}.t {new}; DROP TABLE {c}._t_old",
    "and back": (
        "DROP TABLE {c}.t; CREATE TABLE {c}.t {new}; INSERT INTO {c}.t VALUES (5, 5);"
        "DROP TABLE {c}.t; CREATE TABLE {c}.t {old}"
    ),
    "alter": "ALTER TABLE {c}.t {alter}",
}
STOPS = {
    "rename out": {"left"},
    "rename in": {"moved_in"},
    "swap with one outside": {"left", "moved_in"},
    "swap under a tool's names": {"left", "moved_in"},
    "swap under a tool's names in two steps": {"left", "moved_in"},
    "set aside, and another one": {"left"},
}
ALTERS = {
    ("keyed", "unique"): "DROP PRIMARY KEY, ADD UNIQUE (id)",
    ("keyed", "keyless"): "DROP PRIMARY KEY",
    ("unique", "keyed"): "ADD PRIMARY KEY (id)",
    ("keyless", "keyed"): "ADD PRIMARY KEY (x)",
}


class Case(NamedTuple):
    """Table t of *old* kind, with rows, and what makes it one of *new* kind, in one plan or over two."""

    way: str
    old: str
    new: str
    two_plans: bool

    @property
    def last(self) -> str:
        """The kind that it has in the end; that of its columns for ``alter``."""
        return self.old if self.way == "and back" else self.new

    @property
    def stops(self) -> set[str]:
        if self.way != "alter":
            return STOPS.get(self.way, set())
        return {"key_changed"} if self.old == "keyed" else {"no_key"}

    @property
    def ends(self) -> bool:
        """Whether there was a mirror under the name, and the table that has it in the end came without a key."""
        leaves = {"rename away", "swap", "alter", *STOPS}
        held = "keyed" in ((self.old, self.new) if self.way == "and back" else (self.old,))
        return self.way not in leaves and held and self.last != "keyed"


ALL = [
    Case(*each)
    for each in product(WAYS, KINDS, KINDS, (False, True))
    if each[0] != "alter" or (each[1], each[2]) in ALTERS
]
SAMPLE = [
    case
    for at, case in enumerate(ALL)
    if (case.old, case.new) in (("keyed", "keyless"), ("keyless", "keyed")) and case.two_plans == bool(at // 2 % 2)
]


@pytest.mark.parametrize("kind", ["mysql8", "mariadb118"])
def test_a_table_of_another_kind_under_a_name_has_its_targets_or_they_say_why_not(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    _try(request.getfixturevalue(kind), tmp_path, SAMPLE)


@pytest.mark.soak
def test_each_kind_of_table_after_each_other_one(server: Server, tmp_path: Path) -> None:
    _try(server, tmp_path, ALL)


def _try(server: Server, directory: Path, cases: Sequence[Case]) -> None:
    """All cases in one log, each in databases of its own, those over two plans with a run between."""
    server.clear()
    cases = [case for case in cases if case.way != REPLACED or server.flavor == "mariadb"]
    lake = FileLake(server, directory, Script(steps=()))
    early = [at for at, case in enumerate(cases) if case.two_plans]
    _run(server, (text for at in early for text in _before(at, cases[at])))
    lake.follow(FOLLOW)
    late = [at for at in range(len(cases)) if at not in early]
    _run(server, (text for at in late for text in _before(at, cases[at])))
    _run(server, (text for at, case in enumerate(cases) for text in _after(at, case)))
    lake.follow(FOLLOW)

    known = lake.known()
    allowed = frozenset({"left", "moved_in", "key_changed", "no_key"})
    held = server_rows(server, lake.config.source.tables)
    assert findings(known, held, Script(steps=(), stops=allowed)) == []
    expected = {case: (case.stops, case.ends) for case in cases}
    assert {case: _found(known, at) for at, case in enumerate(cases)} == expected


def _before(at: int, case: Case) -> Sequence[str]:
    c, x = f"c_{at}", f"x_{at}"
    return (
        f"CREATE DATABASE {c}",
        f"CREATE DATABASE {x}",
        f"CREATE TABLE {c}.t {KINDS[case.old]}",
        f"INSERT INTO {c}.t VALUES (1, 1), (2, 2), (3, 3)",
    )


def _after(at: int, case: Case) -> Sequence[str]:
    alter = ALTERS.get((case.old, case.new), "")
    said = WAYS[case.way].format(c=f"c_{at}", x=f"x_{at}", old=KINDS[case.old], new=KINDS[case.new], alter=alter)
    columns = case.old if case.way == "alter" else case.last
    first = "x" if columns == "keyless" else "id"
    rows = (f"INSERT INTO c_{at}.t VALUES (7, 70), (8, 80), (9, 90)", f"DELETE FROM c_{at}.t WHERE {first} = 8")
    return (*said.split(";"), *rows)


def _run(server: Server, statements: Iterator[str]) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _found(known: Known, at: int) -> tuple[set[str], bool]:
    """Names of the stops of table t, and whether it is said of a mirror of the name that its table has none now."""
    stops = {stop_of(why) or why for _, name, why in known.stopped if name == f"c_{at}.t"}
    ended = known.ended.get(f"c_{at}_t", "")
    return stops, "as it came without a primary key" in ended


def test_rows_are_those_of_the_table_that_takes_the_name_of_a_stopped_one(mysql8: Server, tmp_path: Path) -> None:
    """The stopped one's DROP is not planned, since nothing is read of it behind its stop."""
    mysql8.clear()
    lake = FileLake(mysql8, tmp_path, Script(steps=()))
    statements = (
        "CREATE DATABASE c_s",
        "CREATE TABLE c_s.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO c_s.t VALUES (1, 1)",
        "SET SESSION binlog_format = 'STATEMENT'",
        "INSERT INTO c_s.t VALUES (2, 2)",
        "SET SESSION binlog_format = 'ROW'",
        "DROP TABLE c_s.t",
        "CREATE TABLE c_s.t (v INT, id INT PRIMARY KEY)",
        "INSERT INTO c_s.t VALUES (5, 6)",
    )
    _run(mysql8, iter(statements))
    lake.follow(FOLLOW)
    known = lake.known()

    assert {stop_of(why) for _, _, why in known.stopped} == {"statement_rows"}
    present = known.catalog.tables[TableName("c_s", "t")].table_id
    assert known.mirrors[present].rows.to_pylist() == [{"v": 5, "id": 6}]
