"""Three databases of one schema as one table, against UNION ALL of them, on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases.servers import Server
from replicas.replica import Replica

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")

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


@pytest.mark.parametrize("build, often", [("mysql9", True), pytest.param("mariadb118", False, marks=pytest.mark.soak)])
def test_a_mirror_is_the_union_of_shards_that_statements_reach_one_after_another(
    build: str, often: bool, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> None:
    """With runs in between, or one that follows all of it at once."""
    server: Server = request.getfixturevalue(build)
    replica = Replica(server, tmp_path, ["shard_?"], history="history_{database}_{table}")
    replica.path.write_text(replica.path.read_text().replace("run:\n", INTO.lstrip("\n"), 1))

    def follow(*, now: bool = True) -> None:
        if now:
            assert {} == replica.run(spark)

    _dropped(server)
    try:
        for shard in SHARDS[:2]:
            for statement in (f"CREATE DATABASE {shard}", TABLE.format(shard), ROWS.format(shard)):
                server.sql(statement)
        follow(now=often)
        server.sql("CREATE DATABASE shard_c")
        server.sql(TABLE.format("shard_c"))
        server.sql(ROWS.format("shard_c"))
        for at, shard in enumerate(SHARDS):
            for alter in ALTERS:
                server.sql(alter.format(shard))
                for other in SHARDS:
                    server.sql(f"INSERT INTO {other}.orders (customer) VALUES ('{shard}')")
                    server.sql(f"UPDATE {other}.orders SET total = total + 0.25 WHERE customer = '{shard}' OR id = 1")
            follow(now=often and at != 1)
        for change in CHANGES:
            for shard in SHARDS:
                server.sql(change.format(shard))
        follow()
        _compare(server, spark, replica)

        server.sql("TRUNCATE shard_a.orders")
        server.sql("INSERT INTO shard_a.orders (customer) VALUES ('again')")
        server.sql("DROP DATABASE shard_b")
        follow(now=often)
        server.sql("CREATE DATABASE shard_b")
        server.sql("CREATE TABLE shard_b.orders LIKE shard_c.orders")
        server.sql("INSERT INTO shard_b.orders (customer, total) VALUES ('like', 4.25)")
        follow()
        _compare(server, spark, replica)
    finally:
        _dropped(server)


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
