"""Three databases of one schema as one table, against UNION ALL of them, on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from replica import Replica
from servers import Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHARDS = ("shard_a", "shard_b", "shard_c")
INTO = """
    tables:
      "shard_*.orders":
        into: {name: all.orders, shard_columns: {region: "{database}"}}
run:
"""
TABLE = """CREATE TABLE {0}.orders (id INT AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(20) CHARACTER SET latin1,
    total DECIMAL(8,2), note TEXT) CHARACTER SET utf8mb4"""
ROWS = "INSERT INTO {0}.orders (customer, total, note) VALUES ('Zoë', 1.5, '{0}'), ('b', 2, NULL), ('c', 3, 'c')"
ALTERS = (
    "ALTER TABLE {0}.orders ADD state ENUM('new','paid') NOT NULL DEFAULT 'paid' AFTER id, MODIFY total DECIMAL(12,4)",
    "ALTER TABLE {0}.orders CHANGE note remark TEXT, MODIFY customer VARCHAR(40) CHARACTER SET utf8mb4 FIRST",
    "ALTER TABLE {0}.orders DROP remark, ADD flags BIGINT NOT NULL DEFAULT 7",
)
CHANGES = (
    "UPDATE {0}.orders SET total = total + 1 WHERE id = 1",
    "UPDATE {0}.orders SET id = id + 100 WHERE id = 2",
    "DELETE FROM {0}.orders WHERE id = 3",
    "INSERT INTO {0}.orders (customer, total) VALUES ('new', 9)",
)
COLUMNS = "customer, id, state, total, flags"


def test_a_mirror_is_the_union_of_shards_that_statements_reach_one_after_another(
    mysql9: Server, spark: SparkSession, tmp_path: Path
) -> None:
    replica = Replica(mysql9, tmp_path, ["shard_?"], history="history_{database}_{table}")
    replica.path.write_text(replica.path.read_text().replace("run:\n", INTO.lstrip("\n"), 1))
    _dropped(mysql9)
    try:
        for shard in SHARDS[:2]:
            for statement in (f"CREATE DATABASE {shard}", TABLE.format(shard), ROWS.format(shard)):
                mysql9.sql(statement)
        assert {} == replica.run(spark)
        mysql9.sql("CREATE DATABASE shard_c")
        mysql9.sql(TABLE.format("shard_c"))
        mysql9.sql(ROWS.format("shard_c"))
        for at, shard in enumerate(SHARDS):
            for alter in ALTERS:
                mysql9.sql(alter.format(shard))
                for other in SHARDS:
                    mysql9.sql(f"INSERT INTO {other}.orders (customer) VALUES ('{shard}')")
                    mysql9.sql(f"UPDATE {other}.orders SET total = total + 0.25 WHERE customer = '{shard}' OR id = 1")
            if at != 1:
                assert {} == replica.run(spark)
        for change in CHANGES:
            for shard in SHARDS:
                mysql9.sql(change.format(shard))
        assert {} == replica.run(spark)
        _compare(mysql9, spark, replica)

        mysql9.sql("TRUNCATE shard_a.orders")
        mysql9.sql("INSERT INTO shard_a.orders (customer) VALUES ('again')")
        mysql9.sql("DROP DATABASE shard_b")
        assert {} == replica.run(spark)
        mysql9.sql("CREATE DATABASE shard_b")
        mysql9.sql("CREATE TABLE shard_b.orders LIKE shard_c.orders")
        mysql9.sql("INSERT INTO shard_b.orders (customer, total) VALUES ('like', 4.25)")
        assert {} == replica.run(spark)
        _compare(mysql9, spark, replica)
    finally:
        _dropped(mysql9)


def _compare(server: Server, spark: SparkSession, replica: Replica) -> None:
    selects = [f"SELECT '{shard}' AS region, {COLUMNS} FROM {shard}.orders" for shard in SHARDS]
    expected = [tuple(row) for row in server.sql(f"{' UNION ALL '.join(selects)} ORDER BY region, id")]
    assert len({row[0] for row in expected}) == len(SHARDS)
    mirror = spark.read.format("delta").load(f"{replica.lake}/all_orders").select("region", *COLUMNS.split(", "))
    assert [tuple(row) for row in mirror.orderBy("region", "id").collect()] == expected
    assert not {"note", "remark"} & set(mirror.columns)
    history = spark.read.format("delta").load(f"{replica.lake}/history_all_orders").where("to_offset IS NULL")
    assert [tuple(row) for row in history.select(mirror.columns).orderBy("region", "id").collect()] == expected
    log = spark.read.format("delta").load(f"{replica.lake}/changes_all_orders").orderBy("offset")
    live: dict[tuple[str, int], object] = {}
    for row in log.collect():
        key = (row.region, row.id)
        if row.op in (0, 3):
            live[key] = (row.customer, row.total)
        else:
            assert live.pop(key) == (row.customer, row.total)
    assert live == {(row[0], row[2]): (row[1], row[4]) for row in expected}


def _dropped(server: Server) -> None:
    for shard in SHARDS:
        server.sql(f"DROP DATABASE IF EXISTS {shard}")
