"""Statements of odd forms that servers take: all tables are then as the server shows them, and rows that were there read what it reads."""

from __future__ import annotations

import pytest

from databases.servers import Server
from models.followed_ddl import FollowedSession, findings_of

MYSQL = ("mysql9", "mysql8", "mysql57")
NEWEST = "mariadb118"
MEMBERS = ", ".join(f"'m{number}'" for number in range(64))


def test_members_written_as_bytes_are_text_of_the_column(server: Server) -> None:
    statements = (
        "CREATE TABLE a(a ENUM(x'c3a9', 'b'), b ENUM(b'1100001', 'b'), c SET(0x4120, x'') CHARACTER SET latin1)",
        "CREATE TABLE b(a ENUM(0xE4, '1') CHARACTER SET latin1, b ENUM(0x4100, 'a') CHARACTER SET ucs2, c ENUM(0x81) CHARACTER SET latin1)",
        "CREATE TABLE c(a ENUM(x'8140') CHARACTER SET sjis, b ENUM(0x5C6E, 'q'), c ENUM(0x412020, 'b ') CHARACTER SET binary DEFAULT 'b ')",
        "CREATE TABLE d(a ENUM(0xE4, '1', '2'), b ENUM(0xFFFF))",  # no text in their charset: servers print marks
        "SET NAMES latin1",
        "CREATE TABLE e(a SET('x', 'é') CHARACTER SET binary)",
    )

    assert [] == findings_of(server, statements)


def test_a_set_may_say_members_twice_beyond_the_sixty_fourth(server: Server) -> None:
    assert [] == findings_of(server, ("SET sql_mode = ''", f"CREATE TABLE a(a SET({MEMBERS}, 'm1', 'm63'))"))


def test_strings_are_bytes_in_the_character_set_of_the_connection(server: Server) -> None:
    statements = (
        "CREATE TABLE a(id INT)",
        "ALTER TABLE a ADD a VARBINARY(9) DEFAULT 'é', ADD b BIT(16) DEFAULT 'é', ADD c BINARY(4) DEFAULT _latin1'é'",
        "ALTER TABLE a ADD d VARCHAR(9) DEFAULT _latin1 x'e9', ADD e VARBINARY(9) DEFAULT N'é'",
        b"ALTER TABLE a ADD m VARBINARY(5) DEFAULT '\xff\xe9K', ADD n BIT(8) DEFAULT '\xff', ADD o VARBINARY(9) DEFAULT 'a\\xe9'",
        "SET NAMES latin1",
        "ALTER TABLE a ADD f VARBINARY(9) DEFAULT 'é', ADD g VARCHAR(9) DEFAULT _utf8mb4'é'",
        "SET NAMES utf8mb4",
        "SET character_set_connection = latin1",
        "ALTER TABLE a ADD h VARBINARY(9) DEFAULT 'é', ADD i VARCHAR(9) DEFAULT 'é'",
        "SET character_set_connection = sjis",
        "ALTER TABLE a ADD j VARBINARY(9) DEFAULT 'é', ADD k VARCHAR(9) DEFAULT 'é'",
        "SET character_set_connection = utf32",
        "ALTER TABLE a ADD l BIT(32) DEFAULT 'A', ADD p VARCHAR(9) DEFAULT 'é', ADD q INT DEFAULT '12'",
    )
    session = FollowedSession(server)
    session.run(("SET sql_mode = ''", *statements))
    session.close()
    assert ([], []) == (session.rejected, session.findings)
    (table,) = session.catalog.tables.values()
    assert [] == [column.name for column in table.columns if not column.initial_known]
    assert session.comparison.values >= len(table.columns) - 1


def test_lengths_and_names_are_those_that_the_server_keeps(server: Server) -> None:
    names = ("CREATE TABLE `t😀`(`a😀` INT)", "CREATE DATABASE `d😀`") if server.name in MYSQL else ()

    assert [] == findings_of(server, ("CREATE TABLE a(a DECIMAL(19.5), b VARCHAR(9.7))", *names))


def test_foreign_keys_make_the_keys_that_no_other_begins_with(server: Server) -> None:
    statements = (
        "CREATE TABLE p(id INT PRIMARY KEY, b INT UNIQUE, c INT UNIQUE, UNIQUE(b, c))",
        "CREATE TABLE a(b INT PRIMARY KEY, c INT, FOREIGN KEY(b) REFERENCES p(id))",
        "CREATE TABLE b(b INT, c INT, FOREIGN KEY(b, c) REFERENCES p(b, c), INDEX(b))",
        "CREATE TABLE c(b INT, c INT, FOREIGN KEY(b) REFERENCES p(b), FOREIGN KEY(b, c) REFERENCES p(b, c))",
        "CREATE TABLE d(b INT, c INT, CONSTRAINT b FOREIGN KEY(c) REFERENCES p(c), INDEX(b, c))",
        "ALTER TABLE d ADD PRIMARY KEY(b), ADD FOREIGN KEY(b) REFERENCES p(id)",
    )

    assert [] == findings_of(server, statements, rows=False)


def test_a_drop_of_tables_names_some_that_are_not_there(server: Server) -> None:
    session = FollowedSession(server)
    session.run(("CREATE TABLE a(a INT)", "DROP TABLE a, b", "CREATE TABLE b(a INT)", "DROP TABLE IF EXISTS a, b"))
    session.close()

    assert [] == session.findings
    assert {"accepted": 3, "rejected": 1} == {what: session.counts[what] for what in ("accepted", "rejected")}


def test_json_views_are_no_tables(mysql9: Server) -> None:
    view = "CREATE JSON RELATIONAL DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM a"

    assert [] == findings_of(
        mysql9, ("CREATE TABLE a(id INT PRIMARY KEY)", view, "CREATE TABLE IF NOT EXISTS v(id INT)")
    )


@pytest.mark.parametrize("name", ["mariadb1011", "mariadb118"])
def test_addresses_and_uuids_are_printed_in_one_form(name: str, request: pytest.FixtureRequest) -> None:
    addresses = (
        "::0001:00",
        "2001:DB8::1",
        "1::0:0:2:0:0:3",
        "1:0:2:3:4:5:6:7",
        "::2:3",
        "0:0:0:0:0:0:1.2.3.4",
        "::ffff:0:1",
    )
    uuids = ("00112233445566778899AABBCCDDEEFF", "0011-2233-4455-6677-8899-AABB-CCDD-EEFF")
    columns = [f"ADD a{at} INET6 DEFAULT '{text}'" for at, text in enumerate(addresses)]
    columns += [f"ADD b{at} UUID DEFAULT '{text}'" for at, text in enumerate(uuids)]
    columns += [f"ADD c INET6 DEFAULT x'{'00' * 10}FFFF01020304'", f"ADD d UUID DEFAULT x'{'0F' * 16}'"]
    columns += ["ADD e INET4 DEFAULT '001.2.3.4'", "ADD f INET4 DEFAULT x'01020304'"]
    columns += ["ADD g INET6 DEFAULT '1.2.3.4'"] if name == NEWEST else []

    assert [] == findings_of(
        request.getfixturevalue(name), ("CREATE TABLE a(id INT)", f"ALTER TABLE a {', '.join(columns)}")
    )


@pytest.mark.parametrize("name", ["mariadb105", "mariadb1011", "mariadb118"])
def test_forms_of_mariadb(name: str, request: pytest.FixtureRequest) -> None:
    statements = (
        "CREATE TABLE a(a TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), b VARCHAR(300) DEFAULT @@sql_mode)",
        "CREATE TABLE b(a CHAR(5) CHARACTER SET latin1 COLLATE latin1_bin)",
        "ALTER TABLE b MODIFY a CHAR COLLATE DEFAULT, CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_bin",
        "CREATE TABLE c(id INT, s DATE, e DATE)",
        "ALTER TABLE c ADD PERIOD IF NOT EXISTS FOR p(s, e)",
        "ALTER TABLE c DROP PERIOD IF EXISTS FOR p",
        "ALTER TABLE c DROP PERIOD IF EXISTS FOR p",
        "ALTER TABLE c ADD PERIOD FOR p(s, e), ADD PRIMARY KEY(id, p WITHOUT OVERLAPS)",
        "SET sql_mode = ''",
        "CREATE TABLE d(a YEAR(999))",
        "SET sql_mode = 'MSSQL'",
        "CREATE TABLE [a b]([x]]y] INT, [z] VARCHAR(3) DEFAULT '[')",
        "ALTER TABLE [a b] ADD [n] INT, DROP COLUMN [z]",
    )

    assert [] == findings_of(request.getfixturevalue(name), statements, rows=False)


@pytest.mark.parametrize("name", ["mariadb105", NEWEST])
def test_what_mariadb_says_of_storage_and_versioning_is_printed(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    bounds = "r TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END"
    statements = (
        "SET system_versioning_alter_history = KEEP",
        "CREATE TABLE a(a VARCHAR(9) COMPRESSED, b TEXT COMPRESSED=zlib, c BLOB COMPRESSED NOT NULL, d VARBINARY(7) COMPRESSED)",
        "ALTER TABLE a ADD f VARCHAR(9) COMPRESSED NOT NULL, ADD g TEXT COMPRESSED NOT NULL DEFAULT 'g', ADD h BLOB COMPRESSED NOT NULL",
        "ALTER TABLE a MODIFY f VARCHAR(9) NOT NULL, ALTER c DROP DEFAULT",
        "ALTER TABLE a MODIFY a VARCHAR(20), ADD e TEXT COMPRESSED DEFAULT 'x', MODIFY d VARBINARY(9) COMPRESSED",
        "CREATE TABLE b(f INT WITH SYSTEM VERSIONING, g INT, h INT WITHOUT SYSTEM VERSIONING)",
        "ALTER TABLE b DROP SYSTEM VERSIONING",
        "ALTER TABLE b ADD SYSTEM VERSIONING",
        "ALTER TABLE b MODIFY g BIGINT, MODIFY f BIGINT WITHOUT SYSTEM VERSIONING, CHANGE h i INT, ADD j INT",
        "CREATE TABLE c(f INT INVISIBLE WITHOUT SYSTEM VERSIONING, g INT WITH SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
        f"CREATE TABLE d(f INT WITH SYSTEM VERSIONING, g INT, {bounds}, PERIOD FOR SYSTEM_TIME (r, e), UNIQUE (g))",
        "CREATE TABLE e LIKE d",
        "ALTER TABLE d ADD UNIQUE (f), DROP INDEX g",
        "CREATE TABLE f AS SELECT * FROM d",
    )

    assert [] == findings_of(server, statements)


def test_a_key_that_a_foreign_key_brought_goes_when_another_one_serves_it(server: Server) -> None:
    """Names of later keys follow from it."""
    statements = (
        "CREATE TABLE o(x INT PRIMARY KEY, s VARCHAR(9) UNIQUE)",
        "CREATE TABLE a(a INT, b INT, FOREIGN KEY (a) REFERENCES o(x))",
        "ALTER TABLE a ADD KEY (a)",
        "ALTER TABLE a ADD UNIQUE (a), DROP KEY a",
        "CREATE TABLE b(a INT, b INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES o(x))",
        "ALTER TABLE b ADD KEY j (b, a)",
        "ALTER TABLE b ADD UNIQUE KEY f2 (a, b)",
        "ALTER TABLE b ADD UNIQUE KEY f (a)",
        "CREATE TABLE c(a INT NOT NULL, b INT NOT NULL, CONSTRAINT f3 FOREIGN KEY (a) REFERENCES o(x))",
        "ALTER TABLE c ADD PRIMARY KEY (a, b)",
        "CREATE TABLE d(a INT, b INT, CONSTRAINT f4 FOREIGN KEY (a) REFERENCES o(x))",
        "CREATE TABLE e LIKE d",
        "CREATE INDEX k ON e (a, b)",
        "ALTER TABLE d DROP FOREIGN KEY f4",
        "ALTER TABLE d ADD COLUMN c INT FIRST, ADD KEY k (a, c)",
        "CREATE TABLE f(a INT, b INT)",
        "ALTER TABLE f ADD CONSTRAINT f5 FOREIGN KEY (a) REFERENCES o(x)",
        "ALTER TABLE f ADD CONSTRAINT f6 FOREIGN KEY (a) REFERENCES o(x)",
        "ALTER TABLE f CHANGE a z INT",
        "CREATE INDEX k ON f (z)",
        "CREATE TABLE g(a INT, KEY e (a), CONSTRAINT f7 FOREIGN KEY (a) REFERENCES o(x))",
        "ALTER TABLE g ADD b INT, ADD KEY k (a, b)",
        "CREATE TABLE h(s VARCHAR(9), b INT, CONSTRAINT f8 FOREIGN KEY (s) REFERENCES o(s))",
        "CREATE INDEX k ON h (s(3), b)",
        "CREATE UNIQUE INDEX k2 ON h (s)",
    )
    assert [] == findings_of(server, statements)


@pytest.mark.parametrize("kind", ["mysql9", "mysql57", "mariadb105", NEWEST])
def test_a_key_that_a_foreign_key_brought_stays_once_it_was_renamed(kind: str, request: pytest.FixtureRequest) -> None:
    statements = (
        "CREATE TABLE o(x INT PRIMARY KEY)",
        "CREATE TABLE a(a INT, b INT, CONSTRAINT f FOREIGN KEY (a) REFERENCES o(x))",
        "ALTER TABLE a RENAME KEY f TO g",
        "ALTER TABLE a ADD KEY k (a, b)",
    )
    assert [] == findings_of(request.getfixturevalue(kind), statements)


def test_labels_of_bytes_may_be_defaults(server: Server) -> None:
    statements = (
        "CREATE TABLE a(id INT)",
        "ALTER TABLE a ADD e ENUM(0xFFFE, 'y') CHARACTER SET binary DEFAULT 0xFFFE, ADD f ENUM(0xFF) CHARACTER SET binary NOT NULL",
    )
    found = findings_of(server, statements)
    assert [] == [finding for finding in found if finding.kind != "printed"]  # a question mark, or nothing


def test_two_labels_that_read_the_same_stop_their_table(server: Server) -> None:
    """Bytes that are no text read as the text that stands for them, and that may be a label too."""
    (finding,) = findings_of(
        server,
        (
            r"CREATE TABLE a(e ENUM(0xFF, 'x') CHARACTER SET binary, s SET('\\xff', 'x') CHARACTER SET binary)",
            r"CREATE TABLE b(e ENUM(0xFF, '\\xff') CHARACTER SET binary)",
        ),
    )
    assert ("refused", r"two labels of e read \xff") == (finding.kind, finding.reason.partition(":")[0])


def test_a_default_of_a_client_of_bytes_is_bytes_of_a_wide_column(server: Server) -> None:
    statements = (
        "CREATE TABLE a(id INT)",
        "SET NAMES binary",
        "ALTER TABLE a ADD c VARCHAR(30) CHARACTER SET utf16 NOT NULL DEFAULT '  x  ', ADD d VARCHAR(9) CHARACTER SET utf32 DEFAULT 'x'",
        "ALTER TABLE a ADD e VARCHAR(9) CHARACTER SET ucs2 DEFAULT 'xy', ADD f VARCHAR(9) CHARACTER SET utf8mb4 DEFAULT 'x'",
    )
    assert [] == findings_of(server, statements)
