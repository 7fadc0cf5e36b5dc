"""``historian plan`` foresees what ``historian run`` does with a changed configuration: each kind of change, then the run."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.opening import make_sinks
from connectors.pipeline.run import run
from connectors.reconfiguration.effects import Effects
from connectors.reconfiguration.foresight import foresee
from databases.servers import Server
from historian.errors import HistorianError
from historian.store import Store
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Connector(NamedTuple):
    """A connector that has begun with ``c.t`` and ``c.u``; ``stage.a`` is not captured."""

    server: Server
    spark: SparkSession
    path: Path

    @property
    def lake(self) -> Path:
        return self.path.parent / "lake"

    def foresee(self) -> Effects:
        return foresee(load_config(self.path), self.spark)

    def run(self) -> set[str]:
        """Tables that are stopped behind a run that has rows of each table."""
        self.write()
        return set(run(load_config(self.path), once=True, spark=self.spark)) | self.stopped()

    def write(self) -> None:
        for table in ("c.t", "c.u", "stage.a"):
            self.server.sql(f"INSERT INTO {table} (v) VALUES (1)")

    def stopped(self) -> set[str]:
        with closing(Store.open(load_config(self.path).history.store)) as store:
            return {str(name) for _, name, _ in store.stopped()}

    def holds(self, directory: str, table: str) -> bool:
        """Whether a mirror has the rows of the table *table* in the source."""
        rows = self.spark.read.format("delta").load(str(directory)).select("id", "v").collect()
        return sorted(map(tuple, rows)) == sorted(self.server.sql(f"SELECT id, v FROM {table}"))

    def change(self, old: str, new: str) -> None:
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    def files(self) -> dict[str, int]:
        return {str(file): file.stat().st_mtime_ns for file in sorted(self.lake.rglob("*")) if file.is_file()}


def _actions(effects: Effects) -> dict[str, str]:
    return {table.table: table.action for table in effects.tables}


@pytest.fixture(scope="module")
def connector(mysql9: Server, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> _Connector:
    mysql9.clear()
    for database in ("c", "stage"):
        mysql9.sql(f"CREATE DATABASE {database}")
    for table in ("c.t", "c.u", "stage.a"):
        mysql9.sql(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v INT, w TIME)")
        mysql9.sql(f"INSERT INTO {table} (v) VALUES (10), (20)")
    path = copying_config(mysql9, tmp_path_factory.mktemp("connector"))
    found = _Connector(mysql9, spark, path)
    first = found.foresee()
    assert ({"c.t": "copied", "c.u": "copied"}, "") == (_actions(first), first.behind)
    assert not found.lake.exists()
    assert set() == found.run()
    mysql9.sql("ANALYZE TABLE stage.a")
    return found


_LAKE = 'lake"}'


@pytest.mark.parametrize(
    "old, new",
    [
        # The first: what others refuse when it is written has its plan by then, which is written before the next one is made.
        pytest.param("\nhistory:", "\ntypes: {time: text}\nhistory:", id="type of a value"),
        pytest.param(_LAKE, 'lake", mirror: null}', id="no mirrors"),
        pytest.param(_LAKE, 'lake", history: "{table}_history"}', id="histories"),
        pytest.param(_LAKE, 'lake", tables: {c.t: {where: "v > 5"}}}', id="where"),
        pytest.param(_LAKE, 'lake", tables: {c.t: {mask: {v: 0}}}}', id="mask"),
        pytest.param(_LAKE, 'lake", tables: {c.t: {columns: {exclude: [v]}}}}', id="columns"),
        pytest.param(_LAKE, 'lake", tables: {c.t: {key: [v]}}}', id="key"),
        pytest.param(_LAKE, 'lake", tables: {c.t: {mirror_deletes: soft}}}', id="deletes"),
        pytest.param("name: c\n", "name: other\n", id="name"),
    ],
)
def test_what_is_refused_is_refused_by_the_run_which_changes_nothing(connector: _Connector, old: str, new: str) -> None:
    before = connector.path.read_text()
    connector.change(old, new)
    try:
        effects = connector.foresee()
        held = connector.files()
        with pytest.raises(HistorianError) as refused:
            connector.run()
    finally:
        connector.path.write_text(before)
    assert str(refused.value) in effects.refused
    assert held == connector.files()
    assert {"nothing"} >= set(_actions(connector.foresee()).values())


def test_what_is_refused_is_not_applied(connector: _Connector) -> None:
    before, held = connector.path.read_text(), connector.files()
    connector.change(_LAKE, 'lake", mirror: null}')
    applied = CliRunner().invoke(app, ["apply", str(connector.path)])
    connector.path.write_text(before)

    assert (1, held) == (applied.exit_code, connector.files())
    assert "refused: the lake was made by another connector, or for other kinds of tables" in applied.output
    assert "nothing was changed; correct the configuration" in applied.output


def test_another_server_is_refused(connector: _Connector, mysql8: Server) -> None:
    before = connector.path.read_text()
    connector.change(f"port: {connector.server.port}", f"port: {mysql8.port}")
    try:
        effects = connector.foresee()
        with pytest.raises(HistorianError) as refused:
            connector.run()
    finally:
        connector.path.write_text(before)
    assert (str(refused.value),) == effects.refused


@pytest.mark.parametrize(
    "keys, action, why",
    [
        pytest.param(
            'mirror: "{table}_new"', "nothing", "its targets keep their names: mirror c_t", id="mirror renamed"
        ),
        pytest.param("evolution: {drop_column: keep}", "changed", "evolution: ", id="evolution"),
        pytest.param("cluster: true", "changed", "cluster: True, was False, for targets that are made", id="clustered"),
    ],
)
def test_what_changes_nothing_that_is_there_goes_on(connector: _Connector, keys: str, action: str, why: str) -> None:
    before = connector.path.read_text()
    connector.change(_LAKE, f'lake", {keys}}}')
    effects = connector.foresee()
    stopped = connector.run()
    connector.path.write_text(before)

    assert ({"c.t": action, "c.u": action}, ()) == (_actions(effects), effects.refused)
    assert effects.tables[0].why.startswith(why)
    assert set() == stopped
    assert connector.holds(connector.lake / "c_t", "c.t")


def test_a_new_lake_gets_all_tables(connector: _Connector) -> None:
    before = connector.path.read_text()
    connector.change(_LAKE, 'lake2"}')
    effects = connector.foresee()
    stopped = connector.run()
    held = [connector.holds(connector.path.parent / "lake2" / name.replace(".", "_"), name) for name in ("c.t", "c.u")]
    connector.path.write_text(before)
    connector.run()

    assert ({"c.t": "anew", "c.u": "anew"}, ()) == (_actions(effects), effects.refused)
    assert (set(), [True, True]) == (stopped, held)
    assert [f"delta {connector.lake} is written no more, and stands as it is"] == list(effects.notes)


def test_tables_that_are_added_are_copied_and_left_out_stop_until_they_are_taken_in_again(
    connector: _Connector,
) -> None:
    connector.change('["c.*"]', '["c.t", "stage.*"]')
    effects = connector.foresee()
    shown = CliRunner().invoke(app, ["plan", str(connector.path), "--json"])
    connector.write()
    applied = CliRunner().invoke(app, ["apply", str(connector.path)])

    assert (0, True) == (applied.exit_code, "about 3 rows to read" in applied.output), applied.output
    assert {"c.t": "nothing", "c.u": "stopped", "stage.a": "copied"} == _actions(effects)
    added = next(table for table in effects.tables if table.table == "stage.a")
    assert added.rows is not None
    assert added.rows > 0
    assert (0, [each.action for each in effects.tables]) == (
        shown.exit_code,
        [each["action"] for each in json.loads(shown.stdout)["tables"]],
    )
    assert {"c.u"} == connector.stopped()
    assert connector.holds(connector.lake / "stage_a", "stage.a")

    connector.change('["c.t", "stage.*"]', '["c.*", "stage.*"]')
    effects = connector.foresee()
    assert {"c.t": "nothing", "c.u": "repaired", "stage.a": "nothing"} == _actions(effects)
    assert set() == connector.run()
    assert connector.holds(connector.lake / "c_u", "c.u")


def test_a_table_that_an_expression_does_not_fit_stops(connector: _Connector) -> None:
    connector.server.sql("CREATE DATABASE IF NOT EXISTS other")
    connector.server.sql("CREATE TABLE other.b (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
    stopped = connector.run()
    before = connector.path.read_text()
    connector.change(_LAKE, 'lake3", tables: {c.t: {where: "nosuch > 5"}}}')
    effects = connector.foresee()
    assert ["nosuch" in why for why in effects.refused] == [True]

    connector.path.write_text(before)
    connector.change('["c.*"', '["c.*", "other.*"')
    connector.change(_LAKE, 'lake", tables: {other.b: {where: "nosuch > 5"}}}')
    effects = connector.foresee()
    assert ("stopped", ()) == (_actions(effects)["other.b"], effects.refused)
    assert stopped | {"other.b"} == connector.run()


def test_a_lost_store_is_told(connector: _Connector) -> None:
    config = load_config(connector.path)
    lost = replace(config, history=replace(config.history, store=f"sqlite:///{connector.path.parent}/other.db"))

    effects = foresee(lost, connector.spark)

    assert (("the history store has no plan: it is made again from the lake, and the run goes on from there",), ()) == (
        effects.notes,
        effects.refused,
    )
    assert [] == [sink for sink in make_sinks(lost, connector.spark) if sink.held() is None]
