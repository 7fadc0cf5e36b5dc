"""``historian ddl``: files applied without a server, and migrations rehearsed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from connectors.cli import app
from connectors.cli.terminal.outcome import ExitCode

DUMP = """-- MySQL dump
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
USE `shop`;
DROP TABLE IF EXISTS `t`;
CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, `v` varchar(20) DEFAULT 'it''s; x',
  PRIMARY KEY (`id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
LOCK TABLES `t` WRITE;
INSERT INTO `t` VALUES (1,'a;b');
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ /*!50003 TRIGGER `x` BEFORE INSERT ON `t` FOR EACH ROW BEGIN SET @x = 1; END */;;
DELIMITER ;
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
"""
CONFIG = """name: shop
source: {type: mysql, host: localhost, user: x, tables: ["shop.*"]}
sinks: [{type: delta, path: lake}]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start.sql").write_text(DUMP)
    (tmp_path / "c.yaml").write_text(CONFIG)
    return tmp_path


def _ddl(files: Path, sql: str, *options: str) -> Result:
    (files / "m.sql").write_text(sql)
    return CliRunner().invoke(app, ["ddl", "m.sql", *options])


def test_a_dump_makes_its_tables(files: Path) -> None:
    result = _ddl(files, DUMP, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, list(found), list(found["tables"])) == (0, ["edits", "tables"], ["shop.t"])
    # The second one notes that the database has a trigger.
    assert [edit["kind"] for edit in found["edits"]] == ["create_table", "forget_table"]
    assert [column["type"] for column in found["tables"]["shop.t"]["columns"]] == ["int", "varchar(20)"]
    assert found["tables"]["shop.t"]["primary_key"] == ["id"]


def test_statements_are_applied_to_the_tables_of_the_start(files: Path) -> None:
    sql = "ALTER TABLE t CHANGE v w TEXT, ADD c INT FIRST;\nTRUNCATE t"
    result = _ddl(files, sql, "--schema", "start.sql", "--database", "shop")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[:6] == [
        "m.sql:1 ALTER TABLE t CHANGE v w TEXT, ADD c INT FIRST",
        "  rename in shop.t: v to w",
        "  type in shop.t: w varchar(20) to text",
        "  change shop.t: w text utf8mb4 utf8mb4_0900_ai_ci",
        "  add to shop.t: c int, first",
        "m.sql:2 TRUNCATE t",
    ]
    assert [line.split("│")[1].strip() for line in lines if "│" in line] == ["c", "id", "w"]


def test_each_flavor_and_version_has_its_words(files: Path) -> None:
    def kind(*options: str) -> str:
        (column,) = json.loads(_ddl(files, "CREATE TABLE d.t (a INT)", "--json", *options).stdout)["tables"]["d.t"][
            "columns"
        ]
        return f"{column['type']} {column['default']}"

    assert kind() == "int None"
    assert kind("--flavor", "mariadb") == "int(11) NULL"
    assert kind("--server-version", "5.7.44") == "int(11) None"


def test_a_statement_that_is_not_understood_is_an_error_with_its_line(files: Path) -> None:
    result = _ddl(files, "CREATE TABLE d.t (a INT);\n\nALTER TABLE d.t ADD b NOTHING", "--json")
    assert (result.exit_code, result.stdout) == (ExitCode.SOURCE, "")
    lines = [line.strip() for line in result.stderr.splitlines()]
    assert lines[1] == "where     m.sql:3"
    assert lines[2] == "found     ALTER TABLE d.t ADD b NOTHING"
    assert lines[3] == "cannot be parsed: expected a type, found 'NOTHING' at character 22"
    assert lines[4].startswith("next")


@pytest.mark.parametrize(
    "sql,step", [("CREATE TABLE t (a INT)", "--database"), ("ALTER TABLE d.t ADD b INT", "--schema"), ("'", "close")]
)
def test_errors_say_what_to_do(files: Path, sql: str, step: str) -> None:
    result = _ddl(files, sql)
    assert result.exit_code == ExitCode.SOURCE
    assert step in result.stderr.splitlines()[-1]


def test_statements_that_change_no_table_pass(files: Path) -> None:
    sql = "GRANT ALL ON *.* TO x; FLUSH TABLES; ALTER VIEW d.v AS SELECT 1; DELETE FROM d.t; ANALYZE TABLE d.t"
    assert json.loads(_ddl(files, sql, "--json").stdout) == {"edits": [], "tables": {}}


def test_files_and_options_that_cannot_be_used(files: Path) -> None:
    assert CliRunner().invoke(app, ["ddl", "none.sql"]).exit_code == ExitCode.SOURCE
    assert _ddl(files, "", "--server-version", "new").exit_code == ExitCode.USAGE
    assert _ddl(files, "", "--config", "c.yaml", "--flavor", "mariadb").exit_code == ExitCode.USAGE


def test_a_rehearsal_says_what_each_target_would_do(files: Path) -> None:
    sql = (
        "ALTER TABLE t ADD c INT NOT NULL DEFAULT 5, RENAME COLUMN v TO w;\nALTER TABLE t MODIFY id BIGINT;DROP TABLE t"
    )
    result = _ddl(files, sql, "--schema", "start.sql", "--database", "shop", "--config", "c.yaml", "--json")
    found = json.loads(result.stdout)["sinks"]
    told = [(one["line"], one["target"], one["effects"]) for one in found if one["line"] is not None]
    assert result.exit_code == 0
    assert told == [
        (1, "shop_t_changes", ["v is renamed to w", "c integer is added"]),
        (1, "shop_t", ["v is renamed to w", "c integer is added, '5' in the rows that are there"]),
        (2, "shop_t_changes", ["id widens from integer to long"]),
        (2, "shop_t", ["id widens from integer to long"]),
        *(
            (2, target, [taken_back, "it stays, for a table of that name that may come again"])
            for target, taken_back in (
                ("shop_t_changes", "a -R for each row that the table held"),
                ("shop_t", "all rows go"),
            )
        ),
    ]


def test_a_rehearsal_knows_histories_and_soft_deletes(files: Path) -> None:
    kinds = 'changelog: null, mirror_deletes: soft, history: "{database}_{table}_history", history_names: auto_cdc'
    (files / "c.yaml").write_text(CONFIG.replace("path: lake", f"path: lake, {kinds}"))
    sql = "ALTER TABLE t DROP v, ADD c INT NOT NULL DEFAULT 5;\nTRUNCATE t;"
    result = _ddl(files, sql, "--schema", "start.sql", "--database", "shop", "--config", "c.yaml", "--json")
    told = [(one["kind"], one["line"], one["effects"]) for one in json.loads(result.stdout)["sinks"]]
    own = "__START_AT timestamp, __END_AT timestamp, from_offset long, to_offset long"
    assert told == [
        ("mirror", None, ["is made: id integer, v string, _deleted boolean, _deleted_at timestamp"]),
        ("history", None, [f"is made: {own}, id integer, v string"]),
        ("mirror", 1, ["c integer is added, '5' in the rows that are there", "v goes"]),
        ("history", 1, ["c integer is added, '5' in the rows that are open", "v stays for the rows that have it"]),
        ("mirror", 2, ["all rows are marked as deleted"]),
        ("history", 2, ["all open rows end"]),
    ]


def test_a_rehearsal_names_the_key_by_which_rows_are_told_apart(files: Path) -> None:
    sql = "ALTER TABLE t ADD tenant INT NOT NULL DEFAULT 5 FIRST, DROP PRIMARY KEY, ADD PRIMARY KEY (tenant, id)"
    result = _ddl(files, sql, "--schema", "start.sql", "--database", "shop", "--config", "c.yaml", "--json")
    told = {one["kind"]: one["effects"] for one in json.loads(result.stdout)["sinks"] if one["line"]}
    key = ["rows are told apart by tenant, id"]
    assert told["mirror"] == ["tenant integer is added, '5' in the rows that are there", *key]
    assert told["changelog"] == ["tenant integer is added", *key]


@pytest.mark.parametrize(
    "sql,sink,reason",
    [
        ("ALTER TABLE t MODIFY v INT", "delta", "a column's values are rewritten by the server"),
        ("ALTER TABLE t DROP PRIMARY KEY, MODIFY id INT", "delta", "the primary key of a mirrored table changes"),
        ("ALTER TABLE t ADD u CHAR(36) DEFAULT (UUID())", "delta", "the server computes a column's values"),
        ("ALTER TABLE t DROP PARTITION p", "connector", "DROP PARTITION takes rows away without row events"),
        ("RENAME TABLE t TO other.t", "connector", "renamed to other.t, which is not captured"),
    ],
)
def test_a_rehearsal_says_which_table_stops_and_why(files: Path, sql: str, sink: str, reason: str) -> None:
    behind = f"{sql}; ALTER TABLE t ADD z INT" if "RENAME" not in sql else sql
    result = _ddl(files, behind, "--schema", "start.sql", "--database", "shop", "--config", "c.yaml")
    stops = [line for line in result.stdout.splitlines() if "STOPS" in line]
    assert result.exit_code == ExitCode.FAILED
    assert len(stops) == 1
    assert sink in stops[0]
    assert reason in stops[0]
