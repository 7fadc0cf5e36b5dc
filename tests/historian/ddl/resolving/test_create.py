from dataclasses import replace

import pytest

from historian.ddl import StatementContext, resolve
from historian.names import TableName
from models.ddl_text import MARIADB, MYSQL, MYSQL57, after, resolved, shop, table


def made(columns: str, context: StatementContext = MYSQL) -> list[str]:
    return table(after(f"CREATE TABLE t ({columns})", context=context))


def test_a_character_set_may_stand_behind_mariadbs_word_for_compressed_columns() -> None:
    columns = "a VARCHAR(9) COMPRESSED CHARACTER SET latin1 NOT NULL, b TEXT COMPRESSED=zlib, c BLOB /*M!100301 COMPRESSED*/ DEFAULT ''"
    assert made(columns, MARIADB)[:2] == ["a varchar(9) latin1_swedish_ci not null default ''", "b text utf8mb4_bin"]


def test_columns_with_attributes_in_any_order() -> None:
    sql = """
        CREATE TABLE IF NOT EXISTS `t` (
          id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'it''s (a), "key"',
          `na``me` VARCHAR(20) DEFAULT 'x' NOT NULL COLLATE latin1_bin,
          price DECIMAL(12,2) NULL DEFAULT -1.5,
          kind ENUM('a','b''c','d,e') DEFAULT 'a',
          at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
          sum INT GENERATED ALWAYS AS (id + (1)) STORED NOT NULL,
          hidden INT /*!80023 INVISIBLE */ CHECK (hidden > 0 AND ')' <> '('),
          CONSTRAINT pk PRIMARY KEY USING BTREE (id, `kind`) COMMENT 'c',
          UNIQUE KEY u (price DESC, `na``me`(3)),
          INDEX (at), FULLTEXT KEY f (`na``me`),
          CONSTRAINT c CHECK (price > 0) NOT ENFORCED
        ) ENGINE=InnoDB AUTO_INCREMENT = 7, DEFAULT CHARSET utf8mb4 COMMENT 'DEFAULT CHARSET=latin1'
        PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)"""
    assert table(after(sql)) == [
        "id bigint unsigned not null auto_increment",
        "na`me varchar(20) latin1_bin not null default 'x'",
        "price decimal(12,2) default '-1.50'",
        "kind enum('a','b''c','d,e') utf8mb4_0900_ai_ci not null default 'a'",
        "at datetime(3) default CURRENT_TIMESTAMP(3) on update CURRENT_TIMESTAMP(3)",
        "sum int not null stored as id + (1)",
        "hidden int invisible",
        "primary key (id, kind)",
        "unique u (price, na`me(3))",
        "key at (at)",
        "key f (na`me)",
    ]


@pytest.mark.parametrize(
    "written,meant",
    [
        ("INTEGER", "int"),
        ("INT(11) UNSIGNED", "int unsigned"),
        ("INT(5) ZEROFILL", "int(5) unsigned zerofill"),
        ("TINYINT(1)", "tinyint(1)"),
        ("TINYINT(1) UNSIGNED", "tinyint unsigned"),
        ("BOOL", "tinyint(1)"),
        ("MIDDLEINT", "mediumint"),
        ("INT8", "bigint"),
        ("DEC", "decimal(10,0)"),
        ("NUMERIC(5)", "decimal(5,0)"),
        ("FIXED(5,2)", "decimal(5,2)"),
        ("REAL", "double"),
        ("DOUBLE PRECISION", "double"),
        ("FLOAT(24)", "float"),
        ("FLOAT(25)", "double"),
        ("FLOAT(7,3)", "float(7,3)"),
        ("BIT", "bit(1)"),
        ("YEAR(4)", "year"),
        ("TIME(0)", "time"),
        ("DATETIME(6)", "datetime(6)"),
        ("CHAR", "char(1) utf8mb4_bin"),
        ("CHARACTER VARYING(9)", "varchar(9) utf8mb4_bin"),
        ("NATIONAL CHAR(9)", "char(9) utf8mb3_general_ci"),
        ("NCHAR VARCHAR(9)", "varchar(9) utf8mb3_general_ci"),
        ("NVARCHAR(9)", "varchar(9) utf8mb3_general_ci"),
        ("LONG VARCHAR", "mediumtext utf8mb4_bin"),
        ("LONG", "mediumtext utf8mb4_bin"),
        ("LONG VARBINARY", "mediumblob"),
        ("TEXT(63)", "tinytext utf8mb4_bin"),
        ("TEXT(64)", "text utf8mb4_bin"),
        ("TEXT(16384)", "mediumtext utf8mb4_bin"),
        ("BLOB(70000)", "mediumblob"),
        ("CHAR(4) BYTE", "binary(4)"),
        ("VARCHAR(4) CHARACTER SET binary", "varbinary(4)"),
        ("TEXT CHARSET binary", "blob"),
        ("CHAR(4) ASCII", "char(4) latin1_swedish_ci"),
        ("CHAR(4) UNICODE", "char(4) ucs2_general_ci"),
        ("CHAR(4) BINARY", "char(4) utf8mb4_bin"),
        ("CHAR(4) BINARY CHARSET latin1", "char(4) latin1_bin"),
        ("VARCHAR(4) CHARSET utf8", "varchar(4) utf8mb3_general_ci"),
        ("VARCHAR(4) CHARSET utf8mb4", "varchar(4) utf8mb4_0900_ai_ci"),
        ("VARCHAR(4) COLLATE utf8_bin", "varchar(4) utf8mb3_bin"),
        ("VARCHAR(20000)", "mediumtext utf8mb4_bin"),
        ("VARBINARY(70000)", "mediumblob"),
        ("SET('a ','b') CHARACTER SET latin1", "set('a','b') latin1_swedish_ci"),
        ("JSON", "json"),
        ("GEOMETRYCOLLECTION", "geomcollection"),
        ("POINT NOT NULL SRID 4326", "point not null"),
        ("VECTOR", "vector(2048)"),
    ],
)
def test_types_and_their_aliases(written: str, meant: str) -> None:
    assert made(f"c {written}") == [f"c {meant}"]


def test_real_is_float_where_the_mode_says_so() -> None:
    mode = StatementContext(database="shop", sql_mode=frozenset(("REAL_AS_FLOAT",)))
    assert made("c REAL", mode) == ["c float"]


def test_serial_is_five_things_at_once() -> None:
    assert made("c SERIAL") == ["c bigint unsigned not null auto_increment", "unique c (c)"]
    assert made("c INT SERIAL DEFAULT VALUE") == ["c int not null auto_increment", "unique c (c)"]


def test_mariadb_has_types_and_words_of_its_own() -> None:
    assert made(
        "j JSON, u UUID DEFAULT uuid(), i INET6, p INT AS (1) PERSISTENT, n INT DEFAULT (7), w INT WITHOUT SYSTEM VERSIONING",
        MARIADB,
    ) == [
        "j longtext utf8mb4_bin",
        "u uuid default uuid()",
        "i inet6",
        "p int stored as 1",
        "n int default '7'",
        "w int",
    ]


def test_primary_key_columns_become_not_null() -> None:
    assert made("a INT DEFAULT 5, b INT KEY, c INT UNIQUE") == [
        "a int default '5'",
        "b int not null",
        "c int",
        "primary key (b)",
        "unique c (c)",
    ]


def test_unnamed_keys_are_called_after_their_first_column() -> None:
    assert made(
        "a INT, b INT, KEY (a), UNIQUE (A, b), UNIQUE a_3 (b), UNIQUE (a), UNIQUE ((a + 1)), UNIQUE k (a, (b))"
    ) == [
        "a int",
        "b int",
        "unique a_2 (a, b)",
        "unique a_3 (b)",
        "unique a_4 (a)",
        "key a (a)",
        "key functional_index (expression)",
        "key k (a, expression)",
    ]


def test_a_foreign_key_brings_a_key_where_none_serves_it() -> None:
    assert made(
        "a INT, b INT, c INT, KEY k (b, c), CONSTRAINT f FOREIGN KEY (a) REFERENCES o (x) ON DELETE SET NULL ON UPDATE NO ACTION,"
        " FOREIGN KEY (b) REFERENCES o (y)"
    ) == ["a int", "b int", "c int", "key f (a)", "key k (b, c)"]


def test_charset_comes_from_column_table_then_database() -> None:
    catalog = after(
        "CREATE DATABASE old CHARACTER SET latin1",
        "CREATE TABLE old.a (c CHAR(1), d CHAR(1) COLLATE utf8mb4_bin)",
        "CREATE TABLE old.b (c CHAR(1)) CHARSET=ascii",
        "CREATE TABLE old.c (c CHAR(1)) COLLATE=greek_bin",
        "ALTER DATABASE old COLLATE latin2_bin",
        "CREATE TABLE old.d (c CHAR(1))",
        "CREATE TABLE old.e (c CHAR(1), e ENUM('x')) CHARACTER SET binary",
    )
    assert table(catalog, "old.a") == ["c char(1) latin1_swedish_ci", "d char(1) utf8mb4_bin"]
    assert table(catalog, "old.b") == ["c char(1) ascii_general_ci"]
    assert table(catalog, "old.c") == ["c char(1) greek_bin"]
    assert table(catalog, "old.d") == ["c char(1) latin2_bin"]
    assert table(catalog, "old.e") == ["c binary(1)", "e enum('x') binary"]


@pytest.mark.parametrize(
    "context,collation",
    [
        (MYSQL, "utf8mb4_0900_ai_ci"),
        (
            StatementContext(database="shop", version=80031, utf8mb4_collation="utf8mb4_general_ci"),
            "utf8mb4_general_ci",
        ),
        (MYSQL57, "utf8mb4_general_ci"),
        (MARIADB, "utf8mb4_general_ci"),
        (
            StatementContext(flavor="mariadb", database="shop", utf8mb4_collation="utf8mb4_uca1400_ai_ci"),
            "utf8mb4_uca1400_ai_ci",
        ),
    ],
)
def test_a_charset_alone_means_the_collation_of_that_server_and_session(
    context: StatementContext, collation: str
) -> None:
    assert made("c CHAR(1) CHARSET utf8mb4", context) == [f"c char(1) {collation}"]


def test_mariadb_collations_that_hold_for_several_charsets() -> None:
    catalog = after(
        "CREATE TABLE t (a CHAR(1) COLLATE uca1400_as_cs, b CHAR(1) CHARSET ucs2 COLLATE uca1400_as_cs)",
        context=MARIADB,
    )
    assert table(catalog) == ["a char(1) utf8mb4_uca1400_as_cs", "b char(1) ucs2_uca1400_as_cs"]


def test_the_order_of_table_charset_options_counts_in_mysql_57_only() -> None:
    sql = "CREATE TABLE t (c CHAR(1)) COLLATE latin1_bin CHARACTER SET latin1"
    assert table(after(sql)) == ["c char(1) latin1_bin"]
    assert table(after(sql, context=MARIADB)) == ["c char(1) latin1_bin"]
    assert table(after(sql, context=MYSQL57)) == ["c char(1) latin1_swedish_ci"]


def test_timestamps_before_explicit_defaults() -> None:
    assert made("i INT, b TIMESTAMP(3), a TIMESTAMP NULL, c TIMESTAMP, d TIMESTAMP DEFAULT '2020-1-2'", MYSQL57) == [
        "i int",
        "b timestamp(3) not null default CURRENT_TIMESTAMP(3) on update CURRENT_TIMESTAMP(3)",
        "a timestamp",
        "c timestamp not null default '0000-00-00 00:00:00'",
        "d timestamp not null default '2020-01-02 00:00:00'",
    ]
    behind_another = made("a TIMESTAMP NULL, b TIMESTAMP", MYSQL57)
    assert behind_another == ["a timestamp", "b timestamp not null default '0000-00-00 00:00:00'"]
    assert made("b TIMESTAMP(3), c TIMESTAMP NOT NULL", MYSQL) == ["b timestamp(3)", "c timestamp not null"]


def test_the_session_says_whether_timestamps_are_explicit() -> None:
    off = StatementContext(database="shop", version=80031, explicit_defaults_for_timestamp=False)
    assert made("a TIMESTAMP", off) == ["a timestamp not null default CURRENT_TIMESTAMP on update CURRENT_TIMESTAMP"]


def test_like_copies_columns_and_keys_under_new_ids() -> None:
    catalog = after(
        "CREATE TABLE t (a INT PRIMARY KEY, b CHAR(2) CHARSET latin1, UNIQUE u (b), KEY (a))",
        "ALTER TABLE t ADD c INT DEFAULT 5",
        "CREATE TABLE l LIKE t",
        "CREATE TABLE m (LIKE shop.l)",
    )
    assert table(catalog, "shop.l") == table(catalog, "shop.m") == table(catalog)
    tables = [catalog.tables[TableName("shop", name)] for name in "tlm"]
    assert [[column.id for column in one.columns] for one in tables] == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [one.columns[2].initial for one in tables] == ["5", None, None]


def test_the_columns_of_a_select_stand_in_what_the_server_logs() -> None:
    logged = "CREATE TABLE `t` (\n  `i` int NOT NULL,\n  `v` varchar(10) DEFAULT 'x'\n) START TRANSACTION"
    assert table(after(logged)) == ["i int not null", "v varchar(10) utf8mb4_bin default 'x'"]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t SELECT 1 AS a",
        "CREATE TABLE t (a INT) AS SELECT 1 AS b",
        "CREATE TABLE t ENGINE=InnoDB PARTITION BY KEY(a) IGNORE SELECT 1 AS a",
        "CREATE TABLE t (SELECT 1 AS a)",
    ],
)
def test_a_select_itself_is_not_understood(sql: str) -> None:
    found = resolved(sql)
    assert (found.kind, found.tables) == ("not_understood", (TableName("shop", "t"),))
    assert found.reason == "its columns come from a query that the log does not spell out"


def test_a_table_that_is_there_is_not_created_again() -> None:
    before = "CREATE TABLE t (a INT)"
    assert resolved("CREATE TABLE IF NOT EXISTS t (a INT, b INT)", before).edits == ()
    found = resolved("CREATE TABLE t (a INT, b INT)", before)
    assert (found.kind, found.reason) == (
        "not_understood",
        "it is created while the history holds it already: a DROP is missing from the log",
    )


def test_or_replace_drops_first() -> None:
    found = resolved("CREATE OR REPLACE TABLE t (b INT)", "CREATE TABLE t (a INT)", context=MARIADB)
    assert [edit.kind for edit in found.edits] == ["drop_table", "create_table"]


def test_if_not_exists_proves_nothing_where_it_is_logged_anyway() -> None:
    sql = "CREATE TABLE IF NOT EXISTS t (a INT)"
    assert resolved(sql).conditional == (TableName("shop", "t"),)
    assert resolved(sql, context=MARIADB).conditional == ()
    assert resolved("CREATE TABLE t (a INT)").conditional == ()


@pytest.mark.parametrize(
    "sql", ["CREATE TABLE t (a INT) WITH SYSTEM VERSIONING", "CREATE TABLE t (a INT WITH SYSTEM VERSIONING, b INT)"]
)
def test_a_table_is_versioned_by_its_option_or_by_a_column(sql: str) -> None:
    assert after("", sql, context=MARIADB).tables[TableName("shop", "t")].system_versioned


def test_the_column_of_a_rows_end_stands_last_in_each_unique_key() -> None:
    bounds = "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)"
    sql = f"CREATE TABLE t (a INT PRIMARY KEY, b INT UNIQUE, c INT, KEY (c), {bounds}) WITH SYSTEM VERSIONING"
    found = after("", sql, context=MARIADB).tables[TableName("shop", "t")]
    ids = {column.name: column.id for column in found.columns}
    assert found.primary_key == (ids["a"], ids["e"])
    assert [key.columns for key in found.unique_keys] == [(ids["b"], ids["e"])]
    assert [key.columns for key in found.other_keys] == [(ids["c"],)]
    assert not found.columns[-1].nullable


def test_labels_have_question_marks_for_what_their_charset_does_not_have() -> None:
    tables = after(
        "CREATE TABLE t (a ENUM('é', 'xй') CHARACTER SET latin1, b SET('é ', 'y') CHARACTER SET ascii)"
    ).tables
    a, b = tables[TableName("shop", "t")].columns
    assert (a.type.labels, b.type.labels) == (("é", "x?"), ("?", "y"))


def test_labels_of_bytes_keep_their_blanks() -> None:
    tables = after(
        "CREATE TABLE t (a ENUM('x', 'x ', 'é') CHARACTER SET binary, b SET('a', 'a ')) CHARACTER SET binary"
    ).tables
    a, b = tables[TableName("shop", "t")].columns
    assert (a.type.labels, b.type.labels) == (("x", "x ", "é"), ("a", "a "))


@pytest.mark.parametrize("literal", ["x'c3a9'", "0xC3A9", "b'1100001110101001'"])
def test_labels_may_be_binary_literals_in_the_columns_charset(literal: str) -> None:
    tables = after(
        f"CREATE TABLE t (a ENUM({literal}, 'b') CHARACTER SET utf8mb4, b ENUM({literal}) CHARACTER SET latin1)"
    ).tables
    a, b = tables[TableName("shop", "t")].columns
    assert (a.type.labels, b.type.labels) == (("é", "b"), ("Ã©",))


def test_lower_case_names() -> None:
    lower = StatementContext(database="shop", lower_case_table_names=1)
    assert list(after("CREATE TABLE Shop.`TaBle` (A INT)", context=lower).tables) == [TableName("shop", "table")]


def test_an_unknown_database_takes_the_charset_of_the_server() -> None:
    context = StatementContext(database="gone", charset="latin1", collation="latin1_bin")
    assert table(after("CREATE TABLE t (c CHAR(1))", context=context), "gone.t") == ["c char(1) latin1_bin"]
    assert table(after("CREATE TABLE t (c CHAR(1))", context=context, catalog=shop()), "gone.t") == [
        "c char(1) latin1_bin"
    ]


def test_types_of_mariadb_in_the_mode_of_oracle() -> None:
    oracle = replace(MARIADB, sql_mode=frozenset(("ORACLE", "ANSI_QUOTES")))
    sql = 'CREATE TABLE t ("a" DATE, b BLOB, c NUMBER, d NUMBER(5), e BLOB(10), f VARCHAR2(9), g RAW(4), h CLOB)'
    assert [line.split()[1] for line in table(after(sql, context=oracle))] == [
        *("datetime", "longblob", "double", "decimal(5,0)", "tinyblob", "varchar(9)", "varbinary(4)", "longtext"),
    ]


def test_a_table_that_mysql_spells_out_in_ansi_mode_lacks_its_charset() -> None:
    ansi = replace(MYSQL, sql_mode=frozenset(("ANSI", "ANSI_QUOTES")))
    made = 'CREATE TABLE "t" (\n  "a" char(3)\n) START TRANSACTION'
    found = resolve(made, ansi, shop())
    assert (found.kind, found.edits) == ("not_understood", ())
    assert "without its character set" in found.reason
    assert resolve(made, replace(MYSQL, sql_mode=frozenset(("ANSI_QUOTES",))), shop()).kind == "ddl"


def test_a_moment_of_mariadb_in_the_primary_key_with_on_update_alone_is_zero() -> None:
    made = table(after("CREATE TABLE t (c DATETIME(1) ON UPDATE NOW(1), PRIMARY KEY (c))", context=MARIADB))
    assert made[0] == "c datetime(1) not null default '0000-00-00 00:00:00.0' on update CURRENT_TIMESTAMP(1)"


@pytest.mark.parametrize("inner,outer", [("(", ")"), ("- ", ""), ("CASE WHEN 1 THEN ", " END"), ("IF(1, 1, ", ")")])
def test_expressions_of_any_depth_are_passed_over(inner: str, outer: str) -> None:
    depth = 20_000
    assert made(f"id INT, c INT AS ({inner * depth}id{outer * depth})")[1].startswith("c int virtual as ")
