"""The same rows by two roads: MySQL's binlog, and what a real Maxwell makes of it in a topic."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from connectors.readers.kafka.client import Client, KafkaSettings
from connectors.readers.kafka.reader import KafkaReader
from connectors.tracking.tracker import Tracker
from databases.kafka import Kafka
from databases.maxwell import start_maxwell
from databases.servers import Server
from historian.store import Store
from replicas.follower import Follower
from workload.checks import DecodedRow
from workload.row_changes import change_some, make_tables
from workload.waiting import wait_until

DATABASE = "maxed"
# TIME outside of a day, geometries and TRUNCATE are what Maxwell does not carry: the how-to has them.
KINDS = """CREATE TABLE maxed.kinds (id INT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT UNSIGNED, d INT UNSIGNED,
 e BIGINT, e2 BIGINT UNSIGNED, g FLOAT, h DOUBLE, i DECIMAL(12,3), i2 DECIMAL(30,10), i3 DECIMAL(60,5), j BIT(1), k BIT(12), l DATE,
 m DATETIME, n DATETIME(6), o TIMESTAMP(3) NULL, p TIME(3), q YEAR, r CHAR(3), s VARCHAR(20), t TEXT, u BINARY(4), v VARBINARY(9),
 w BLOB, x ENUM('a','b,c'), y SET('x','y','z'), z JSON, bo BOOLEAN, la VARCHAR(9) CHARACTER SET latin1)"""


class Topics(Follower):
    """Follows the topic in the server's place."""

    def __init__(self, settings: KafkaSettings, server: Server, directory: Path) -> None:
        super().__init__(server, directory)
        self.settings = settings

    @contextlib.contextmanager
    def _tracker(self) -> Iterator[Tracker]:
        with (
            contextlib.closing(Store.open(self.url)) as store,
            contextlib.closing(KafkaReader(self.settings)) as reader,
        ):
            yield Tracker(
                reader=reader, store=store, connector=store.connector("topics"), captured=lambda _: True, revision=""
            )


def workload(server: Server, seed: int) -> None:
    """Rows of every type, changed, moved to other keys and deleted, between DDL; a table without a key."""
    numbers = random.Random(seed)
    with contextlib.closing(server.connect()) as connection, connection.cursor() as cursor:

        def sql(statement: str, *values: Any) -> None:
            cursor.execute(statement, values or None)

        sql(KINDS)
        sql(
            "INSERT INTO maxed.kinds VALUES (1,-3,65535,16777215,4294967295,-5,18446744073709551615,0.1,0.1,-123.450,-1.0000000001,"
            "1234567890123456789012345678901234567890.12345,1,b'101010101010','2024-02-29','2024-01-02 03:04:05',"
            "'2024-01-02 03:04:05.123456','2024-01-02 03:04:05.123','12:34:56.789',2024,'ab','h\u00e9\U0001f600','txt',x'0102',x'0304',"
            "x'ff00','b,c','x,z','{\"a\": [1, 2.5, null, \"\u00e9\"], \"b\": \"x\"}',1,'\u00e9')"
        )
        sql("INSERT INTO maxed.kinds (id) VALUES (2)")
        sql(
            "INSERT INTO maxed.kinds (id, a, b, e, i, k, l, n, o, p, r, x, y, z) VALUES (3, 127, 0, -9223372036854775808, 0.001, b'0',"
            " '1000-01-01', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:01', '00:00:00', '', 'a', '', '\"text\"')"
        )
        sql("UPDATE maxed.kinds SET s = 'q', i = 7, x = 'a', z = NULL WHERE id = 1")
        sql("UPDATE maxed.kinds SET s = 'q' WHERE id = 2")
        make_tables(sql, DATABASE)
        extra = 0
        for step in range(90):
            change_some(sql, DATABASE, numbers, step, "v" if step < 45 else "w")
            if step % 15 == 7:
                extra += 1
                sql(f"ALTER TABLE maxed.t ADD COLUMN c{extra} VARCHAR(9) NOT NULL DEFAULT 'd{extra}' AFTER id")
            if step == 44:
                sql("ALTER TABLE maxed.t CHANGE v w VARCHAR(60)")
            if step == 50:
                sql("ALTER TABLE maxed.t DROP COLUMN c1")
            if step == 60:
                sql("ALTER TABLE maxed.t MODIFY n BIGINT")
                sql("UPDATE maxed.t SET n = n + 3000000000 WHERE id < 6")
        sql("CREATE TABLE maxed.mark (id INT PRIMARY KEY)")
        sql("INSERT INTO maxed.mark VALUES (7)")


def sent(settings: KafkaSettings) -> bool:
    """Whether the topic has the workload's last row."""
    with contextlib.closing(Client(settings)) as client:
        messages = [
            json.loads(value)
            for partition in client.partitions()
            for _, batch in client.batches({partition: client.bounds(partition)})
            for value in batch.values
        ]
    return any(each["table"] == "mark" and each["type"] == "insert" for each in messages if "table" in each)


def by_table(rows: list[DecodedRow]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        if row.table.database == DATABASE:
            found.setdefault(row.table.table, []).append((row.op.sign, repr(row.values)))
    return found


def test_maxwells_topic_has_the_rows_of_the_log(mysql57: Server, kafka: Kafka, tmp_path: Path) -> None:
    mysql57.sql(f"CREATE DATABASE {DATABASE}")
    logged = Follower(mysql57, tmp_path)
    kafka.make_topic(DATABASE)
    settings = KafkaSettings(brokers=kafka.brokers, topics=(DATABASE,), format="maxwell")
    maxwell = start_maxwell(tmp_path / "maxwell", mysql57, kafka, DATABASE, DATABASE)
    try:
        workload(mysql57, 12)
        wait_until(lambda: sent(settings), 60)
    finally:
        maxwell.stop()
        mysql57.sql("DROP DATABASE IF EXISTS maxwell")
    (tmp_path / "topics").mkdir()
    topics = Topics(settings, mysql57, tmp_path / "topics")

    logged.run()
    assert topics.run(limit_bytes=20_000) > 2

    wanted, found = by_table(logged.rows), by_table(topics.rows)
    assert wanted.keys() == found.keys() == {"kinds", "t", "nokey", "mark"}
    for table, rows in wanted.items():
        assert rows == found[table], table
    with contextlib.closing(Store.open(topics.url)) as store:
        assert () == store.stopped()
        statements = [entry.statement for entry in store.history().entries]
    assert any("CHANGE v w" in each for each in statements)
    assert not any(each.startswith("--") for each in statements), statements
