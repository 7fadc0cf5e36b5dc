"""Types and the user's choices of them, from a server's log into Delta."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from connectors.config import PipelineConfig, load_config
from connectors.pipeline.run import run
from databases.servers import Server
from historian.errors import ConfigError, HistorianError
from replicas.replica import Replica
from replicas.tracked import Tracked
from sinks.delta import faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHOICES = """
types:
  tinyint1: {flag}
  columns:
    "*.t": {{zero_dates: text, time: text}}
    "*.t.big": {{bigint_unsigned: int64}}
    "*.l": {{zero_dates: dead_letter}}
"""
COMMON = ["k INT PRIMARY KEY", "big BIGINT UNSIGNED", "flag TINYINT(1)", "d DATETIME(2)", "ti TIME(1)"]
OWN = {
    "mysql9": ["v VECTOR(2)", "j JSON"],
    "mariadb118": [
        "u UUID",
        "i INET6",
        "c TEXT COMPRESSED",
        "l VARCHAR(300) COMPRESSED CHARACTER SET latin1",
        "j JSON",
        "v VECTOR(2) NOT NULL",
    ],
}
ROWS = {
    "mysql9": ["STRING_TO_VECTOR('[1,2.5]'), '{\"b\": 1.50, \"a\": [1e2]}'", "NULL, 'null'"],
    "mariadb118": [
        "'123e4567-e89b-12d3-a456-426655440000', '::ffff:1.2.3.0', REPEAT('é', 500), REPEAT('ÿ', 200), '{\"b\": 1.50}', Vec_FromText('[1,2]')",
        "NULL, '::', '', '', NULL, Vec_FromText('[0,0]')",
    ],
}


@pytest.fixture(params=["mysql9", "mariadb118"])
def source(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


def configured(tracked: Tracked, flag: str = "boolean") -> PipelineConfig:
    """The connector's configuration with choices in it."""
    path = tracked.config.path
    text = path.read_text().partition("\ntypes:")[0]
    path.write_text(text + CHOICES.format(flag=flag))
    return load_config(path)


def mirrored(spark: SparkSession, config: PipelineConfig, table: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Types by column and rows of a mirror."""
    (sink,) = config.sinks
    frame = spark.read.format("delta").load(str(Path(sink.path) / table))
    return [kind for _, kind in frame.dtypes], frame.orderBy("k").toArrow().to_pylist()


def test_a_table_of_chosen_types_comes_as_the_server_has_it(
    source: Server, database: str, tracked: Tracked, spark: SparkSession
) -> None:
    config = configured(tracked)
    run_sql = [
        f"CREATE TABLE {database}.t ({', '.join([*COMMON, *OWN[source.name]])})",
        *(
            f"INSERT INTO {database}.t VALUES ({k}, {first}, {row})"
            for k, (first, row) in enumerate(
                zip(
                    ["9223372036854775807, 1, '0000-00-00', '-838:59:59'", "0, 0, '2024-02-29 1:2:3.45', '25:0:0.5'"],
                    ROWS[source.name],
                    strict=True,
                )
            )
        ),
        f"CREATE TABLE {database}.o (k INT PRIMARY KEY, big BIGINT UNSIGNED)",
        f"INSERT INTO {database}.o VALUES (1, 18446744073709551615)",
    ]
    with source.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        for statement in run_sql:
            cursor.execute(statement)
        names = [column.split()[0] for column in (*COMMON, *OWN[source.name])]
        reads = [f"HEX({name})" if name == "v" else f"CAST({name} AS CHAR)" for name in names]
        cursor.execute(f"SELECT {', '.join(reads)} FROM {database}.t ORDER BY k")
        expected = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    assert run(config, once=True, spark=spark) == {}

    kinds, rows = mirrored(spark, config, f"{database}_t")
    assert kinds[:5] == ["int", "bigint", "boolean", "string", "string"]
    assert set(kinds[5:]) == {"string", "binary"}
    assert rows == [
        {
            **row,
            "k": int(row["k"]),
            "big": int(row["big"]),
            "flag": row["flag"] == "1",
            "v": None if row["v"] is None else bytes.fromhex(row["v"]),
        }
        for row in expected
    ]
    assert mirrored(spark, config, f"{database}_o")[0] == ["int", "decimal(20,0)"]

    if source.name == "mysql9":
        _changes_and_stops(source, database, tracked, spark)


def _changes_and_stops(source: Server, database: str, tracked: Tracked, spark: SparkSession) -> None:
    """Another choice is refused before anything is written; a value that its form cannot hold stops its table alone."""
    source.sql(f"INSERT INTO {database}.t (k, flag) VALUES (5, 1)")
    with pytest.raises(ConfigError) as caught:
        run(configured(tracked, "int8"), once=True, spark=spark)
    assert f"{database}.t.flag is int8, and was boolean @ $.types.tinyint1" in str(caught.value)

    config = configured(tracked)
    assert run(config, once=True, spark=spark) == {}
    assert [row["flag"] for row in mirrored(spark, config, f"{database}_t")[1]] == [True, False, True]

    source.sql(f"INSERT INTO {database}.t (k, flag) VALUES (6, 2)")
    source.sql(f"INSERT INTO {database}.o VALUES (2, 2)")
    stopped = run(config, once=True, spark=spark)

    assert set(stopped) == {f"{database}.t"}
    assert f"a number that is no boolean ({database}.t.flag, row 0 of its chunk" in stopped[f"{database}.t"]
    assert [row["k"] for row in mirrored(spark, config, f"{database}_t")[1]] == [0, 1, 5]
    assert [row["k"] for row in mirrored(spark, config, f"{database}_o")[1]] == [1, 2]


@pytest.mark.parametrize("place", ["tables_recorded", "letters_recorded", "mirror_committed"])
@pytest.mark.parametrize("source", ["mysql9"], indirect=True)
def test_a_date_that_is_none_is_a_letter_once_and_before_its_row(
    source: Server, database: str, tracked: Tracked, spark: SparkSession, place: str
) -> None:
    def fail(reached: str) -> None:
        if reached == place:
            faults.disarm()
            raise InterruptedError(place)

    config = configured(tracked)
    with source.connect(init_command="SET sql_mode = ''") as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {database}.l (k INT PRIMARY KEY, d DATE, m DATETIME)")
        cursor.execute(f"INSERT INTO {database}.l VALUES (1, '2024-00-15', '2024-02-29 1:2:3'), (2, '2024-01-01', 0)")
        cursor.execute(f"UPDATE {database}.l SET d = '2024-03-01' WHERE k = 1")
    faults.arm(fail)
    try:
        with pytest.raises(HistorianError):
            run(config, once=True, spark=spark)
    finally:
        faults.disarm()

    assert run(config, once=True, spark=spark) == {}

    (sink,) = config.sinks
    letters = (
        spark.read.format("delta").load(f"{sink.path}/historian_dead_letters").orderBy("position", "ordinal", "op")
    )
    told = letters.select("table", "column", "op", "text", "raw", "schema_version").collect()
    assert [(row.column, row.op, row.text) for row in told] == [
        ("d", 0, "2024-00-15"),
        ("m", 0, "0000-00-00 00:00:00"),
        ("d", 2, "2024-00-15"),
    ]
    assert {row.table for row in told} == {f"{database}.l"}
    assert told[0].raw == (2024 * 512 + 15).to_bytes(3, "little")
    assert mirrored(spark, config, f"{database}_l")[1] == [
        {"k": 1, "d": date(2024, 3, 1), "m": datetime.fromisoformat("2024-02-29 01:02:03")},
        {"k": 2, "d": date(2024, 1, 1), "m": None},
    ]


WIDENED = {
    "t": ("TINYINT", "DECIMAL(10,0)", "-128", "127", "9999999999"),
    "s": ("SMALLINT UNSIGNED", "DECIMAL(12,2)", "0", "65535", "-0.01"),
    "m": ("MEDIUMINT", "DOUBLE", "-8388608", "8388607", "0.1"),
    "z": ("INT(5) ZEROFILL", "DECIMAL(22,1)", "0", "42", "-0.1"),
    "i": ("INT", "DOUBLE", "-2147483648", "2147483647", "-1.5e300"),
    "b": ("BIGINT", "DECIMAL(20,0)", "-9223372036854775808", "9223372036854775807", "99999999999999999999"),
    "bu": ("BIGINT UNSIGNED", "DECIMAL(25,5)", "0", "18446744073709551615", "-0.00001"),
    "f": ("FLOAT", "DOUBLE", "0.1", "3.4e38", "0.1"),
    "f2": ("FLOAT(7,4)", "DOUBLE", "0.1", "999.9999", "1e-300"),
    "d": ("DATE", "DATETIME", "'1000-01-01'", "'9999-12-31'", "'2024-02-29 12:34:56'"),
    "n": ("DATE", "DATETIME(6)", "'0000-00-00'", "'2024-00-15'", "'2024-02-29 12:34:56.789012'"),
    "af": ("FLOAT NOT NULL DEFAULT 0.1", "DOUBLE NOT NULL DEFAULT 0.1", "0.3", "16777217", "DEFAULT"),
    "ad": ("DATE DEFAULT '2024-02-29'", "DATETIME DEFAULT '2024-02-29'", "NULL", "'2000-01-01'", "DEFAULT"),
}


def test_a_type_that_holds_every_value_widens_a_lake_by_its_metadata_alone(
    source: Server, database: str, spark: SparkSession, tmp_path: Path
) -> None:
    """In one table between two runs, with nothing else; in another one between rows of one run. A key widens with it."""
    replica = Replica(source, tmp_path / "widened", [database], history="history_{database}_{table}")
    kinds = [", ".join(f"{name} {pair[at]}" for name, pair in WIDENED.items()) for at in (0, 1)]
    rows = [", ".join(pair[at] for pair in WIDENED.values()) for at in (2, 3, 4)]
    added = "ADD af FLOAT NOT NULL DEFAULT 0.1, ADD ad DATE DEFAULT '2024-02-29'"

    def begun(table: str) -> list[str]:
        first, *_ = (text.split(", af")[0] for text in kinds)
        values = ", ".join(pair[2] for name, pair in WIDENED.items() if name not in ("af", "ad"))
        return [
            f"CREATE TABLE {table} (k INT, {first}, PRIMARY KEY (k))",
            f"INSERT INTO {table} VALUES (0, {values}), (9, {values})",
            f"ALTER TABLE {table} {added}",
            *(f"INSERT INTO {table} VALUES ({k}, {rows[k - 1]})" for k in (1, 2)),
        ]

    def widened(table: str) -> str:
        return f"ALTER TABLE {table} MODIFY k DECIMAL(12,2), MODIFY " + ", MODIFY ".join(kinds[1].split(", "))

    def changed(table: str) -> list[str]:
        return [
            f"INSERT INTO {table} VALUES (3.5, {rows[2]})",
            f"UPDATE {table} SET t = 5 WHERE k = 1",
            f"DELETE FROM {table} WHERE k = 9",
        ]

    targets = [f"{kind}{database}_t" for kind in ("", "changes_", "history_")]
    for statements in (begun("t"), [widened("t"), *begun("u"), widened("u"), *changed("u")], changed("t")):
        with source.connect(database=database, init_command="SET sql_mode = ''") as connection:
            for statement in statements:
                connection.cursor().execute(statement)
        assert {} == replica.run(spark)
        if statements[0].startswith("ALTER"):
            actions = [_newest_actions(replica.lake / name) for name in targets]
            assert [found & {"metaData", "add", "remove"} for found in actions] == [{"metaData"}] * 3
    for table in ("t", "u"):
        held = source.sql(f"SELECT * FROM {database}.{table} ORDER BY k")
        expected = [[None if str(value).startswith(("0000", "2024-00")) else value for value in row] for row in held]
        mirror = spark.read.format("delta").load(str(replica.lake / f"{database}_{table}"))
        history = spark.read.format("delta").load(str(replica.lake / f"history_{database}_{table}"))
        opened = history.where("to_offset IS NULL").select(mirror.columns)
        for found in (mirror, opened):
            assert [list(row.values()) for row in found.orderBy("k").toArrow().to_pylist()] == expected
        log = spark.read.format("delta").load(str(replica.lake / f"changes_{database}_{table}"))
        came = [(row.k, row.f) for row in log.where("op = 0").orderBy("offset").collect()]
        assert [(0, 0.10000000149011612), (Decimal("3.5"), 0.1)] == [came[0], came[-1]]


def _newest_actions(table: Path) -> set[str]:
    """What the newest commit of a Delta table says."""
    newest = max((table / "_delta_log").glob("*.json"))
    return {next(iter(json.loads(line))) for line in newest.read_text().splitlines()}
