"""A store that is lost is rebuilt from the lake, or imported: its history answers as the lost one did. Spark reads it too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from connectors.cli import app
from connectors.pipeline.opening import make_sinks, open_store
from connectors.tracking.sources import make_tracker
from databases.servers import Server
from historian.errors import HistorianError, PositionAhead, UnknownTable
from historian.history.history import History
from historian.names import TableName
from historian.positions import GtidSet, LogPosition
from historian.store import Store
from replicas.replica import Replica
from sinks.delta.settings import Compaction

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

FIRST = (
    "CREATE DATABASE kept",
    "CREATE TABLE kept.a (id INT PRIMARY KEY, v VARCHAR(9))",
    "CREATE TABLE kept.b (id INT PRIMARY KEY, n INT) SELECT 1 AS id, 2 AS n",
    "INSERT INTO kept.a VALUES (1, 'x')",
)
ELSEWHERE = ("CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.x (i INT)", "ALTER TABLE elsewhere.x ADD j INT")
SECOND = (
    "ALTER TABLE kept.a ADD w INT NOT NULL DEFAULT 7 FIRST",
    "INSERT INTO kept.a VALUES (2, 2, 'y')",
    "ALTER TABLE kept.a DROP v",
    "RENAME TABLE kept.a TO kept.spare, kept.b TO kept.a, kept.spare TO kept.b",
    "INSERT INTO kept.a VALUES (5, 6)",
    "RENAME TABLE elsewhere.x TO kept.x",
    "INSERT INTO kept.x VALUES (1, 2)",
    "DROP TABLE kept.b",
    "CREATE TABLE kept.b (id INT PRIMARY KEY)",
    "TRUNCATE kept.a",
    "INSERT INTO kept.b VALUES (1)",
)
BEHIND = ("CREATE TABLE elsewhere.y (i INT)", "ALTER TABLE elsewhere.y ADD k INT FIRST")
NAMES = tuple(
    TableName(*name.split(".")) for name in ("kept.a", "kept.b", "kept.x", "kept.spare", "elsewhere.x", "elsewhere.y")
)


def _answers(history: History, end: LogPosition) -> Iterator[tuple[tuple[object, ...], object]]:
    """Every question with its answer: each table at each bound of the log, and at each event behind it."""
    executed = end.gtid_set
    assert isinstance(executed, GtidSet)
    ((source, ((_, last),)),) = executed
    for number in range(1, last + 1):
        position = LogPosition(flavor="mysql", gtids=f"{source}:1-{number}", file="", offset=0)
        rows = ((f"{source}:{number + 1}", ordinal) for ordinal in range(5)) if number < last else ()
        events = [(None, None), *rows]
        for name in NAMES:
            for gtid, ordinal in events:
                try:
                    found: object = history.at(name, position, ordinal, gtid)
                except HistorianError as error:
                    found = (type(error), error.found)
                yield (number, name, gtid, ordinal), found


def _lose(replica: Replica) -> None:
    for path in replica.directory.glob("store.db*"):
        path.unlink()


def _store(replica: Replica) -> Store:
    return Store.open(replica.config.history.store)


def _history(replica: Replica) -> History:
    with closing(_store(replica)) as store:
        return store.history()


def _track(replica: Replica) -> None:
    """Makes the next plan and writes nothing. No sink gets those of :data:`ELSEWHERE` and :data:`BEHIND`."""
    with closing(make_tracker(replica.config)) as tracker:
        last = tracker.store.last_plan()
        plan = tracker.plan_after(0 if last is None else last.number)
        assert plan is not None


def test_a_lost_history_comes_back_from_the_lake_and_from_a_file_and_spark_streams_it(
    mysql9: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One lake for all, since each run takes seconds: lost and rebuilt, lost and imported, gone on."""
    replica = Replica(mysql9, tmp_path, ["kept"])
    for statements in (FIRST, ELSEWHERE, SECOND, BEHIND):
        for statement in statements:
            mysql9.sql(statement)
        if statements is SECOND:
            replica.run(spark)
        else:
            _track(replica)
    lost = _history(replica)
    expected = dict(_answers(lost, lost.resolved))
    assert [5, 4, 1] == [len(lost.versions(name)) for name in NAMES[:3]]
    assert CliRunner().invoke(app, ["schemas", str(replica.path), "export", str(tmp_path / "file")]).exit_code == 0
    seen = [_streamed(replica, spark)]

    _lose(replica)
    _check_rebuilt(replica, spark, lost, expected)
    _track(replica)
    assert dict(_answers(_history(replica), lost.resolved)) == expected
    assert _history(replica).entries == lost.entries

    _lose(replica)
    assert CliRunner().invoke(app, ["schemas", str(replica.path), "import", str(tmp_path / "file")]).exit_code == 0
    assert dict(_answers(_history(replica), lost.resolved)) == expected
    plans = _column(replica, spark, "historian_plans", "plan")
    mysql9.sql("INSERT INTO kept.b VALUES (2)")
    mysql9.sql("ALTER TABLE kept.b ADD c INT")
    with monkeypatch.context() as patch:
        # So that a start joins the files of the lake's own tables, whatever they weigh.
        patch.setattr("sinks.delta.lake.state._MANY_FILES", Compaction(files=2, target_bytes=1_000_000))
        patch.setattr("sinks.delta.rewrite.small_files._suffix", lambda files: files)
        replica.run(spark)
    last = _history(replica)
    assert last.entries[:-1] == lost.entries
    assert _column(replica, spark, "historian_plans", "plan") == [*plans, plans[-1] + 1]
    tables = spark.read.format("delta").load(f"{replica.lake}/historian_tables")
    (location,) = tables.where("name = 'kept.b' and dropped = 0").collect()
    assert _column(replica, spark, location.mirror, "id") == [1, 2]
    seen.append(_streamed(replica, spark))

    changes = spark.read.format("delta").load(f"{replica.lake}/historian_schema_changes")
    assert len(changes.inputFiles()) == len(plans)
    assert [number for numbers in seen for number in numbers] == list(range(1, last.last_number + 1))
    assert len(seen[1]) == len(BEHIND) + 1
    assert changes.orderBy("number").collect()[-1].statement == "ALTER TABLE kept.b ADD c INT"


def _check_rebuilt(
    replica: Replica, spark: SparkSession, lost: History, expected: Mapping[tuple[object, ...], object]
) -> None:
    """Only what lies behind the last plan with tables waits to be read again, the creation of the last name too."""
    store, _ = open_store(replica.config, make_sinks(replica.config, spark))
    with closing(store):
        rebuilt = store.history()
    ahead = 0
    for question, found in _answers(rebuilt, lost.resolved):
        if isinstance(found, tuple) and found[0] is PositionAhead:
            ahead += 1
        elif question[1] == NAMES[-1]:
            assert found == (UnknownTable, None), question
        else:
            assert found == expected[question], question
    assert lost.entries[: -len(BEHIND)] == rebuilt.entries
    assert 0 < ahead < len(expected) / 4


def _column(replica: Replica, spark: SparkSession, directory: str, name: str) -> list[int]:
    rows = spark.read.format("delta").load(f"{replica.lake}/{directory}").collect()
    return sorted(row[name] for row in rows)


def _streamed(replica: Replica, spark: SparkSession) -> list[int]:
    """Numbers of the schema changes that came since the last look, as docs/reference/history-format.md reads them."""
    came: list[int] = []
    changes = (
        spark.readStream.format("delta")
        .option("skipChangeCommits", "true")
        .load(f"{replica.lake}/historian_schema_changes")
    )
    query = (
        changes.writeStream.foreachBatch(lambda rows, _: came.extend(row.number for row in rows.collect()))
        .option("checkpointLocation", str(replica.directory / "changes"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sorted(came)
