"""Row images that lack columns from the server to people, typed rows and mirrors: nothing becomes NULL on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from image_lab import COLUMNS, DATABASE, ImageLab
from replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from servers import Server

STORED = COLUMNS.replace("gv INT GENERATED ALWAYS AS (n + 1) VIRTUAL,", "")
STORED = STORED.replace(",\n    gw INT GENERATED ALWAYS AS (gv * 2) VIRTUAL", "")
"""Without virtual columns, which MariaDB's images leave out when they change."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, images, partial_json, columns",
    [
        pytest.param("mysql9", ["MINIMAL"], False, COLUMNS, id="mysql9-minimal"),
        pytest.param("mysql8", ["NOBLOB", "FULL"], True, COLUMNS, id="mysql8-noblob-diffs"),
        pytest.param("mariadb118", ["FULL_NODUP", "MINIMAL"], False, STORED, id="mariadb118-nodup"),
    ],
)
def test_a_mirror_of_partial_images_is_the_table(
    name: str,
    images: list[str],
    partial_json: bool,
    columns: str,
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    server: Server = request.getfixturevalue(name)
    lab = ImageLab(server, "t", images, seed=7, partial_json=partial_json, columns=columns)
    lab.run("SET SESSION sql_mode = ''")
    replica = Replica(server, tmp_path / name, [DATABASE])
    for steps in (30, 60):
        for _ in range(steps):
            lab.step()
        replica.run(spark)
        held = spark.read.format("delta").load(str(replica.lake / f"{DATABASE}_t")).toArrow().to_pylist()
        assert {row["id"]: row for row in held} == lab.rows()
    changes = spark.read.format("delta").load(str(replica.lake / f"changes_{DATABASE}_t")).toArrow()
    assert any(changes.column("absent").to_pylist())
    if name == "mysql9":
        check_typed(replica, spark, changes.num_rows)


def check_typed(replica: Replica, spark: SparkSession, count: int) -> None:
    rows = spark.read.format("historian").options(config=str(replica.path), table=f"{DATABASE}.t")
    with pytest.raises(Exception, match=r'option\("absent", "true"\) adds them'):
        rows.load().collect()
    table = rows.option("absent", "true").load().toArrow()
    assert table.num_rows == count
    for row in table.to_pylist():
        assert all(row[name] is None for name in row["absent"] or ())
        assert row["unseen"] is None
    assert any(row["absent"] for row in table.to_pylist())


ROW = """INSERT INTO tail_it.t VALUES (1, 'v', '{"a": 1, "b": "long enough to be worth a partial update, they say"}')"""


def tail(*files: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(
        app, ["tail", "--binlog", *map(str, files), "--table", "tail_it.*", "--format", "ndjson"]
    )
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_tail_shows_what_images_lack(mysql9: Server) -> None:
    mysql9.sql("FLUSH BINARY LOGS")
    with mysql9.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE DATABASE tail_it",
            "CREATE TABLE tail_it.t (id INT PRIMARY KEY, v VARCHAR(300) DEFAULT 'd', j JSON)",
            ROW,
            "SET SESSION binlog_row_image = 'MINIMAL'",
            "INSERT INTO tail_it.t (id) VALUES (2)",
            "UPDATE tail_it.t SET v = 'w' WHERE id = 1",
            "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            "UPDATE tail_it.t SET j = JSON_SET(j, '$.a', 2) WHERE id = 1",
            "DELETE FROM tail_it.t WHERE id = 1",
            "SET SESSION binlog_row_image = 'FULL'",
            "INSERT INTO tail_it.t VALUES (3, NULL, NULL)",
        ):
            cursor.execute(statement)
    rows = tail(mysql9.binlog_files()[-1])
    told = [{name: row[name] for name in row if name in ("op", "absent", "unseen", "data")} for row in rows]
    assert told[0]["data"]["v"] == "v"
    assert told[1:] == [
        {"op": "+A", "data": {"id": 2, "v": "d", "j": None}},
        {"op": "-C", "absent": ["v", "j"], "data": {"id": 1}},
        {"op": "+C", "absent": ["j"], "data": {"id": 1, "v": "w"}},
        {"op": "-C", "absent": ["v", "j"], "data": {"id": 1}},
        {"op": "+C", "absent": ["v", "j"], "unseen": ["j"], "data": {"id": 1}},
        {"op": "-R", "absent": ["v", "j"], "data": {"id": 1}},
        {"op": "+A", "data": {"id": 3, "v": None, "j": None}},
    ]
    shown = CliRunner().invoke(app, ["tail", "--binlog", str(mysql9.binlog_files()[-1]), "--table", "tail_it.*"])
    assert shown.stdout.count("changed") == 1
    assert shown.stdout.count("absent") == 8
