"""JSON as VARIANT from a real server: Spark reads in changelog and mirror the values that the server has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from databases.servers import Server
from historian.errors import ConfigError
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = (
    "CREATE DATABASE docs",
    "CREATE TABLE docs.t (id INT PRIMARY KEY, doc JSON)",
    """INSERT INTO docs.t VALUES (1, '{"n": 18446744073709551615, "m": -9223372036854775808, "é😀": ["", "\\\\u0000"]}'),
        (2, NULL), (3, 'null'), (4, '[1.10, 1e300, 0.1, -0.0, 12345678901234567890123]'), (5, '"text"'), (6, 'true')""",
    """INSERT INTO docs.t VALUES (7, JSON_OBJECT('decimal', CAST(-1.50 AS DECIMAL(30,10)), 'at', TIMESTAMP'2024-02-29 1:2:3.5',
        'span', TIME'-12:30:00', 'bytes', X'00FF', 'double', 1e0/3))""",
)
SECOND = (
    "UPDATE docs.t SET doc = JSON_SET(doc, '$.n', JSON_ARRAY(1, NULL)) WHERE id = 1",
    "UPDATE docs.t SET doc = '{}' WHERE id = 2",
    "DELETE FROM docs.t WHERE id = 5",
    "ALTER TABLE docs.t ADD more JSON NOT NULL",
    "INSERT INTO docs.t VALUES (8, NULL, '[[[]]]')",
)


def test_changelog_and_mirror_hold_the_servers_json(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    replica = Replica(mysql9, tmp_path, ["docs"])
    plain = replica.path.read_text()
    replica.path.write_text(f"{plain}types:\n  json: variant\n")
    mysql9.sql("DROP DATABASE IF EXISTS docs")
    try:
        for statements in (FIRST, SECOND):
            for statement in statements:
                mysql9.sql(statement)
            assert {} == replica.run(spark)
            _check(replica, mysql9, spark)
        place = f"delta.`{replica.lake}/docs_t`"
        (row,) = spark.sql(f"SELECT variant_get(doc, '$.m', 'bigint') AS m FROM {place} WHERE id = 1").collect()
        assert -(2**63) == row.m

        replica.path.write_text(plain)
        mysql9.sql("UPDATE docs.t SET doc = '1' WHERE id = 8")
        with pytest.raises(ConfigError, match=r"docs.t.doc is text, and was variant @ \$.types.json"):
            replica.run(spark)
    finally:
        mysql9.sql("DROP DATABASE docs")


def _check(replica: Replica, server: Server, spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    mirror = spark.read.format("delta").load(f"{replica.lake}/docs_t")
    names = mirror.columns[1:]
    expected = {row[0]: [_value(text) for text in row[1:]] for row in server.sql("SELECT * FROM docs.t")}
    assert {"variant"} == {kind for name, kind in mirror.dtypes if name in names}
    texts = [F.to_json(name).alias(name) for name in names]
    assert {row[0]: [_value(text) for text in row[1:]] for row in mirror.select("id", *texts).collect()} == expected
    log = spark.read.format("delta").load(f"{replica.lake}/changes_docs_t")
    last = F.max_by(F.struct("op", *texts), "offset").alias("last")
    rows = log.groupBy("id").agg(last).where("last.op <> 1").select("id", "last.*").collect()
    changed = {row.id: [_value(text) for text in row[2:]] for row in rows}
    assert changed.keys() == expected.keys()
    # A changelog's older rows lack the column that was added behind them.
    assert {key: row[0] for key, row in changed.items()} == {key: row[0] for key, row in expected.items()}


def _value(text: str | None) -> Any:
    return ("NULL",) if text is None else json.loads(text, parse_float=float)
