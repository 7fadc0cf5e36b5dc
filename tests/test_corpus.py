"""What is taken from scripts of ``mysqltest``: the statements, as the server gets them, and no more than a session's own DDL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.mysqltest import statements_of
from corpus.run import LOCK_WAIT, Corpus, is_wanted
from corpus.suites import SUITES, Suite
from databases.servers import Server
from models import followed_ddl


def test_statements_end_at_the_delimiter_that_holds() -> None:
    script = """
# a comment; with a semicolon
--disable_warnings
CREATE TABLE t1 (a INT, b CHAR(3) DEFAULT ';');
INSERT INTO t1 VALUES (1, 'it''s;'), (2, "\\";");  SELECT 1;
delimiter |;
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END|
--delimiter ;
DROP TABLE t1;
"""

    assert statements_of(script) == [
        "CREATE TABLE t1 (a INT, b CHAR(3) DEFAULT ';')",
        """INSERT INTO t1 VALUES (1, 'it''s;'), (2, "\\";")""",
        "SELECT 1",
        "CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END",
        "DROP TABLE t1",
    ]


def test_variables_are_filled_in_where_the_script_says_them() -> None:
    script = """
let $type = INT;
--let $table= t1
let $known_to_servers = `SELECT 1`;
eval CREATE TABLE $table (a $type) ENGINE=$ENGINE;
--eval DROP TABLE $table
eval CREATE TABLE $known_to_servers (a INT);
SELECT '$type';
"""

    assert statements_of(script, variables={"ENGINE": "InnoDB"}) == [
        "CREATE TABLE t1 (a INT) ENGINE=InnoDB",
        "DROP TABLE t1",
        "SELECT '$type'",
    ]


def test_blocks_are_taken_once_and_written_files_left_out() -> None:
    script = """
--error ER_TABLE_EXISTS_ERROR
while ($i)
{
  CREATE TABLE t1 (a INT);
  if ($x) {
    DROP TABLE t1;
  }
}
--write_file $MYSQL_TMP_DIR/x.inc END_OF_FILE
CREATE TABLE written (a INT);
END_OF_FILE
perl;
print "CREATE TABLE printed;";
EOF
DROP TABLE t2;
"""

    assert statements_of(script) == ["CREATE TABLE t1 (a INT)", "DROP TABLE t1", "DROP TABLE t2"]


def test_included_scripts_see_and_set_variables() -> None:
    files = {"include/make.inc": "let $made = made;\neval CREATE TABLE $made ($column INT);"}
    script = "let $column = a;\n--source include/make.inc\neval DROP TABLE $made;\n--source include/none.inc\n"

    assert statements_of(script, files.get) == ["CREATE TABLE made (a INT)", "DROP TABLE made"]


@pytest.mark.parametrize(
    "sql,wanted",
    [
        ("CREATE TABLE t (a INT)", True),
        ("alter table t add b int", True),
        ("SET sql_mode = ''", True),
        ("SET NAMES latin1", True),
        ("INSERT INTO t VALUES (1)", True),
        ("SELECT 1", False),
        ("SET GLOBAL read_only = 1", False),
        ("SET sql_log_bin = 0", False),
        ("SET default_storage_engine = InnoDB", True),
        ("SET @@session.default_storage_engine = 'MERGE'", False),
        ("SET SESSION binlog_format = STATEMENT", False),
        ("CREATE USER u", False),
        ("DROP DATABASE mysql", False),
        ("ALTER TABLE mysql.user ADD x INT", False),
        ("CREATE OR REPLACE EVENT e ON SCHEDULE EVERY 1 SECOND DO SELECT 1", False),
        ("SHUTDOWN", False),
    ],
)
def test_only_what_stays_in_a_session_goes_to_the_server(sql: str, wanted: bool) -> None:
    assert is_wanted(sql) is wanted


def test_a_statement_that_does_not_end_keeps_no_later_script_waiting(
    fresh_server: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_ddl, "_ANSWER_S", 2)
    spins = "CREATE FUNCTION spin(x INT) RETURNS INT DETERMINISTIC NO SQL BEGIN WHILE x > 0 DO SET x = x + 1 - 1; END WHILE; RETURN x; END"
    scripts = {
        "first.test": f"delimiter |;\n{spins}|\ndelimiter ;|\nCREATE TABLE t1 (a INT);\nINSERT INTO t1 VALUES (spin(1));\n",
        "second.test": "CREATE TABLE t1 (b INT);\n",
        "long.test": "CREATE TABLE t1 (b INT);\nDROP TABLE t1;\n",
    }
    suite = replace(SUITES["mysql"], package="written")
    monkeypatch.setattr(Suite, "directory", tmp_path)
    corpus = Corpus(fresh_server("mysql8", "log_bin_trust_function_creators=ON", LOCK_WAIT), suite)
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        corpus.script_s = -1 if name == "long.test" else 120
        corpus.run(tmp_path / name)

    assert corpus.lost == [
        "first.test: no answer in time, at INSERT INTO t1 VALUES (spin(1))",
        "long.test: cut off after -1 s, at CREATE TABLE t1 (b INT)",
    ]
    assert corpus.counts["scripts"] == 3
    assert corpus.counts["accepted"] == 3
    assert corpus.findings == []
