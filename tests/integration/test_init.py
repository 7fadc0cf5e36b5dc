"""``historian init`` writes a configuration from a live server, which runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from command_line import HISTORIAN
from connectors.cli import app
from connectors.config import load_config
from connectors.pipeline.run import run
from databases.servers import Server
from monitoring.screens import on_a_screen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("name", ["mysql57", "mysql9", "mariadb118"])
def test_the_file_is_checked_and_runs_as_it_is(
    name: str, request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(name)
    server.clear()
    for statement in (
        "CREATE DATABASE shop",
        "CREATE DATABASE `od'd ${b}`",
        "CREATE DATABASE other",
        "CREATE TABLE shop.orders (day INT, id INT, v VARCHAR(20), PRIMARY KEY (day, id))",
        "CREATE TABLE shop.`no #key` (v INT)",
        "CREATE TABLE shop.old (id INT PRIMARY KEY) ENGINE=MyISAM",
        "CREATE TABLE `od'd ${b}`.t (id INT PRIMARY KEY)",
        "CREATE TABLE other.t (id INT PRIMARY KEY)",
        "INSERT INTO shop.orders VALUES (1, 1, 'a'), (1, 2, 'b')",
        "INSERT INTO `od'd ${b}`.t VALUES (7)",
    ):
        server.sql(statement)
    monkeypatch.setenv("SHOP_SECRET", server.password)
    file = tmp_path / "shop.yaml"

    told = _init(server, file, "--database", "shop", "--database", "od'd ${b}")

    assert told.exit_code == 0, told.output
    assert "4 tables" in told.output
    text = file.read_text()
    assert f"type: {server.flavor}" in text
    assert "orders: about 2 rows" in text
    assert "key day, id" in text
    assert "no #key: about 0 rows, " in text
    assert "no primary key: a changelog only" in text
    assert "MyISAM: rows that change while they are copied are not exact" in text
    assert "warning: primary keys" in text
    assert [line.split(": ")[1] for line in text.splitlines() if "password" in line] == ["${env:SHOP_SECRET}"]
    assert {} == run(load_config(file), once=True, spark=spark)
    assert 2 == spark.read.format("delta").load(f"{tmp_path}/lake/shop_orders").count()
    held = [path.name for path in (tmp_path / "lake").iterdir() if (path / "_delta_log").exists()]
    assert not [table for table in held if table.startswith("other")]

    again = _init(server, file)
    assert (again.exit_code, "there is such a file already" in again.output) == (2, True)


def test_what_keeps_it_from_being_written_is_told(
    mysql9: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql9.clear()
    monkeypatch.setenv("SHOP_SECRET", mysql9.password)
    file = tmp_path / "shop.yaml"
    for arguments, reason in (
        ((), "the user sees no tables to replicate"),
        (("--database", "none"), "database none"),
        (("--password-env", "NOT_SET"), "expected the environment variable NOT_SET"),
        (("--user", "nobody"), "the server refuses the user or its password"),
    ):
        told = _init(mysql9, file, *arguments)
        assert (told.exit_code not in (0, 70), reason in " ".join(told.output.split())) == (True, True), told.output
        assert not file.exists()
    odd = _init(mysql9, tmp_path / "a b.yaml")
    assert (odd.exit_code, "NAME.yaml" in odd.output) == (2, True)


def test_whoever_types_the_password_is_told_where_a_run_looks_for_it(mysql9: Server, tmp_path: Path) -> None:
    mysql9.clear()
    mysql9.sql("CREATE DATABASE shop")
    mysql9.sql("CREATE TABLE shop.t (id INT PRIMARY KEY)")
    file = tmp_path / "shop.yaml"
    command = [*HISTORIAN, "init", f"{mysql9.host}:{mysql9.port}", str(file), "--user", mysql9.user]

    with on_a_screen([*command, "--password-env", "TYPED"], columns=300) as screen:
        screen.wait(lambda text: "Password of" in text)
        screen.type(f"{mysql9.password}\n".encode())
        assert 0 == screen.end(), screen.text()
        told = screen.text()

    assert "Next: put the password into the environment variable TYPED, then `historian run" in told
    assert "password: ${env:TYPED}" in file.read_text()


def _init(server: Server, file: Path, *arguments: str) -> Result:
    command = [
        "init",
        f"{server.host}:{server.port}",
        str(file),
        "--user",
        server.user,
        "--password-env",
        "SHOP_SECRET",
    ]
    return CliRunner().invoke(app, [*command, *arguments])
