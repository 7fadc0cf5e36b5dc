"""``historian tail`` has no targets: where a statement changed rows without row events it warns, and shows the rows behind."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from connectors.cli import app
from databases.servers import Server


def _tailed(server: Server, directory: Path) -> tuple[int, list[dict[str, object]], str]:
    config = directory / "tail.yaml"
    config.write_text(
        f"name: tail\nsource: {{type: {server.flavor}, host: {server.host}, port: {server.port}, user: {server.user}, "
        f"password: {server.password}, tables: ['u.*'], start: earliest}}\n"
    )
    result = CliRunner().invoke(app, ["tail", str(config), "--format", "ndjson"], catch_exceptions=False)
    return result.exit_code, [json.loads(line)["data"] for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize("build", ["mariadb1011", "mariadb118"])
def test_alter_ignore_to_not_null_does_not_end_a_table(
    build: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(build)
    server.clear()
    server.sql("CREATE DATABASE u")
    server.sql("CREATE TABLE u.t (id INT PRIMARY KEY, v INT)")
    server.sql("INSERT INTO u.t VALUES (1, NULL)")
    server.sql("ALTER IGNORE TABLE u.t MODIFY v INT NOT NULL")
    server.sql("INSERT INTO u.t VALUES (2, 2)")

    code, rows, said = _tailed(server, tmp_path)

    assert [{"id": 1, "v": None}, {"id": 2, "v": 2}] == rows
    assert (code, said.count("warning: rows of u.t changed without row events")) == (0, 1)
    server.sql("DROP DATABASE u")


def test_a_statement_that_is_logged_as_such_does_not_end_its_table(server: Server, tmp_path: Path) -> None:
    server.clear()
    server.sql("CREATE DATABASE u")
    server.sql("CREATE TABLE u.t (id INT PRIMARY KEY, v INT)")
    server.sql("CREATE TABLE u.p (id INT PRIMARY KEY)")
    server.sql("CREATE TABLE u.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES u.p (id) ON DELETE CASCADE)")
    with closing(server.connect(database="u", autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1, 1)")
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        cursor.execute("UPDATE t SET v = 2")
        cursor.execute("SET SESSION binlog_format = ROW")
        cursor.execute("INSERT INTO t VALUES (3, 3)")
        cursor.execute("UPDATE t SET v = 4 WHERE id = 1")

    code, rows, said = _tailed(server, tmp_path)

    assert [{"id": 1, "v": 1}, {"id": 3, "v": 3}, {"id": 1, "v": 2}, {"id": 1, "v": 4}] == rows
    assert (code, "warning: rows of u.t changed without row events" in said) == (0, True)
    server.sql("DROP DATABASE u")
