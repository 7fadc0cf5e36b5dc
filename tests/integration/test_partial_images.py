"""Row images that lack columns from the server to people, typed rows and mirrors: nothing becomes NULL on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from logs.image_lab import COLUMNS, DATABASE, ImageLab, has_whole_images
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

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


GENERATED = "(id INT PRIMARY KEY, s INT AS (CHAR_LENGTH(b)) STORED, v INT AS (s + 1) VIRTUAL, b VARCHAR(9), c INT)"
RULES = """
    tables:
      generated.excluded:
        columns: {exclude: [s, v]}
        compute: {size: "length(b)"}
        where: "c > 0"
        history: "history_{table}"
      generated.left_out:
        columns: {exclude: [s, v]}
        history: "history_{table}"
"""


def test_tables_with_generated_columns_go_on_as_far_as_images_tell_them(
    mariadb118: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Its FULL images lack them; a mirror keeps them where nothing that they come from changed."""
    tables = ("kept", "excluded", "left_out")
    replica = Replica(mariadb118, tmp_path, ["generated"])
    replica.path.write_text(replica.path.read_text().replace("run:\n", RULES.lstrip("\n") + "run:\n", 1))

    def each(*statements: str) -> None:
        for table in tables:
            for statement in statements:
                mariadb118.sql(statement.format(f"generated.{table}"))

    def mirrored(table: str) -> list[tuple[Any, ...]]:
        rows = spark.read.format("delta").load(str(replica.lake / f"generated_{table}")).orderBy("id").collect()
        return [tuple(row) for row in rows]

    def meant(table: str, columns: str = "id, d, b") -> list[tuple[Any, ...]]:
        return [tuple(row) for row in mariadb118.sql(f"SELECT {columns} FROM generated.{table} ORDER BY id")]

    mariadb118.sql("CREATE DATABASE generated")
    try:
        each(
            f"CREATE TABLE {{}} {GENERATED}",
            "INSERT INTO {} (id, b, c) VALUES (1, 'one', 1), (2, NULL, 2), (3, 'x', 3)",
        )
        assert {} == replica.run(spark)
        each("UPDATE {} SET c = c + 7, b = b", "UPDATE {} SET id = 9 WHERE id = 2", "DELETE FROM {} WHERE id = 3")
        assert {} == replica.run(spark)
        assert mirrored("kept") == meant("kept", "*")
        each("ALTER TABLE {} RENAME COLUMN b TO d, RENAME COLUMN c TO b", "UPDATE {} SET b = b + 1")
        assert {} == replica.run(spark)
        assert mirrored("kept") == meant("kept", "*")
        each("UPDATE {} SET d = 'longer' WHERE id = 1")
        stops = replica.run(spark)
        if has_whole_images(mariadb118):
            assert stops == {}
            assert mirrored("kept") == meant("kept", "*")
        else:
            assert set(stops) == {"generated.kept"}
            assert "columns of a row changed, and its images do not tell to what" in stops["generated.kept"]
            assert "columns s, v" in stops["generated.kept"]
        assert mirrored("left_out") == meant("left_out")
        assert mirrored("excluded") == meant("excluded", "id, d, b, CHAR_LENGTH(d)")
        for table in ("excluded", "left_out"):
            history = spark.read.format("delta").load(str(replica.lake / f"history_{table}"))
            opened = history.where("to_offset IS NULL").select("id", "d", "b").orderBy("id").collect()
            assert [tuple(row) for row in opened] == meant(table)
    finally:
        mariadb118.sql("DROP DATABASE generated")


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
