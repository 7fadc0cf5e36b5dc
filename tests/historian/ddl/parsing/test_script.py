"""Scripts as clients read them: delimiters, lines, and the session that SET and USE make."""

import pytest

from historian.ddl import ScriptError, StatementContext, read_script
from models.ddl_text import MYSQL


def read(script: str) -> list[tuple[int, str]]:
    return [(found.line, found.sql) for found in read_script(script, MYSQL)]


def contexts(script: str, context: StatementContext = MYSQL) -> list[StatementContext]:
    return [found.context for found in read_script(script, context) if found.sql.startswith("DROP")]


def test_semicolons_in_quotes_and_comments_cut_nothing() -> None:
    assert read(
        "CREATE TABLE a (b TEXT DEFAULT ';') ; -- c;\nDROP TABLE `a;\"`;\n\n/* ; */ SELECT '\\';' # ;\n;;x"
    ) == [
        (1, "CREATE TABLE a (b TEXT DEFAULT ';')"),
        (2, 'DROP TABLE `a;"`'),
        (4, "/* ; */ SELECT '\\';' # ;"),
        (5, "x"),
    ]


def test_delimiters_are_the_clients() -> None:
    script = "a;\nDELIMITER ;;\nCREATE TRIGGER t BEGIN SET a = 1; END ;;\ndelimiter ;\r\nb"
    assert read(script) == [(1, "a"), (3, "CREATE TRIGGER t BEGIN SET a = 1; END"), (5, "b")]


@pytest.mark.parametrize(
    "script,line", [("a;\n\n 'b;", 3), ("a;\n/* b;", 2), ("a;`b", 1), ("SET sql_mode = CONCAT(@@sql_mode, ',ANSI')", 1)]
)
def test_what_cannot_be_read_says_its_line(script: str, line: int) -> None:
    with pytest.raises(ScriptError) as error:
        read(script)
    assert error.value.line == line


def test_sql_mode_decides_what_quotes_mean_from_there_on() -> None:
    script = "SET SESSION sql_mode = 'ANSI,NO_BACKSLASH_ESCAPES'; DROP TABLE \"a\\\"; SET @@sql_mode := DEFAULT; DROP TABLE b"
    first, second = contexts(script)
    assert {"ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT"} <= first.sql_mode
    assert second.sql_mode == MYSQL.sql_mode


def test_sql_mode_decides_whether_the_session_is_strict() -> None:
    script = "SET sql_mode = ''; DROP TABLE a; SET sql_mode = 'TRADITIONAL'; DROP TABLE b; SET sql_mode = DEFAULT; DROP TABLE c"
    assert [context.strict for context in contexts(script)] == [False, True, True]


def test_dumps_restore_what_they_set() -> None:
    script = """/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='ANSI_QUOTES' */;
    /*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */; /*!40103 SET TIME_ZONE='+00:00' */; DROP TABLE a;
    /*!40101 SET SQL_MODE=@OLD_SQL_MODE */; /*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */; DROP TABLE b;"""
    inside, behind = contexts(script)
    assert (inside.sql_mode, inside.time_zone) == (frozenset(("ANSI_QUOTES",)), "+00:00")
    assert behind == MYSQL


def test_settings_of_the_session_that_statements_depend_on() -> None:
    script = """USE `other`; SET explicit_defaults_for_timestamp = OFF, default_collation_for_utf8mb4 = utf8mb4_general_ci,
    LOCAL character_set_server = latin1; SET GLOBAL sql_mode = 'ANSI'; SET NAMES latin1 COLLATE latin1_bin; SET @x = 1;
    DROP TABLE a; SET collation_server = utf8_bin; SET explicit_defaults_for_timestamp = 1; DROP TABLE b"""
    first, second = contexts(script)
    assert (first.database, first.explicit_defaults_for_timestamp, first.sql_mode) == ("other", False, MYSQL.sql_mode)
    assert first.utf8mb4_collation == "utf8mb4_general_ci"
    assert (first.charset, first.collation) == ("latin1", "latin1_swedish_ci")
    assert (second.charset, second.collation) == ("utf8mb3", "utf8mb3_bin")
    assert second.explicit_defaults_for_timestamp
