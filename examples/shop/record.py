"""Records the shop: a real MySQL server writes a binlog while its schema changes, and says what it holds at the end.

Writes ``binlog/``, ``final/`` and ``expected.json`` beside this file, which README.md describes.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from story import SCHEMA, STEPS
from traffic import Shop

from databases.servers import Server, start_server

HERE = Path(__file__).parent
SEED = 20250301
DAYS_BETWEEN = 1
FLUSH_AFTER = (5, 11)


def main() -> None:
    """Starts a server, runs the story, stores the recording."""
    with tempfile.TemporaryDirectory(prefix="historian-record-") as directory:
        server = start_server("mysql9", Path(directory), "innodb_flush_log_at_trx_commit=2", "binlog_cache_size=1M")
        try:
            recording = Recording(server)
            recording.run()
            recording.store()
        finally:
            server.stop()


_PRINTED = {
    # FLOAT prints six digits of the nine that tell its values apart.
    "float": "CAST(CAST({} AS DOUBLE) AS CHAR)",
    "bit": "CAST({} + 0 AS CHAR)",
    "blob": "HEX({})",
}
"""How values that do not print exactly are made to. All others print as they are."""


class Recording:
    """One run of the story."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.connection = server.connect()
        self.cursor = self.connection.cursor()
        self.statements: list[dict[str, str]] = []
        self.vanished: Counter[str] = Counter()
        self.shop = Shop(self.execute, self.column, SEED)

    def execute(self, sql: str) -> int:
        return int(self.cursor.execute(sql))

    def column(self, sql: str) -> list[Any]:
        self.execute(sql)
        return [value for (value,) in self.cursor.fetchall()]

    def define(self, sql: str) -> None:
        """Runs a DDL statement and notes it with the GTID that it got."""
        verb, _, table = sql.partition(" TABLE ")
        if verb in {"TRUNCATE", "DROP"}:
            (count,) = self.column(f"SELECT COUNT(*) FROM {table}")
            self.vanished[table] += count
        before = self.executed()
        self.execute(sql)
        (gtid,) = self.column(f"SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{before}')")
        self.statements.append({"gtid": gtid, "sql": " ".join(sql.split())})

    def executed(self) -> str:
        (executed,) = self.column("SELECT @@GLOBAL.gtid_executed")
        return str(executed).replace("\n", "")

    def run(self) -> None:
        self.execute("RESET BINARY LOGS AND GTIDS")
        self.execute("SET time_zone = '+00:00'")
        for statement in SCHEMA:
            self.define(statement)
            if statement.startswith("CREATE DATABASE"):
                self.execute("USE shop")
        self.shop.open()
        self.shop.day()
        for number, step in enumerate(STEPS):
            step(self.shop, self.define)
            for _ in range(DAYS_BETWEEN):
                self.shop.day()
            if number in FLUSH_AFTER:
                self.execute("FLUSH BINARY LOGS")
        self.shop.day()

    # -- what is kept ------------------------------------------------------------------------------------------------

    def store(self) -> None:
        shutil.rmtree(HERE / "final", ignore_errors=True)
        tables = [self.final(name) for name in self.column("SHOW TABLES")]
        rows = self.shop.counts
        expected = {
            "server": self.server.version,
            "gtid_executed": self.executed(),
            "row_changes": rows.pop("changes"),
            "changelog_rows": dict(sorted(rows.items())),
            "vanished_rows": dict(self.vanished),
            "statements": self.statements,
            "tables": tables,
        }
        text = json.dumps(expected, ensure_ascii=False, indent=1)
        (HERE / "expected.json").write_text(text + "\n", encoding="utf-8")
        self.server.stop()
        self.copy_binlog()

    def final(self, name: str) -> dict[str, Any]:
        """Writes a table's rows as the server prints them; returns what ``expected.json`` says of it."""
        self.execute(
            "SELECT column_name, data_type, column_key FROM information_schema.columns "
            f"WHERE table_schema = 'shop' AND table_name = '{name}' ORDER BY ordinal_position"
        )
        columns = [(str(column), str(kind), str(key)) for column, kind, key in self.cursor.fetchall()]
        key = [column for column, _, role in columns if role == "PRI"]
        printed = ", ".join(_PRINTED.get(kind, "CAST({} AS CHAR)").format(f"`{column}`") for column, kind, _ in columns)
        order = ", ".join(f"`{column}`" for column in key) or "1, 2, 3, 4, 5, 6"
        self.execute(f"SELECT {printed} FROM `{name}` ORDER BY {order}")
        rows = self.cursor.fetchall()
        texts = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
        arrays = {column: pa.array(text, pa.string()) for (column, _, _), text in zip(columns, texts, strict=True)}
        (HERE / "final").mkdir(exist_ok=True)
        pq.write_table(pa.table(arrays), HERE / "final" / f"{name}.parquet", compression="zstd", compression_level=19)
        described = [{"name": column, "type": kind} for column, kind, _ in columns]
        return {"name": name, "key": key, "rows": len(rows), "columns": described}

    def copy_binlog(self) -> None:
        target = HERE / "binlog"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        files = self.server.binlog_files()
        for file in files:
            shutil.copy(file, target)
        (target / "binlog.index").write_text("".join(f"./{file.name}\n" for file in files), encoding="utf-8")


if __name__ == "__main__":
    main()
