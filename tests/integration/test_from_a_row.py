"""The option ``from`` with the position of any row gives what the log has behind it, whatever was altered before and later.

The oracle is the log as a whole: rows are told by a number of their own, which the writer counts up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from databases.servers import Server
from historian.errors import UnknownTable
from replicas.driven_source import DrivenStream, read_batch

OTHER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def _options(server: Server, **more: str) -> dict[str, str]:
    named = {"host": server.host, "port": str(server.port), "user": server.user, "password": server.password}
    source = {f"source.{key}": value for key, value in named.items()}
    return {
        **source,
        "source.type": server.flavor,
        "source.tables": '["f.*"]',
        "table": "f.t",
        "columns": "n,position",
        **more,
    }


def _write(server: Server, random: Random, steps: int) -> int:
    """Rows and ALTERs in turn, some under another server's GTIDs, in files begun now and then; gives the number of rows."""
    rows, others = 0, 0
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE f", "CREATE TABLE f.t (n INT PRIMARY KEY, c0 INT)"):
            cursor.execute(statement)
        for step in range(steps):
            is_foreign = random.random() < 0.4
            others += is_foreign
            if server.flavor == "mysql":
                cursor.execute(f"SET gtid_next = '{f'{OTHER}:{others}' if is_foreign else 'AUTOMATIC'}'")
            else:
                cursor.execute(f"SET gtid_domain_id = {7 if is_foreign else 0}")
            match random.choice(("row", "row", "row", "alter", "alter")):
                case "row":
                    cursor.execute(f"INSERT INTO f.t (n) VALUES ({rows})")
                    cursor.execute("COMMIT")
                    rows += 1
                case _:
                    change = random.choice((f"ADD COLUMN c{step} INT DEFAULT {step}", f"ADD INDEX i{step} (n)"))
                    cursor.execute(f"ALTER TABLE f.t {change}")
            if server.flavor == "mysql":
                cursor.execute("SET gtid_next = 'AUTOMATIC'")
            if random.random() < 0.1:
                cursor.execute("FLUSH BINARY LOGS")
    return rows


@pytest.mark.parametrize("kind", ["mysql9", "mariadb118"])
def test_a_batch_begins_behind_the_transaction_of_each_row(kind: str, fresh_server: Callable[..., Server]) -> None:
    server = fresh_server(kind)
    count = _write(server, Random(kind), 24)
    whole = read_batch(_options(server)).to_pylist()
    assert list(range(count)) == [row["n"] for row in whole]

    for row in whole:
        behind, before = (
            read_batch(_options(server, **{name: row["position"]}))["n"].to_pylist() for name in ("from", "to")
        )
        assert list(range(row["n"] + 1, count)) == behind
        assert list(range(row["n"] + 1)) == before


def test_a_stream_begins_behind_the_transaction_of_a_row(fresh_server: Callable[..., Server], tmp_path: Path) -> None:
    server = fresh_server("mysql9")
    count = _write(server, Random("stream"), 12)
    server.sql("ALTER TABLE f.t DROP COLUMN c0")
    server.sql(f"INSERT INTO f.t (n) VALUES ({count})")
    *_, last = read_batch(_options(server)).to_pylist()
    server.sql(f"INSERT INTO f.t (n) VALUES ({count + 1})")

    stream = DrivenStream(_options(server, name="s", store=f"sqlite:///{tmp_path}/s.db", **{"from": last["position"]}))
    stream.run()

    assert [[count + 1]] == [batch["n"].to_pylist() for batch in stream.batches]


def test_a_stream_says_that_it_cannot_know_a_table_that_was_altered_behind_its_begin(
    fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = fresh_server("mysql9")
    _write(server, Random("stream"), 12)
    first, *_ = read_batch(_options(server)).to_pylist()
    server.sql("ALTER TABLE f.t DROP COLUMN c0")

    stream = DrivenStream(_options(server, name="s", store=f"sqlite:///{tmp_path}/s.db", **{"from": first["position"]}))
    with pytest.raises(UnknownTable, match="its schema at the start is not known") as raised:
        stream.run()
    assert "source.schema" in str(raised.value)
