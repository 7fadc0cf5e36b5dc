"""Each kind of statement on a table that is copied in part, at each moment of a plan: in its log, before its SELECTs, and behind them.

The server is the oracle: nobody else writes, so at the end of a plan it holds what the plan is to tell.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.backfill import copying, selecting, selection
from connectors.backfill.splits import next_pieces
from connectors.config import CopyLimits
from databases.online_tools import gh_ost, pt_osc
from databases.servers import Server
from historian.errors import SinkError
from historian.names import TableName
from historian.store import Store
from models.source_oracle import comparable
from replicas.first_copies import ends_behind
from replicas.plan_ends import assert_lake_is_what_a_server_holds
from replicas.repairing_oracle import RepairingOracle
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 90
_CHUNK = 20
_STATEMENTS = {
    "added": ["ALTER TABLE c.added ADD COLUMN x INT DEFAULT 7 FIRST"],
    "dropped_column": ["ALTER TABLE c.dropped_column DROP COLUMN n"],
    "renamed_column": ["ALTER TABLE c.renamed_column CHANGE n m INT"],
    "widened": ["ALTER TABLE c.widened MODIFY n BIGINT"],
    "truncated": ["TRUNCATE TABLE c.truncated"],
    "dropped": ["DROP TABLE c.dropped"],
    "renamed": ["RENAME TABLE c.renamed TO c.renamed_now"],
    "swapped": ["RENAME TABLE c.swapped TO c.swapped_old, c.swapped_new TO c.swapped"],
    "words": ["ALTER TABLE c.words MODIFY id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"],
    "keyed_anew": ["ALTER TABLE c.keyed_anew DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)"],
}
_TABLES = [*_STATEMENTS, "swapped_new"]
_KEY_CHANGES = {"words", "keyed_anew"}
"""A frontier means nothing behind these: the table stops, and is copied anew."""

_REWRITES: Mapping[str, Callable[[Server, str], None]] = {
    "rounded": lambda server, table: server.sql(f"ALTER TABLE c.{table} MODIFY n DECIMAL(10,0) NOT NULL"),
    "ghosted": lambda server, table: gh_ost(
        server, "c", table, "ADD COLUMN x INT DEFAULT 7", writes=lambda: _change(server, [table], 10)
    ),
    "ghost_rounded": lambda server, table: gh_ost(
        server, "c", table, "MODIFY n DECIMAL(10,0) NOT NULL", writes=lambda: _change(server, [table], 10)
    ),
    "triggered": lambda server, table: pt_osc(
        server, "c", table, "ADD COLUMN x INT DEFAULT 7", writes=lambda: _change(server, [table], 10)
    ),
}
"""Behind them a value is another one that no row event told, or the table is another one, with the name of that before."""


@dataclass
class _Seen:
    """What stood at the source when the statements came, up to the frontiers that there were."""

    frontiers: Mapping[int, Any]
    rows: dict[str, Counter[Any]]
    happened: int = 0


@pytest.fixture(
    params=[
        "mysql8",
        "mariadb118",
        *(pytest.param(n, marks=pytest.mark.soak) for n in ("mysql57", "mysql9", "mariadb105", "mariadb1011")),
    ]
)
def source(request: pytest.FixtureRequest) -> Server:
    server: Server = request.getfixturevalue(request.param)
    server.clear()
    server.sql("CREATE DATABASE c")
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for name in _TABLES:
            kind = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" if name == "words" else "INT"
            cursor.execute(f"CREATE TABLE c.{name} (id {kind} PRIMARY KEY, n INT NOT NULL, v VARCHAR(20))")
            rows = [(f"{'kK'[i % 2]}{i:03}" if name == "words" else i, i, f"v{i}") for i in range(_ROWS)]
            cursor.executemany(f"INSERT INTO c.{name} VALUES (%s, %s, %s)", rows)
    return server


@pytest.fixture(autouse=True)
def _all_tables_in_each_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece of each table, so that all are copied in part at once."""

    def pieces(address: Any, flavor: str, tables: Any, limits: CopyLimits, chunk_rows: Any) -> list[Any]:
        one = replace(limits, connections=1)
        return [p for i, t in tables.items() for p in next_pieces(address, flavor, {i: t}, one, chunk_rows)]

    monkeypatch.setattr(copying, "next_pieces", pieces)


@pytest.mark.parametrize("moment", ["in the log", "before the rows are read", "before the log behind them is read"])
def test_a_statement_on_a_table_that_is_copied_in_part(
    source: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    oracle = RepairingOracle(source, tmp_path, CopyLimits(chunk_rows=_CHUNK, connections=1), "c")
    oracle.run(plans=1)
    _change(source, _TABLES, 1)
    names = {name.table: snapshot.table_id for name, snapshot in oracle.mirror.snapshots().items()}
    frontiers = oracle.frontiers()
    assert all(frontiers[names[name]] not in (None, "all") for name in _TABLES), frontiers

    if moment == "in the log":
        version = _version(oracle)
        _run_statements(source)
        _change(source, [name for name in _TABLES if name not in ("dropped", "renamed", "swapped_new")], 2)
        oracle.run(plans=1)
        assert version < _version(oracle)
        assert set(oracle.stopped) <= {TableName("c", name) for name in _KEY_CHANGES}
        now = oracle.frontiers()
        for name, snapshot in oracle.mirror.snapshots().items():
            if name not in oracle.stopped:
                held = _held(source, name.table, now[snapshot.table_id])
                assert held == oracle.rows_of(name), f"{name} at {oracle.end}"
    else:
        seen = _Seen(frontiers=frontiers, rows={})

        def come() -> None:
            seen.rows = {name: _held(source, name, frontiers[names[name]]) for name in _TABLES}
            _run_statements(source)
            seen.happened += 1

        if moment == "before the rows are read":
            _before(monkeypatch, selecting, "snapshot_behind", come)
        else:
            _before(monkeypatch, selection, "changes_behind", come)
        version = _version(oracle)
        oracle.run(plans=1)
        assert 1 == seen.happened
        assert version == _version(oracle), "the statements are behind the plan"
        assert frontiers == oracle.frontiers(), "nothing of these tables is copied with the plan"
        for name in _TABLES:
            assert seen.rows[name] == oracle.rows_of(TableName("c", name)), f"{name} at {oracle.end}"
        monkeypatch.undo()
    for turn in itertools.count(3):
        oracle.run()
        if oracle.is_done() and not oracle.stopped:
            break
        assert turn < 8, oracle.stopped
        oracle.repair()
        _change(source, ["added", "widened", "words", "keyed_anew"], turn)
    assert {} == oracle.differences("c")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(each, marks=pytest.mark.soak)
        for each in ("mysql57", "mysql8", "mysql9", "mariadb105", "mariadb1011", "mariadb118")
    ],
)
def test_values_that_statements_rewrite_and_swaps_by_tools_amid_a_copy_end_as_the_source(
    name: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each moment of a plan, on tables of its own."""
    server: Server = request.getfixturevalue(name)
    server.clear()
    server.sql("CREATE DATABASE c")
    tables = {moment: [f"{kind}_{moment}" for kind in _REWRITES] for moment in ("log", "select", "behind")}
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        for table in itertools.chain.from_iterable(tables.values()):
            cursor.execute(
                f"CREATE TABLE c.{table} (id INT PRIMARY KEY, n DECIMAL(10,2) NOT NULL DEFAULT 0.25, v VARCHAR(20))"
            )
            rows = [(i, i / 4, f"v{i}") for i in range(_ROWS)]
            cursor.executemany(f"INSERT INTO c.{table} VALUES (%s, %s, %s)", rows)
    lake = Replica(server, tmp_path / "lake", ["c"], start="initial", backfill=f"{{chunk_rows: {_CHUNK}}}")
    happened: list[str] = []

    def rewrite(moment: str) -> None:
        for table, change in zip(tables[moment], _REWRITES.values(), strict=True):
            change(server, table)
        happened.append(moment)

    def run_once() -> None:
        """A run that ends behind its first plan."""
        with pytest.raises(SinkError, match="the run ends here"):
            lake.run(spark, report=ends_behind(1))
        assert _open_tables(lake) >= {table for moment in tables if moment not in happened for table in tables[moment]}

    run_once()
    _change(server, tables["log"], 1)
    rewrite("log")
    _change(server, [*tables["log"], *tables["select"]], 2)
    for moment, owner, step in (("select", selecting, "snapshot_behind"), ("behind", selection, "changes_behind")):
        with monkeypatch.context() as patch:
            _before(patch, owner, step, lambda moment=moment: rewrite(moment))
            run_once()
        _change(server, tables[moment], len(happened))
    assert list(tables) == happened
    lake.run(spark)
    _change(server, list(itertools.chain.from_iterable(tables.values())), 5)
    assert {} == lake.run(spark)
    assert assert_lake_is_what_a_server_holds(server, lake.reading(spark), "^c$")


def _open_tables(lake: Replica) -> set[str]:
    """Tables that are not copied whole."""
    with closing(Store.open(lake.config.history.store)) as store:
        is_open = {i for i, progress in store.copies().items() if not progress.is_done}
        return {name.table for name, snapshot in store.history().catalog.tables.items() if snapshot.table_id in is_open}


def _run_statements(server: Server) -> None:
    for statement in itertools.chain.from_iterable(_STATEMENTS.values()):
        server.sql(statement)


def _before(patch: pytest.MonkeyPatch, owner: Any, step: str, come: Callable[[], None]) -> None:
    """Has it come before that step is taken for the first time."""
    real, taken = getattr(owner, step), itertools.count()

    def later(*arguments: Any, **named: Any) -> Any:
        if next(taken) == 0:
            come()
        return real(*arguments, **named)

    patch.setattr(owner, step, later)


def _change(server: Server, names: list[str], turn: int) -> None:
    """Rows on both sides of a frontier come, change, move and go."""
    for name in names:
        key = (lambda i: f"'k{i:03}'") if name == "words" else str
        low, high = 2 * turn, _ROWS - 2 * turn
        for statement in (
            f"UPDATE c.{name} SET v = 'turn {turn}' WHERE id IN ({key(low)}, {key(high)})",
            f"DELETE FROM c.{name} WHERE id IN ({key(low + 1)}, {key(high + 1)})",
            f"UPDATE c.{name} SET id = {key(low + 1)} WHERE id = {key(high - 1)}",
            f"UPDATE c.{name} SET id = {key(200 + turn)} WHERE id = {key(low)}",
        ):
            server.sql(statement)


def _held(server: Server, table: str, frontier: Any) -> Counter[Any]:
    """The rows of a table up to that key, as the server orders keys."""
    where = "TRUE"
    if frontier is None:
        where = "FALSE"
    elif frontier != "all":
        values = ", ".join(f"_utf8mb4 x'{value}'" if isinstance(value, str) else str(value) for value in frontier)
        where = f"id <= {values}"
    rows = server.sql(f"SELECT * FROM c.{table} WHERE {where}")
    return Counter(tuple(map(comparable, row)) for row in rows)


def _version(oracle: RepairingOracle) -> int:
    with oracle._tracker() as tracker:
        return tracker.history.last_number
