"""Values that cannot be represented, from a server's log into Delta: by each policy, and brought in later."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import sinks
from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from historian.values.policies import REASONS
from replicas.tracked import Tracked, unlogged

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("few_rows")

POLICIES = """
types:
  bigint_unsigned: int64
  tinyint1: boolean
  json: variant
  columns:
    "*.nulled": {{{nulled}}}
    "*.lettered": {{{lettered}, {more}}}
    "*.of_*": {{zero_dates: fail}}
"""
LONG = "JSON_OBJECT('a', REPEAT('x', 17000000))"
COLUMNS = {
    "big": ("BIGINT UNSIGNED", "int64_overflow", "9223372036854775808", "9223372036854775807"),
    "flag": ("TINYINT(1)", "invalid_boolean", "2", "1"),
    "kind": ("ENUM('a','b')", "invalid_member", "'c'", "'b'"),
    "many": ("SET('a','b')", "invalid_member", "'a,c'", "'a,b'"),
    "word": ("VARCHAR(9) CHARACTER SET hebrew", "invalid_text", "_hebrew X'61A1'", "'a'"),
    "day": ("DATE", "zero_dates", "'2024-00-15'", "'2024-02-29'"),
    "doc": ("JSON", "invalid_variant", LONG, "'[1]'"),
}
"""Type, reason, a value that cannot be represented, and one that can."""
LETTERS = {
    "big": (str(2**63), "0000000000000080"),
    "flag": ("2", "02"),
    "kind": ("3", "03"),
    "many": ("5", "05"),
    "word": ("a\\xa1", "61a1"),
    "day": ("2024-00-15", (2024 * 512 + 15).to_bytes(3, "little").hex()),
}


@pytest.fixture(params=["mysql9", pytest.param("mariadb118", marks=pytest.mark.soak)])
def source(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def configured(tracked: Tracked, more: str = "") -> Path:
    """The configuration's file; *more* is said of the table with dead letters."""
    path = tracked.config.path
    text = path.read_text().partition("\ntypes:")[0]
    reasons = [reason for reason in REASONS if f"{reason}:" not in more]
    nulled, lettered = (
        ", ".join(f"{each}: {policy}" for each in reasons) for policy in ("null_and_count", "dead_letter")
    )
    path.write_text(text + POLICIES.format(nulled=nulled, lettered=lettered, more=more))
    return path


def written(source: Server, database: str, names: list[str]) -> None:
    """A good row, and behind it one with nothing but values that cannot be represented; or one value in a table of its own."""
    tables = {"nulled": names, "lettered": names, **{f"of_{name}": [name] for name in names}}
    lax = "SET SESSION sql_mode = ''"
    longer = [name for name in ("kind", "many") if name in names]
    with source.connect(init_command=lax) as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        for table, columns in tables.items():
            types = ", ".join(f"{name} {COLUMNS[name][0]}" for name in columns)
            cursor.execute(f"CREATE TABLE {table} (k INT PRIMARY KEY, {types})")
            cursor.execute(f"INSERT INTO {table} VALUES (1, {', '.join(COLUMNS[name][3] for name in columns)})")
    altered = [(table, name) for table, columns in tables.items() for name in columns if name in longer]
    unlogged(source, lax, *(_modify(database, *each, "'a','b','c'") for each in altered))
    with source.connect(init_command=lax) as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        for table, columns in tables.items():
            cursor.execute(f"INSERT INTO {table} VALUES (2, {', '.join(COLUMNS[name][2] for name in columns)})")
    unlogged(
        source,
        lax,
        *(f"UPDATE {database}.{table} SET {name} = 1 WHERE k = 2" for table, name in altered),
        *(_modify(database, *each, "'a','b'") for each in altered),
    )


def _modify(database: str, table: str, name: str, labels: str) -> str:
    return f"ALTER TABLE {database}.{table} MODIFY {name} {COLUMNS[name][0].partition('(')[0]}({labels})"


def historian(path: Path, *words: str) -> str:
    result = CliRunner().invoke(app, [words[0], str(path), *words[1:]])
    assert "Traceback" not in result.output
    return result.stdout


def test_what_cannot_be_represented_goes_by_policy_and_comes_in_later(
    source: Server, database: str, tracked: Tracked, spark: SparkSession
) -> None:
    names = [name for name in COLUMNS if name != "doc" or source.flavor == "mysql"]
    path = configured(tracked)
    written(source, database, names)

    stopped = run(load_config(path), once=True, spark=spark)

    assert sorted(stopped) == sorted(f"{database}.of_{name}" for name in names)
    assert all(f"{database}.of_{name}.{name}" in stopped[f"{database}.of_{name}"] for name in names)
    good = {"big": 2**63 - 1, "flag": True, "kind": "b", "many": "a,b", "word": "a", "day": "2024-02-29", "doc": "[1]"}
    expected = [{"k": 1, **{name: good[name] for name in names}}, {"k": 2, **dict.fromkeys(names)}]
    for table in ("nulled", "lettered"):
        assert rows_of(spark, tracked, f"{database}_{table}", "to_json(doc)") == expected
    nulled = json.loads(historian(path, "status", "--json", "--no-targets"))["nulled"]
    tables = [f"{database}.{table}" for table in ("lettered", "nulled")]
    assert sorted(nulled, key=str) == sorted(
        ({"table": table, "column": name, "values": 1} for table in tables for name in names), key=str
    )
    letters = letters_of(spark, tracked)
    assert {row.table for row in letters} == {f"{database}.lettered"}
    assert {row.column: row.reason for row in letters} == {name: REASONS[COLUMNS[name][1]] for name in names}
    assert {row.column: (row.text, row.raw.hex()) for row in letters if row.column != "doc"} == LETTERS
    assert [(len(row.text), len(row.raw) > 17_000_000) for row in letters if row.column == "doc"] == (
        [(17_000_009, True)] if "doc" in names else []
    )

    path = configured(tracked, "bigint_unsigned: decimal, tinyint1: int8, json: text, zero_dates: text")
    said = historian(path, "replay-dead-letters")
    for name in names:
        has_form = COLUMNS[name][1] not in ("invalid_member", "invalid_text")
        assert f"lettered.{name}: 1 dead letters" in said
        assert f"({REASONS[COLUMNS[name][1]]}): {'has a form now' if has_form else 'no form'}" in said
    assert "nulled" not in said
    assert set(run(load_config(path), once=True, spark=spark)) == set(stopped)
    held = {"big": Decimal(2**63), "flag": 2, "day": "2024-00-15", "doc": json.dumps({"a": "x" * 17_000_000})}
    mirror = sinks.consistent(spark, lake(tracked)).mirror[f"{database}.lettered"].orderBy("k").collect()
    assert [row.asDict() for row in mirror][1] == {"k": 2, **{name: held.get(name) for name in names}}
    assert (mirror[0].big, mirror[0].flag, mirror[0].day) == (2**63 - 1, 1, "2024-02-29")


def rows_of(spark: SparkSession, tracked: Tracked, directory: str, doc: str) -> list[dict[str, Any]]:
    frame = spark.read.format("delta").load(f"{lake(tracked)}/{directory}")
    shown = {"doc": f"{doc} AS doc", "day": "CAST(day AS STRING) AS day"}
    return [
        row.asDict()
        for row in frame.selectExpr(*(shown.get(name, name) for name in frame.columns)).orderBy("k").collect()
    ]


def letters_of(spark: SparkSession, tracked: Tracked) -> list[Any]:
    return list(spark.read.format("delta").load(f"{lake(tracked)}/historian_dead_letters").collect())


def lake(tracked: Tracked) -> str:
    (sink,) = tracked.config.sinks
    return sink.path
