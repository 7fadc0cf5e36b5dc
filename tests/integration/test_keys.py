"""Keys of every type from real servers, from the beginning or by an ALTER TABLE: the mirror has the rows of the table, each once.

Or, without a key, as often as the table has it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakes.held_rows import held_table, spark_table
from replicas.replica import Replica
from sinks.delta.log.kernel import Kernel
from sinks.delta.rewrite import held_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from databases.servers import Server

pytestmark = pytest.mark.usefixtures("few_rows")

_CASELESS = "varchar(20) character set utf8mb4 collate utf8mb4_general_ci"
KEYS = {
    "tinyint": "-1; 0; 1; 2",
    "bigint unsigned": "0; 9223372036854775808; 18446744073709551614; 18446744073709551615",
    "decimal(30,5)": "-0.00001; 0; 0.00001; 1234567890123456789012345.00001",
    "double": "-0.5; 0; 1e300; 0.1",
    _CASELESS: "'a'; 'b'; 'C'; 'D'",
    "varchar(20) character set utf8mb4 collate utf8mb4_bin": "'a'; 'A'; 'b'; '😀'",
    "varchar(300) character set latin1": f"'{'x' * 40}a'; '{'x' * 40}b'; '{'x' * 40}c'; '{'x' * 32}'",
    "binary(3)": "x'610000'; x'410000'; x'610062'; x'000000'",
    "varbinary(20)": r"'a'; 'a '; 'a\0'; x'ff'",
    "date": "'1000-01-01'; '1969-12-31'; '2024-02-29'; '9999-12-31'",
    "datetime(6)": "'2024-01-01 0:0:0.000001'; '2024-01-01 0:0:0.000999'; '2024-01-01'; '1969-01-01 0:0:0.5'",
    "timestamp(6)": "'2024-01-01 0:0:1.000001'; '2024-01-01 0:0:1.000002'; '1980-01-01'; '2030-01-01'",
    "time(3)": "'-01:00:00.001'; '-01:00:00.002'; '00:00:00'; '100:00:00'",
    "year": "1901; 1999; 2024; 2155",
    "bit(9)": "b'0'; b'1'; b'100000000'; b'111111111'",
    "enum('z','a','m','b')": "'z'; 'a'; 'm'; 'b'",
}
CHANGES = (
    "UPDATE keyed.{t} SET v = v + 1, label = '1 again' WHERE {k1}",
    "UPDATE keyed.{t} SET {set4}, label = '2 is 4' WHERE {k2}",
    "DELETE FROM keyed.{t} WHERE {k3}",
    "INSERT INTO keyed.{t} VALUES ({v3}, 30, '3 again')",
    "DELETE FROM keyed.{t} WHERE {k3}",
    "INSERT INTO keyed.{t} VALUES ({v3}, 31, '3 at last'), ({v2}, 20, '2 anew')",
    "DELETE FROM keyed.{t} WHERE {k2}",
)


TENANTS = (
    "ALTER TABLE keyed.tenants ADD tenant INT NOT NULL DEFAULT 7 FIRST, DROP PRIMARY KEY, ADD PRIMARY KEY (tenant, k)",
    "INSERT INTO keyed.tenants VALUES (8, 1, 10, 'another''s'), (8, 2, 20, 'another''s')",
    "UPDATE keyed.tenants SET v = v + 100 WHERE tenant = 7 AND k = 1",
    "UPDATE keyed.tenants SET tenant = 9 WHERE tenant = 8 AND k = 1",
    "DELETE FROM keyed.tenants WHERE tenant = 7 AND k = 3",
    "ALTER TABLE keyed.tenants DROP PRIMARY KEY, ADD PRIMARY KEY (v), DROP COLUMN tenant",
    "UPDATE keyed.tenants SET label = 'last' WHERE v = 20",
    "UPDATE keyed.tenants SET k = 5 WHERE v = 10",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, small_bytes, feed",
    [
        ("mysql9", held_rows.SMALL_BYTES, "false"),
        ("mariadb1011", held_rows.SMALL_BYTES, "false"),
        pytest.param("mysql9", 0, "false", marks=pytest.mark.soak),
        pytest.param("mysql9", 0, "true", marks=pytest.mark.soak),
        pytest.param("mariadb1011", 0, "true", marks=pytest.mark.soak),
    ],
    ids=["mysql9", "mariadb1011", "mysql9, on executors", "mysql9, merged by Spark", "mariadb1011, merged by Spark"],
)
def test_keys_of_every_type_find_their_rows(
    name: str,
    small_bytes: int,
    feed: str,
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server: Server = request.getfixturevalue(name)
    if server.directory is not None:
        server.clear()  # a log without the tables of the case before
    monkeypatch.setattr(held_rows, "SMALL_BYTES", small_bytes)
    replica = Replica(server, tmp_path, ["keyed"])
    text = replica.path.read_text().replace(
        "    history: null\n",
        "    history: null\n    tables:\n"
        f"      keyed.*: {{table_properties: {{delta.enableChangeDataFeed: '{feed}'}}}}\n"
        "      keyed.tenants: {history: '{database}_{table}_history'}\n"
        "      keyed.nullable: {key: [a, k]}\n      keyed.bag: {keyless: rows, table_properties: {}}\n      keyed.together: {cluster: true}\n",
    )
    replica.path.write_text(text)
    server.sql("DROP DATABASE IF EXISTS keyed")
    server.sql("CREATE DATABASE keyed")
    try:
        changes = []
        for number, (kind, literals) in enumerate(KEYS.items()):
            values = literals.split("; ")
            later = number % 2 == (name == "mysql9")
            key = "v" if later else "k"
            server.sql(f"CREATE TABLE keyed.t{number} (k {kind}, v INT, label VARCHAR(20), PRIMARY KEY ({key}))")
            changes += [f"ALTER TABLE keyed.t{number} DROP PRIMARY KEY, ADD PRIMARY KEY (k)"] * later
            changes += _begun(server, f"t{number}", [f"k = {value}" for value in values], values)
        both = [f"k = {n} AND a = 'x'" for n in (1, 2, 3, 4)]
        server.sql("CREATE TABLE keyed.together (k INT, a VARCHAR(9), v INT, label VARCHAR(20), PRIMARY KEY (k, a))")
        changes += _begun(server, "together", both, [f"{n}, 'x'" for n in (1, 2, 3, 4)])
        for table in ("nullable", "bag"):
            unique = "UNIQUE (a, k)" if table == "nullable" else "KEY (a)"
            server.sql(f"CREATE TABLE keyed.{table} (k INT, a VARCHAR(9), v INT, label VARCHAR(20), {unique})")
            keys = ["k IS NULL AND a = 'x'", "k = 1 AND a IS NULL", "k = 2 AND a = 'x'", "k = 3 AND a = 'X '"]
            changes += _begun(server, table, keys, ["NULL, 'x'", "1, NULL", "2, 'x'", "3, 'X '"])
        server.sql("CREATE TABLE keyed.tenants (k INT PRIMARY KEY, v INT, label VARCHAR(20))")
        server.sql("INSERT INTO keyed.tenants VALUES (1, 0, '1'), (2, 1, '2'), (3, 2, '3')")
        changes += TENANTS
        server.sql("INSERT INTO keyed.bag SELECT * FROM keyed.bag")
        assert {} == replica.run(spark)
        for statement in changes:
            server.sql(statement)
        server.sql("DELETE FROM keyed.bag WHERE v = 1 LIMIT 1")
        # For the server the key is the same.
        server.sql(f"UPDATE keyed.t{list(KEYS).index(_CASELESS)} SET k = 'A ', label = 'upper' WHERE k = 'a'")
        assert {} == replica.run(spark)

        kernel = Kernel(spark, "tests")
        for table in (*(f"t{number}" for number in range(len(KEYS))), "together", "nullable", "bag", "tenants"):
            path = f"{replica.lake}/keyed_{table}"
            rows = spark_table(spark, path) if table in ("together", "bag") else held_table(kernel, path)
            found = zip(*rows.select(["v", "label"]).to_pydict().values(), strict=True)
            assert Counter(found) == Counter(server.sql(f"SELECT v, label FROM keyed.{table}")), table
        history = held_table(kernel, f"{replica.lake}/keyed_tenants_history").to_pylist()
        still = [(row["k"], row["v"], row["label"]) for row in history if row["to_offset"] is None]
        assert sorted(still) == sorted(server.sql("SELECT k, v, label FROM keyed.tenants"))
        assert 3 + 2 + 1 + 1 + 2 == len(history)
    finally:
        server.sql("DROP DATABASE keyed")


def _begun(server: Server, table: str, keys: list[str], values: list[str]) -> list[str]:
    """Fills a table; the statements that change it."""
    for number in range(3):
        server.sql(f"INSERT INTO keyed.{table} VALUES ({values[number]}, {number}, '{number + 1}')")
    known = {f"k{n}": key for n, key in enumerate(keys, 1)} | {f"v{n}": value for n, value in enumerate(values, 1)}
    columns = ("k", "a") if ", " in values[3] else ("k",)
    assigned = ", ".join(f"{c} = {v}" for c, v in zip(columns, values[3].split(", "), strict=True))
    return [statement.format(t=table, set4=assigned, **known) for statement in CHANGES]
