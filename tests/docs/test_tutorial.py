"""The tutorial runs as it stands: its SQL on a real server, its commands, its code, and what it says they print."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from command_line import HISTORIAN
from connectors.cli import app
from databases.servers import Server

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


class Reader:
    """Someone who does what the page says, in its order."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._names: dict[str, object] = {}
        self.printed = ""
        self.commands: list[str] = []

    def sql(self, block: str) -> None:
        for statement in block.split(";\n"):
            if statement.strip():
                self._server.sql(statement)

    def yaml(self, block: str) -> None:
        block = block.replace("port: 3306", f"port: {self._server.port}")
        (self._directory / "shop.yaml").write_text(block)

    def sh(self, block: str) -> None:
        for line in block.splitlines():
            if line.startswith("historian "):
                words = shlex.split(line)[1:]
                if words[0] == "run":
                    # In a process of its own: a run stops the Spark session that it works in.
                    done = subprocess.run([*HISTORIAN, *words], check=False, capture_output=True, text=True)
                    code, said = done.returncode, done.stderr
                else:
                    shown = CliRunner().invoke(app, words, catch_exceptions=False)
                    code, said = shown.exit_code, shown.output
                assert (line, code) == (line, 0), said
                self.commands.append(line)

    def python(self, block: str) -> None:
        """Runs the code. The tests' Spark started in another directory, so paths are made absolute."""
        block = block.replace('"lake/', f'"{self._directory}/lake/')
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, "docs/tutorial.md", "exec"), self._names)
        self.printed = out.getvalue()

    def text(self, block: str) -> None:
        assert block.strip() == self.printed.strip()


def test_a_reader_who_does_what_the_tutorial_says_sees_what_it_shows(
    mysql9: Server, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_DB_PASSWORD", "secret")
    reader = Reader(mysql9, tmp_path)
    try:
        for kind, block in BLOCKS:
            getattr(reader, kind)(block)
    finally:
        mysql9.sql("DROP DATABASE IF EXISTS shop")
        mysql9.sql("DROP USER IF EXISTS cdc")

    assert reader.commands.count("historian run shop.yaml --once") == 2
    assert {kind for kind, _ in BLOCKS} == {"sh", "sql", "yaml", "python", "text"}
