"""Tables that are copied by a unique key whose values the log does not tell, or that targets cannot hold: no row is lost, and no run ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.backfill import selecting
from connectors.backfill.snapshots import snapshot_behind
from connectors.config import CopyLimits, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from databases.servers import Server
from historian.changelog.operations import Op
from historian.errors import SinkError
from historian.names import TableName
from replicas.copying_oracle import CopyingOracle
from replicas.first_copies import copying_config, ends_behind

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DATES = (
    "CREATE TABLE c.q (d DATE NOT NULL, n INT NOT NULL, UNIQUE (d, n))",
    "INSERT INTO c.q VALUES ('0000-00-00', 5), ('0000-00-00', 6), ('2020-00-00', 5), ('2020-00-00', 8)",
    "INSERT INTO c.q VALUES ('2024-01-01', 1), ('2024-01-01', 2), ('2024-01-02', 1), ('2024-01-03', 1), ('2024-01-04', 1)",
)
_FLOATS = (
    "CREATE TABLE c.q (f FLOAT PRIMARY KEY, id INT NOT NULL UNIQUE, v INT)",
    "INSERT INTO c.q VALUES (0.5, 1, 0), (1.5, 2, 0), (2.5, 3, 0), (3.5, 4, 0), (4.5, 5, 0), (5.5, 6, 0)",
)
_CASES = {
    "a date that no calendar has": (
        _DATES,
        ("UPDATE c.q SET n = 7 WHERE d = '0000-00-00' AND n = 5", "DELETE FROM c.q WHERE d = '2020-00-00' AND n = 5"),
    ),
    "a part of the image": (
        _FLOATS,
        ("SET binlog_row_image = MINIMAL", "UPDATE c.q SET v = 1 WHERE id = 2", "DELETE FROM c.q WHERE id = 1"),
    ),
}


@pytest.mark.parametrize(
    "kind, case", [("mysql8", case) for case in _CASES] + [("mariadb118", "a date that no calendar has")]
)
def test_a_change_of_a_key_that_has_no_place_in_the_order_does_not_end_the_connector(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str, case: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    tables, statements = _CASES[case]
    _fill(server, *tables, "CREATE TABLE c.other (id INT PRIMARY KEY)")
    path = copying_config(server, tmp_path, backfill="{chunk_rows: 2, connections: 1}")
    with pytest.raises(SinkError):
        run(load_config(path), once=True, spark=spark, observer=on_written(ends_behind(2)))
    _lax(server, *statements)
    server.sql("INSERT INTO c.other VALUES (1)")

    assert {} == run(load_config(path), once=True, spark=spark)

    columns = [str(name) for name, *_ in server.sql("DESCRIBE c.q")]
    changes = spark.read.format("delta").load(f"{tmp_path}/lake/c_q_changes").select("op", *columns).collect()
    folded: Counter[Any] = Counter()
    for op, *row in changes:
        folded[tuple(row)] += 1 if op in (Op.APPEND, Op.CORRECT_TO) else -1
    assert {row: count for row, count in folded.items() if count} == _held(server)
    assert [1] == [row.id for row in spark.read.format("delta").load(f"{tmp_path}/lake/c_other").collect()]


def test_rows_whose_keys_read_alike_are_not_taken_for_one(
    mysql8: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ``0000-00-00`` and ``2020-00-00`` are NULL in targets."""
    _fill(mysql8, *_DATES)
    oracle = CopyingOracle(mysql8, tmp_path, CopyLimits(), "c")
    changes = ["UPDATE c.q SET n = 9 WHERE d = '2020-00-00' AND n = 5"]

    def snapshot(*arguments: Any, **named: Any) -> Any:
        while changes:
            _lax(mysql8, changes.pop())
        return snapshot_behind(*arguments, **named)

    monkeypatch.setattr(selecting, "snapshot_behind", snapshot)
    oracle.run()

    assert {} == oracle.stopped
    assert _held(mysql8) == oracle.rows_of(TableName("c", "q"))


def _fill(server: Server, *statements: str) -> None:
    server.clear()
    server.sql("CREATE DATABASE c")
    _lax(server, *statements)


def _lax(server: Server, *statements: str) -> None:
    with server.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _held(server: Server) -> Counter[Any]:
    """The server's rows as targets have them: PyMySQL has texts of dates that no calendar has."""
    return Counter(tuple(None if isinstance(v, str) else v for v in row) for row in server.sql("SELECT * FROM c.q"))
