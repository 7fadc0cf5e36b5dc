"""Each kind of value as ``historian tail`` writes it in ndjson, against what the server itself prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from connectors.cli import app
from databases.servers import Server

# Column, type, and values as SQL. One row takes the first value of each, the next one the second, and so on.
COLUMNS = {
    "ti": ("TINYINT", ("-128", "127")),
    "tu": ("TINYINT UNSIGNED", ("255", "0")),
    "su": ("SMALLINT UNSIGNED", ("65535",)),
    "mi": ("MEDIUMINT", ("-8388608", "8388607")),
    "mu": ("MEDIUMINT UNSIGNED", ("16777215",)),
    "iu": ("INT UNSIGNED", ("4294967295",)),
    "bi": ("BIGINT", ("-9223372036854775808", "9223372036854775807", "9007199254740993")),
    "bu": ("BIGINT UNSIGNED", ("18446744073709551615", "9223372036854775808")),
    "y": ("YEAR", ("1901", "2155", "0")),
    "b1": ("BIT(1)", ("b'1'", "b'0'")),
    "b17": ("BIT(17)", ("b'10000000000000001'",)),
    "b64": ("BIT(64)", ("18446744073709551615", "1")),
    "f": ("FLOAT", ("0.1", "-3.402823e38", "1.17549435e-38", "16777216")),
    "d": ("DOUBLE", ("0.1", "1.7976931348623157e308", "5e-324", "-0.30000000000000004")),
    "n": ("DECIMAL(65,30)", ("-12345678901234567890123456789012345.000000000000000000000000000001", "0")),
    "nu": ("DECIMAL(10,0) UNSIGNED", ("9999999999",)),
    "da": ("DATE", ("'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-00-00'")),
    "dt": ("DATETIME", ("'9999-12-31 23:59:59'", "'0000-00-00 00:00:00'")),
    "dt6": ("DATETIME(6)", ("'1000-01-01 00:00:00.000001'", "'2024-02-29 12:30:00.5'")),
    "ts": ("TIMESTAMP NULL", ("'1970-01-01 02:00:01'", "'2038-01-19 05:14:07'", "'0000-00-00 00:00:00'")),
    "ts3": ("TIMESTAMP(3) NULL", ("'2024-03-31 03:30:00.25'",)),
    "t": ("TIME", ("'-838:59:59'", "'00:00:00'")),
    "t6": ("TIME(6)", ("'-00:00:00.000001'", "'838:59:58.999999'")),
    "e": ("ENUM('ä','it''s','€')", ("'ä'", "'it''s'", "3", "'none of them'")),
    "el": ("ENUM('ä','b') CHARACTER SET latin1", ("'ä'",)),
    "s": ("SET('x','ü','z')", ("'x,z'", "''", "'ü'")),
    "c": ("CHAR(10)", ("'padded  '", "''", "'😀\\\\n'")),
    "cl": ("CHAR(10) CHARACTER SET latin1", ("'ÿ€'",)),
    "v": ("VARCHAR(300)", ("'kept  '", "'\"\\\\\\\\'", "'null'")),
    "tx": ("TEXT CHARACTER SET latin1", ("'Größe'", "''")),
    "bn": ("BINARY(4)", ("0x61000000", "0x00", "0xFFFFFFFF", "0x612020")),
    "vb": ("VARBINARY(300)", ("0x00FF", "''", "0x6100")),
    "bl": ("BLOB", ("0xDEADBEEF", "''")),
    "g": ("GEOMETRY", ("ST_GeomFromText('POINT(1.5 -2)')", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)")),
    "j": ("JSON", ('\'{"b": [1, 2.50, null, true], "a": "\\\\u00e4\\\\""}\'', "'[]'", "'18446744073709551615'")),
}
INTEGERS = {"ti", "tu", "su", "mi", "mu", "iu", "bi", "bu", "y", "b1", "b17", "b64"}
BYTES = {"bn", "vb", "bl", "g"}
ROWS = max(len(values) for _, values in COLUMNS.values())


def _asked(column: str) -> str:
    """How the server is asked for the text of a column."""
    if column in BYTES:
        return f"TO_BASE64({column})"
    return (
        f"CAST({column}+0 AS CHAR)"
        if column in INTEGERS
        else f"{column}+0e0"
        if column in "fd"
        else f"CAST({column} AS CHAR)"
    )


def _shortest(number: type[np.floating]) -> Callable[[float], str]:
    return lambda value: repr(float(str(number(value))))


def test_every_value_is_written_as_the_server_prints_it(server: Server, tmp_path: Path) -> None:
    server.sql("DROP DATABASE IF EXISTS values_it")
    new = server.flavor == "mysql" and server.version.startswith("9")
    file, offset = server.sql("SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")[0][:2]
    server.sql("CREATE DATABASE values_it CHARACTER SET utf8mb4")
    definitions = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = '', time_zone = '+02:00'")
        cursor.execute(f"CREATE TABLE values_it.t (id INT PRIMARY KEY, {definitions})")
        for number in range(ROWS + 1):
            row = [values[number] if number < len(values) else "NULL" for _, values in COLUMNS.values()]
            cursor.execute(f"INSERT INTO values_it.t VALUES ({number}, {', '.join(row)})")
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(map(_asked, COLUMNS))} FROM values_it.t ORDER BY id")
        printed = [dict(zip(COLUMNS, row, strict=True)) for row in cursor.fetchall()]
    config = tmp_path / "values.yaml"
    config.write_text(
        f"name: values\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user},"
        f" password: {server.password}, tables: ['values_it.*'], start: '{file}:{offset}'}}\n"
    )
    result = CliRunner().invoke(app, ["tail", str(config), "--format", "ndjson"])
    server.sql("DROP DATABASE values_it")

    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    written = [json.loads(line, parse_int=str, parse_float=str)["data"] for line in lines]
    kinds = {name: {type(json.loads(line)["data"][name]).__name__ for line in lines} for name in COLUMNS}
    floats = {"f": _shortest(np.float32), "d": _shortest(np.float64)}
    expected = [
        {name: floats[name](value) if name in floats and value is not None else value for name, value in row.items()}
        for row in printed
    ]
    assert [{name: row[name] for name in COLUMNS} for row in written] == expected
    numbers = {name: "int" if name in INTEGERS else "float" if name in floats else "str" for name in COLUMNS}
    assert {name: kinds[name] - {"NoneType"} for name in COLUMNS} == {name: {kind} for name, kind in numbers.items()}
    assert len(written) == ROWS + 1


def test_values_that_only_old_servers_keep_are_written_as_they_are(mysql57: Server, tmp_path: Path) -> None:
    """MySQL 5.7 rounds a time of its clock up to 1,000,000 microseconds, and keeps an infinite FLOAT."""
    mysql57.sql("DROP DATABASE IF EXISTS values_it")
    file, offset = mysql57.sql("SHOW MASTER STATUS")[0][:2]
    mysql57.sql("CREATE DATABASE values_it")
    times = ", ".join(f"d{digits} DATETIME({digits})" for digits in range(1, 7))
    with mysql57.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00', timestamp = 1.9999999")
        cursor.execute(f"CREATE TABLE values_it.t ({times}, ts TIMESTAMP(6) NULL, t TIME(6), f FLOAT(255,0) UNSIGNED)")
        clock = ", ".join(f"NOW({digits})" for digits in range(1, 7))
        cursor.execute(f"INSERT INTO values_it.t VALUES ({clock}, NOW(6), CURTIME(6), 1e308)")
        names = [*(f"d{digits}" for digits in range(1, 7)), "ts", "t"]
        cursor.execute(f"SELECT {', '.join(f'CAST({name} AS CHAR)' for name in names)} FROM values_it.t")
        (printed,) = cursor.fetchall()
    config = tmp_path / "values.yaml"
    config.write_text(
        f"name: values\nsource: {{type: mysql, host: {mysql57.host}, port: {mysql57.port}, user: {mysql57.user},"
        f" password: {mysql57.password}, tables: ['values_it.*'], start: '{file}:{offset}'}}\n"
    )
    result = CliRunner().invoke(app, ["tail", str(config), "--format", "ndjson"])
    mysql57.sql("DROP DATABASE values_it")

    assert (result.exit_code, result.stderr) == (0, "")
    written = json.loads(result.stdout)["data"]
    assert dict(zip(names, printed, strict=True)) == {name: written[name] for name in names}
    assert ["1970-01-01 00:00:01.1000000", "00:00:01.1000000", "Infinity"] == [written[n] for n in ("d6", "t", "f")]
