"""A mirror with shaped columns and filtered rows, against the SELECT that its rules mean, on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from historian.errors import ConfigError
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")

RULES = """
    tables:
      "*.*":
        mask: {card: "****", born: "1970-01-01"}
      shaped.people:
        columns: {exclude: [password]}
        hash:
          email: {salt: "${env:SALT:-pepper}"}
          latin: {salt: pepper}
          big: {salt: pepper}
          amount: {salt: pepper}
          bin: {salt: pepper}
        truncate: {note: 5}
        compute: {domain: "substring_index(email, '@', -1)", twice: "CAST(amount AS DECIMAL(12,9)) * 2"}
        where: "country = 'DE'"
run:
"""
MEANING = """
    SELECT id, SHA2(CONCAT('pepper', mail), 256), SHA2(CONCAT('pepper', CONVERT(latin USING utf8mb4)), 256),
        SHA2(CONCAT('pepper', big), 256), SHA2(CONCAT('pepper', amount), 256), SHA2(CONCAT('pepper', bin), 256),
        LEFT(note, 5), IF(card IS NULL, NULL, '****'), IF(born IS NULL, NULL, DATE'1970-01-01'), country,
        SUBSTRING_INDEX(mail, '@', -1), amount * 2
    FROM shaped.people WHERE BINARY country = 'DE' ORDER BY id
"""
FIRST = (
    "CREATE DATABASE shaped",
    """CREATE TABLE shaped.people (id BIGINT PRIMARY KEY, email VARCHAR(50), latin VARCHAR(20) CHARACTER SET latin1,
        big BIGINT UNSIGNED, amount DECIMAL(10,8), bin VARBINARY(8), note TEXT, card VARCHAR(20), born DATE,
        password VARCHAR(20), country VARCHAR(2)) CHARACTER SET utf8mb4""",
    """INSERT INTO shaped.people VALUES (1, 'zoë@köln.example', 'Zoë', 18446744073709551615, 0.00000010, X'00FF', 'äö😀xyz',
            '4111-2222', '2001-02-03', 'geheim', 'DE'),
        (2, 'b@x', '', 0, -1.5, '', '', '', '2001-02-03', 'geheim', 'FR'),
        (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'DE'),
        (4, 'd@x', 'd', 4, 4, 'd', 'dddddd', '4', '2004-01-01', 'geheim', 'de'),
        (5, 'e@x', 'e', 5, 5, 'e', 'eeeeee', '5', '2005-01-01', 'geheim', 'DE')""",
    "ALTER TABLE shaped.people RENAME COLUMN email TO mail",
)
SECOND = (
    "UPDATE shaped.people SET country = IF(BINARY country = 'DE', 'FR', 'DE') WHERE id IN (1, 2)",
    "UPDATE shaped.people SET note = 'another note', amount = 99.99999999 WHERE id = 5",
    "UPDATE shaped.people SET id = 30 WHERE id = 3",
    "DELETE FROM shaped.people WHERE id = 4",
    "INSERT INTO shaped.people SELECT 6, 'f@x', 'ß', 1, 1, X'DEADBEEF', REPEAT('n', 1000), 'c', NOW(), 'geheim', 'DE'",
)


def test_a_mirror_is_the_select_that_its_rules_mean(mysql9: Server, spark: SparkSession, tmp_path: Path) -> None:
    replica = Replica(mysql9, tmp_path, ["shaped"], history="history_{database}_{table}")
    replica.path.write_text(replica.path.read_text().replace("run:\n", RULES.lstrip("\n"), 1))
    mysql9.sql("DROP DATABASE IF EXISTS shaped")
    try:
        for statements, rows in ((FIRST, 3), (SECOND, 4)):
            for statement in statements:
                mysql9.sql(statement)
            assert {} == replica.run(spark)
            mirror = spark.read.format("delta").load(f"{replica.lake}/shaped_people")
            meant = [tuple(row) for row in mysql9.sql(MEANING)]
            assert len(meant) == rows
            assert [tuple(row) for row in mirror.orderBy("id").collect()] == meant
            history = spark.read.format("delta").load(f"{replica.lake}/history_shaped_people")
            opened = history.where("to_offset IS NULL").select(mirror.columns).orderBy("id")
            assert [tuple(row) for row in opened.collect()] == meant
        log = spark.read.format("delta").load(f"{replica.lake}/changes_shaped_people").orderBy("offset").collect()
        signs = [(row.op, row.id) for row in log]
        assert signs == [
            *((0, 1), (0, 3), (0, 5)),
            *((1, 1), (0, 2), (2, 5), (3, 5), (1, 3), (0, 30), (0, 6)),
        ]
        # Files of Parquet pack texts, so what a reader sees is looked through.
        assert not any(word in repr(log) for word in ("geheim", "4111-2222", "zoë", "dddddd"))
    finally:
        mysql9.sql("DROP DATABASE shaped")


def test_expressions_fit_the_tables_that_are_there_before_any_row_is_read(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Also those of tables in which nothing happens."""
    replica = Replica(mysql9, tmp_path, ["unshaped"])
    rules = '{"*.quiet": {where: "m > 1", compute: {o: "now()"}}, "*.busy": {where: "flag"}}'
    text = replica.path.read_text().replace("run:\n", f"    tables: {rules}\nrun:\n", 1)
    replica.path.write_text(text.replace("start: earliest", "start: latest") + "types: {tinyint1: boolean}\n")
    mysql9.sql("CREATE DATABASE unshaped")
    try:
        for name in ("quiet", "busy"):
            mysql9.sql(f"CREATE TABLE unshaped.{name} (id INT PRIMARY KEY, n INT, flag TINYINT(1))")

        with pytest.raises(ConfigError) as caught:
            replica.run(spark)

        assert [problem.partition(" @ ")[2] for problem in caught.value.problems] == [
            "$.sinks[0].tables of unshaped.quiet: compute.o",
            "$.sinks[0].tables of unshaped.quiet: where",
        ]
        assert "with name `m` cannot be resolved" in str(caught.value)
        replica.path.write_text(replica.path.read_text().replace("m > 1", "n > 1").replace("now()", "n"))
        assert {} == replica.run(spark)
    finally:
        mysql9.sql("DROP DATABASE unshaped")
