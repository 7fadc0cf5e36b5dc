"""What a run would stumble on before its first row is found by `check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.check import CheckResult, run_checks
from connectors.config import load_config

BINLOG = Path(__file__).parents[3] / "examples" / "shop" / "binlog"


def _failed(directory: Path, rest: str) -> dict[str, CheckResult]:
    file = directory / "shop.yaml"
    source = f"{{type: binlog-files, flavor: mysql, directory: {BINLOG}}}"
    file.write_text(f"name: shop\nsource: {source}\n{rest}")
    return {result.name: result for result in run_checks(load_config(file)) if result.status == "failed"}


def test_places_that_can_be_made_are_not_told_of(tmp_path: Path) -> None:
    rest = "history: {store: 'sqlite:///new/state/x.db'}\nsinks: [{type: delta, path: new/lake}]"

    assert _failed(tmp_path, rest) == {}
    assert not (tmp_path / "new").exists()


def test_a_store_and_a_lake_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    rest = "history: {store: 'sqlite:///file/x.db'}\nsinks: [{type: console}, {type: delta, path: file/lake}]"

    found = _failed(tmp_path, rest)

    assert {name: (result.found, result.mend) for name, result in found.items()} == {
        "history store": (
            f"{tmp_path}/file is no directory",
            f"correct history.store, or the rights of {tmp_path}/file",
        ),
        "sinks[1]": (f"{tmp_path}/file is no directory", f"correct sinks[1].path, or the rights of {tmp_path}/file"),
    }


@pytest.mark.spark
def test_expressions_that_spark_cannot_parse_are_told_with_their_place(tmp_path: Path) -> None:
    tables = "{'shop.*': {where: 'SELEC (', compute: {x: 'a + 1', y: 'a +'}}}"

    found = _failed(tmp_path, f"sinks: [{{type: delta, path: lake, tables: {tables}}}]")

    assert list(found) == ["sinks[0].tables['shop.*'].compute.y", "sinks[0].tables['shop.*'].where"]
    assert found["sinks[0].tables['shop.*'].where"].found.startswith("SELEC (: [PARSE_SYNTAX_ERROR] Syntax error")
