"""A table that is read again: what its targets hold then, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import sinks
from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode
from connectors.pipeline.lakes import consistent
from databases.servers import Server
from historian.errors import HistorianError
from replicas.replica import Replica
from sinks.delta import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")


@pytest.fixture
def replica(mysql9: Server, tmp_path: Path) -> Replica:
    mysql9.sql("DROP DATABASE IF EXISTS again")
    file, offset = mysql9.sql("SHOW BINARY LOG STATUS")[0][:2]
    mysql9.sql("CREATE DATABASE again")
    mysql9.sql("CREATE TABLE again.t (id INT PRIMARY KEY, a INT, d DATE)")
    mysql9.sql("CREATE TABLE again.u (id INT PRIMARY KEY)")
    mysql9.sql("INSERT INTO again.t VALUES (1, 1, NULL), (2, 2, '2024-02-02'), (3, 3, NULL)")
    mysql9.sql("INSERT INTO again.u VALUES (1)")
    replica = Replica(mysql9, tmp_path, ["again"], history="{database}_{table}_history")
    replica.path.write_text(replica.path.read_text().replace("start: earliest", f"start: '{file}:{offset}'"))
    return replica


def _historian(replica: Replica, *arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, [arguments[0], str(replica.path), *arguments[1:]])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def _lake(spark: SparkSession, replica: Replica, directory: str) -> DataFrame:
    return spark.read.format("delta").load(str(replica.lake / directory))


def _source(server: Server, table: str = "again.t") -> list[tuple[Any, ...]]:
    return sorted(server.sql(f"SELECT * FROM {table}"))


def _change(server: Server, turn: int) -> None:
    server.sql(f"ALTER TABLE again.t ADD c{turn} INT NOT NULL DEFAULT {turn} FIRST")
    server.sql(f"INSERT INTO again.t (id, a) VALUES ({10 * turn}, {turn})")
    server.sql("UPDATE again.t SET a = a + 1 WHERE id < 3")
    server.sql(f"INSERT INTO again.u VALUES ({10 * turn})")


def test_a_stopped_table_is_built_anew_behind_what_it_held_or_from_where_it_began(
    mysql9: Server, replica: Replica, spark: SparkSession
) -> None:
    assert replica.run(spark) == {}
    first = consistent(spark, replica.path).position
    spark.sql(f"DELETE FROM delta.`{replica.lake}/again_t` WHERE id = 3")
    _change(mysql9, 1)
    assert list(replica.run(spark)) == ["again.t"]
    mysql9.sql("TRUNCATE again.t")  # the plan that reads it again has two parts
    mysql9.sql("INSERT INTO again.t (id, a) VALUES (1, 5), (2, 6)")
    assert list(replica.run(spark)) == ["again.t"]
    old = _lake(spark, replica, "again_t").collect()

    code, said = _historian(replica, "replay", "--table", "again.t")
    assert (code, "do not stand where they can go on" in said) == (ExitCode.SOURCE, True)
    assert "changed by someone else" in said
    behind = _replayed(replica, str(first), seed=1)
    for place in ("seed_written", "mirror_committed"):
        _killed(replica, spark, place)
    behind = _replayed(replica, str(consistent(spark, replica.path).position), seed=1)
    _change(mysql9, 2)
    assert replica.run(spark) == {}
    log = _checked(mysql9, replica, spark, behind)
    held = _values(spark, replica, behind)
    assert _lake(spark, replica, "again_t").collect() == old, "what was there stays"

    whole = _replayed(replica, "earliest")
    assert replica.run(spark) == {}
    assert _checked(mysql9, replica, spark, whole) == log
    assert _values(spark, replica, whole) == held, "the log says the same of what was copied"

    mysql9.sql("FLUSH BINARY LOGS")
    _change(mysql9, 3)
    assert replica.run(spark) == {}
    _purge(mysql9)
    last = int(whole) + 1
    behind = _replayed(replica, "earliest", seed=last)
    assert replica.run(spark) == {}
    _checked(mysql9, replica, spark, behind)
    assert _values(spark, replica, behind) == _values(spark, replica, whole)


def _replayed(replica: Replica, start: str, *, seed: int = 0) -> str:
    """The number of the plan that reads again.t again, behind what plan *seed* left in its targets, if one is named."""
    code, said = _historian(replica, "replay", "--table", "again.t", "--from", start)
    assert (code, "the next run reads from" in said) == (ExitCode.OK, True), said
    assert (f"plan {seed}, comes into fresh ones" if seed else "") in said
    assert seed or "comes into" not in said
    return said.rpartition("__r")[2].split(";")[0]


def _killed(replica: Replica, spark: SparkSession, place: str) -> None:
    def end(reached: str) -> None:
        if reached == place:
            faults.disarm()
            raise InterruptedError(place)

    faults.arm(end)
    try:
        with pytest.raises(HistorianError):
            replica.run(spark)
    finally:
        faults.disarm()


def _checked(server: Server, replica: Replica, spark: SparkSession, plan: str) -> list[tuple[Any, ...]]:
    """The changelog of again.t, where the present targets are those of *plan* and what the server has."""
    cut = sinks.consistent(spark, replica.lake)
    assert {t.kind: Path(t.path).name for t in cut.tables if t.name == "again.t"} == {
        kind: f"{name}__r{plan}" for kind, name in _NAMES.items()
    }
    assert _rows(cut.mirror["again.t"]) == _source(server)
    assert _rows(cut.mirror["again.u"]) == _source(server, "again.u")
    log = cut.changelog["again.t"].orderBy("offset").collect()
    assert [row.offset for row in log] == list(range(len(log)))
    assert [(row.op, row.id, row.a) for row in log[:8]] == [
        *((0, n, n) for n in (1, 2, 3)),
        (0, 10, 1),
        *((op, n, n + (op == 3)) for n in (1, 2) for op in (2, 3)),
    ]
    assert sorted((row.op, row.id) for row in log[8:12]) == [(1, 1), (1, 2), (1, 3), (1, 10)]
    assert cut.history["again.t"].where("valid_to is null").count() == len(_source(server))
    u = [row.offset for row in cut.changelog["again.u"].orderBy("offset").collect()]
    assert u == list(range(len(_source(server, "again.u"))))
    return [(row.offset, row.op, row.id, row.a) for row in log]


def _values(spark: SparkSession, replica: Replica, plan: str) -> list[list[str]]:
    """All that the targets of again.t hold but when it was written."""
    frames = [_lake(spark, replica, f"{name}__r{plan}").drop("system_time") for name in _NAMES.values()]
    return [sorted(map(repr, frame.collect())) for frame in frames]


def _purge(server: Server) -> None:
    """Purges the log up to a new file."""
    first = server.sql("SHOW BINARY LOGS")[0][0]
    while server.sql("SHOW BINARY LOGS")[0][0] == first:
        server.sql("FLUSH BINARY LOGS")
        server.sql(f"PURGE BINARY LOGS TO '{server.sql('SHOW BINARY LOG STATUS')[0][0]}'")


_NAMES = {"changelog": "changes_again_t", "mirror": "again_t", "history": "again_t_history"}


def test_a_table_goes_on_where_it_stopped(mysql9: Server, replica: Replica, spark: SparkSession) -> None:
    text = replica.path.read_text()
    replica.path.write_text(f"{text}types: {{zero_dates: fail}}\n")
    assert replica.run(spark) == {}
    _change(mysql9, 1)
    with mysql9.connect(sql_mode="") as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO again.t (id, d) VALUES (50, '0000-00-00')")
    assert list(replica.run(spark)) == ["again.t"]
    _change(mysql9, 2)
    assert list(replica.run(spark)) == ["again.t"]
    code, said = _historian(replica, "replay", "--table", "again.u")
    assert (code, "the lake has not stopped that table" in said) == (ExitCode.SOURCE, True)
    code, said = _historian(replica, "replay", "--table", "again.gone")
    assert (code, "expected  one of again.t, again.u" in said) == (ExitCode.STORE, True)

    code, said = _historian(replica, "replay", "--table", "again.t")
    assert (code, "into its targets" in said) == (ExitCode.OK, True)
    assert list(replica.run(spark)) == ["again.t"], "it still cannot be read, and stops again"
    replica.path.write_text(f"{text}types: {{zero_dates: null_and_count}}\n")
    assert _historian(replica, "replay", "--table", "again.t")[0] == ExitCode.OK
    _change(mysql9, 3)
    assert replica.run(spark) == {}

    wanted = [(*row[:5], None) if row[3] == 50 else row for row in _source(mysql9)]
    assert _rows(_lake(spark, replica, "again_t")) == wanted
    log = _lake(spark, replica, "changes_again_t").orderBy("offset").collect()
    assert [row.offset for row in log] == list(range(len(log)))
    assert [(row.op, row.id) for row in log if row.op == 0] == [(0, n) for n in (1, 2, 3, 10, 50, 20, 30)]
    assert sum(row.op == 3 for row in log) == 6
    (tmp := replica.directory / "store.db").unlink()
    _change(mysql9, 4)
    assert replica.run(spark) == {}, f"{tmp} is rebuilt from the lake, plans that read again included"
    wanted = [(*row[:6], None) if row[4] == 50 else row for row in _source(mysql9)]
    assert _rows(_lake(spark, replica, "again_t")) == wanted


def test_dead_letters_come_into_targets_that_have_a_form_for_them(
    mysql9: Server, replica: Replica, spark: SparkSession
) -> None:
    text = replica.path.read_text()
    replica.path.write_text(f"{text}types: {{zero_dates: dead_letter}}\n")
    with mysql9.connect(sql_mode="") as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO again.t (id, d) VALUES (50, '0000-00-00'), (51, '2024-00-15')")
    assert replica.run(spark) == {}
    code, said = _historian(replica, "replay-dead-letters")
    assert code == ExitCode.OK
    assert "again.t.d: 2 dead letters (a date that the calendar does not have): no form" in said
    replica.path.write_text(f"{text}types: {{zero_dates: text}}\n")
    assert _historian(replica, "replay-dead-letters", "--table", "again.u") == (
        ExitCode.OK,
        "there are no dead letters\n",
    )

    held = str(consistent(spark, replica.path).position)
    code, said = _historian(replica, "replay", "--table", "again.t", "--from", held)
    assert (code, "type options differ from those of the targets" in said) == (ExitCode.USAGE, True), said
    code, said = _historian(replica, "replay-dead-letters", "--reason", "zero_dates")
    assert (code, "again.t: the next run reads it again into fresh targets" in said) == (ExitCode.OK, True)
    assert replica.run(spark) == {}

    days = [None, "2024-02-02", None, "0000-00-00", "2024-00-15"]
    cut = sinks.consistent(spark, replica.lake)
    assert _rows(cut.mirror["again.t"].select("id", "d")) == list(zip((1, 2, 3, 50, 51), days, strict=True))
    assert [row.d for row in cut.changelog["again.t"].orderBy("offset").collect()] == days
    assert _historian(replica, "replay-dead-letters") == (ExitCode.OK, "there are no dead letters\n")
