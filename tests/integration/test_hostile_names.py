"""Names and values that try to break out: of SQL, of the lake's directory, of a terminal's line, of the configuration."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from replicas.first_copies import copying_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = (
    "../../../breaks out",
    "/tmp/breaks_out",
    "a`; DROP TABLE c.`kept",
    "a'; DROP TABLE c.kept; -- x",
    'a" OR "1"="1',
    "line\nERROR forged by a name",
    "\x1b[2J\x1b]0;title\x07",
    "<script>alert(1)</script>",
    "${env:HOME}$(touch breaks_out)",
    "{database}%s{0}",
    "_delta_log",
    "historian_plans",
    "..",
    "\u202egnp.exe",
)
_VALUE = "\x1b[31m'; DROP TABLE c.kept; -- \n<img src=x onerror=alert(1)>${env:HOME}\u2028\u202e\0"


@pytest.mark.parametrize("kind", ["mysql9", pytest.param("mariadb118", marks=pytest.mark.soak)])
def test_names_and_values_break_out_of_nothing(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    server: Server = request.getfixturevalue(kind)
    server.clear()
    server.sql("CREATE DATABASE c")
    server.sql("CREATE TABLE c.kept (id INT PRIMARY KEY)")
    server.sql("INSERT INTO c.kept VALUES (1)")
    for name in _NAMES:
        quoted = _quoted(name)
        server.sql(f"CREATE TABLE c.{quoted} (id INT PRIMARY KEY, {quoted} VARCHAR(200)) COMMENT {_text(name)}")
        _insert(server, quoted, 1)
    work = tmp_path / "work"
    work.mkdir()
    path = copying_config(server, work)

    assert {} == dict(run(load_config(path), once=True, spark=spark))
    for name in _NAMES:
        quoted = _quoted(name)
        server.sql(f"ALTER TABLE c.{quoted} ADD COLUMN {_quoted(name + 'x')} INT DEFAULT 7")
        _insert(server, quoted, 2)
    assert {} == dict(run(load_config(path), once=True, spark=spark))

    assert {"work"} == {each.name for each in tmp_path.iterdir()}
    assert {"c.yaml", "lake"} == {each.name for each in work.iterdir() if not each.name.startswith("store.db")}
    tables = json.loads(_said("status", str(path), "--json").output)["targets"]
    mirrors = [each for each in tables if each["kind"] == "mirror"]
    assert Counter(f"c.{name}" for name in (*_NAMES, "kept")) == Counter(each["table"] for each in mirrors)
    for each in mirrors:
        place = work / "lake" / each["target"]
        assert (work / "lake").resolve() in place.resolve().parents
        name = each["table"].removeprefix("c.")
        theirs = sorted(map(tuple, server.sql(f"SELECT * FROM c.{_quoted(name)}")))
        assert theirs == sorted(map(tuple, spark.read.format("delta").load(str(place)).collect()))

    for command in (
        ("check", str(path)),
        ("status", str(path)),
        ("schemas", str(path), "list"),
        ("verify", str(path)),
        ("tail", str(path), "--from", "earliest"),
    ):
        said = _said(*command)
        assert 0 == said.exit_code, said.output
        assert [] == [line for line in said.output.splitlines() if line.startswith("ERROR forged") or _controls(line)]


def _said(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments, catch_exceptions=False)


def _controls(line: str) -> set[str]:
    """Characters that a terminal takes as commands, or that turn the direction of what stands around them."""
    return {each for each in line if unicodedata.category(each) == "Cc" and each != "\t"} | {
        each for each in line if unicodedata.bidirectional(each) in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI")
    }


def _insert(server: Server, quoted: str, key: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO c.{quoted.replace('%', '%%')} (id, {quoted.replace('%', '%%')}) VALUES (%s, %s)",
            (key, _VALUE),
        )
        connection.commit()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
