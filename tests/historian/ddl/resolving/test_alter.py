from dataclasses import replace

import pytest

from historian.ddl import StatementContext
from historian.names import TableName
from models.ddl_text import MARIADB, MYSQL, MYSQL57, after, edits_of, resolved, table

ABCD = "CREATE TABLE t (a INT, b INT, c INT, d INT)"


def altered(actions: str, before: str = ABCD, context: StatementContext = MYSQL) -> list[str]:
    return table(after(before, f"ALTER TABLE t {actions}", context=context))


def order(actions: str, context: StatementContext = MYSQL) -> str:
    """Names in order, types left out."""
    return " ".join(line.split()[0] for line in altered(actions, context=context))


@pytest.mark.parametrize(
    "actions,expected",
    [
        ("ADD e INT", "a b c d e"),
        ("ADD COLUMN e INT FIRST", "e a b c d"),
        ("ADD e INT AFTER B", "a b e c d"),
        ("ADD (e INT, f INT)", "a b c d e f"),
        ("ADD e INT, ADD f INT AFTER e, ADD g INT AFTER e", "a b c d e g f"),
        ("ADD e INT FIRST, MODIFY b INT FIRST", "b e a c d"),
        ("ADD e INT, MODIFY a INT AFTER d", "b c d a e"),
        ("DROP b, DROP COLUMN c", "a d"),
        ("DROP a, ADD a BIGINT", "b c d a"),
        ("DROP a, ADD a BIGINT FIRST", "a b c d"),
        ("MODIFY a INT AFTER c, MODIFY b INT AFTER a", "c a b d"),
        ("MODIFY a INT AFTER b, MODIFY b INT AFTER c", "a c b d"),
        ("MODIFY d INT AFTER c, MODIFY c INT FIRST", "c a b d"),
        ("MODIFY a INT AFTER d, MODIFY b INT AFTER d, ADD e INT AFTER d", "c d e b a"),
        ("MODIFY a INT FIRST, MODIFY b INT FIRST", "b a c d"),
        ("CHANGE a z INT AFTER y, CHANGE b y INT", "y z c d"),
        ("CHANGE a z INT, ADD e INT AFTER z", "z e b c d"),
        ("CHANGE a b INT, CHANGE b a INT", "b a c d"),
        ("CHANGE a e INT, ADD a BIGINT", "e b c d a"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b a c d"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a, ADD e INT AFTER a", "b a e c d"),
        ("RENAME COLUMN a TO b, DROP b", "b c d"),
        ("RENAME COLUMN a TO z, ADD e INT AFTER z", "z e b c d"),
        ("ORDER BY a, b", "a b c d"),
    ],
)
def test_the_order_of_columns_is_the_servers(actions: str, expected: str) -> None:
    assert order(actions) == expected


@pytest.mark.parametrize(
    "actions,expected",
    [
        ("ADD e INT, MODIFY e BIGINT", "a b c d e"),
        (
            "ADD IF NOT EXISTS a BIGINT, DROP COLUMN IF EXISTS x, MODIFY IF EXISTS x INT, ADD e INT, ADD IF NOT EXISTS e INT",
            "a b c d e",
        ),
        ("CHANGE COLUMN IF EXISTS x y INT, RENAME COLUMN IF EXISTS x TO y, DROP INDEX IF EXISTS x", "a b c d"),
    ],
)
def test_what_only_mariadb_takes(actions: str, expected: str) -> None:
    assert order(actions, MARIADB) == expected


@pytest.mark.parametrize(
    "actions",
    [
        "ADD e INT AFTER f, ADD f INT",
        "CHANGE a z INT, ADD e INT AFTER a",
        "MODIFY a INT AFTER a",
        "MODIFY x INT",
        "DROP x",
        "RENAME COLUMN x TO y",
        "ADD a INT",
        "RENAME COLUMN a TO b",
        "ADD UNIQUE (x)",
        "ADD e INT, MODIFY e BIGINT",
        "DROP a, DROP b, DROP c, DROP d",
    ],
)
def test_what_servers_refuse_does_not_fit(actions: str) -> None:
    found = resolved(f"ALTER TABLE t {actions}", ABCD)
    assert (found.kind, found.edits, found.tables) == ("not_understood", (), (TableName("shop", "t"),))


def test_modify_and_change_lose_what_is_not_repeated() -> None:
    before = (
        "CREATE TABLE t (a INT UNSIGNED NOT NULL DEFAULT 7 COMMENT 'x', b CHAR(3) CHARSET latin1 NOT NULL, KEY (a))"
    )
    assert altered("MODIFY a INT, CHANGE b e CHAR(3)", before) == ["a int", "e char(3) utf8mb4_bin", "key a (a)"]


def test_edits_say_only_what_changes() -> None:
    before = "CREATE TABLE t (a INT, b INT NOT NULL DEFAULT 5, c VARCHAR(9))"
    assert edits_of("ALTER TABLE t MODIFY a INT FIRST, MODIFY b INT NOT NULL DEFAULT '5', ENGINE=InnoDB", before) == []
    assert edits_of("ALTER TABLE t CHANGE c d TEXT AFTER a, MODIFY b BIGINT DEFAULT 5", before) == [
        "change_type column_id=2 old=int new=bigint",
        "change_attributes column=2: b bigint default '5'",
        "rename_column column_id=3 old=c new=d",
        "change_type column_id=3 old=varchar(9) new=text",
        "move_column column_id=3 after=1",
    ]


def test_only_columns_that_were_given_a_position_move() -> None:
    assert edits_of("ALTER TABLE t MODIFY d INT FIRST", ABCD) == ["move_column column_id=4 after=0"]
    assert edits_of("ALTER TABLE t MODIFY a INT AFTER d", ABCD) == ["move_column column_id=1 after=4"]
    assert edits_of("ALTER TABLE t MODIFY b INT AFTER a, MODIFY c INT AFTER b", ABCD) == []


def test_a_dropped_and_added_column_has_a_new_id() -> None:
    assert edits_of("ALTER TABLE t ADD b INT AFTER a, DROP b", ABCD) == [
        "drop_column column_id=2 name=b",
        "add_column column=5: b int after=1",
    ]


def test_a_column_leaves_its_keys_when_it_is_dropped() -> None:
    before = "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b), UNIQUE u (b, c), UNIQUE v (b), KEY k (b))"
    assert altered("DROP b", before) == ["a int not null", "c int", "primary key (a)", "unique u (c)"]
    assert edits_of("ALTER TABLE t DROP b", before) == ["drop_column column_id=2 name=b"]


def test_keys_come_and_go() -> None:
    before = "CREATE TABLE t (a INT, b INT, UNIQUE u (a), KEY k (b), PRIMARY KEY (a))"
    assert altered("DROP PRIMARY KEY, ADD PRIMARY KEY (b, a)", before)[:3] == [
        "a int not null",
        "b int not null",
        "primary key (b, a)",
    ]
    assert altered("DROP PRIMARY KEY, DROP INDEX U, DROP KEY k", before) == ["a int not null", "b int"]
    assert altered("DROP CONSTRAINT u, ADD UNIQUE (b), RENAME INDEX k TO l", before)[3:] == [
        "unique b (b)",
        "key l (b)",
    ]
    assert altered("DROP INDEX `PRIMARY`, ADD c INT KEY", before)[3:] == [
        "primary key (c)",
        "unique u (a)",
        "key k (b)",
    ]


def test_indexes_as_statements_of_their_own() -> None:
    catalog = after(
        ABCD,
        "CREATE UNIQUE INDEX u USING BTREE ON t (a, b(3) DESC) COMMENT 'x' ALGORITHM=INPLACE LOCK NONE",
        "CREATE FULLTEXT INDEX f ON shop.t (c)",
        "CREATE INDEX i ON t ((a + 1))",
        "DROP INDEX f ON t ALGORITHM = COPY",
    )
    assert table(catalog)[4:] == ["unique u (a, b)", "key i (expression)"]


def test_a_freed_name_is_used_again_for_an_unnamed_key() -> None:
    before = "CREATE TABLE t (a INT, b INT, KEY a (b))"
    assert altered("ADD UNIQUE (a)", before)[2:] == ["unique a_2 (a)", "key a (b)"]
    assert altered("DROP KEY a, ADD UNIQUE (a)", before)[2:] == ["unique a (a)"]


def test_foreign_keys_and_checks_change_no_column() -> None:
    actions = "ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES o (x) ON DELETE CASCADE, ADD CHECK (a > 0), DROP FOREIGN KEY g, DROP CHECK h"
    assert altered(actions)[4:] == ["key f (a)"]


def test_defaults_and_visibility_of_a_column() -> None:
    before = "CREATE TABLE t (a INT DEFAULT 1, b CHAR(3), c DATETIME)"
    actions = (
        "ALTER a SET DEFAULT -2, ALTER COLUMN b SET DEFAULT 'x ', ALTER c SET DEFAULT (NOW()), ALTER c SET INVISIBLE"
    )
    assert altered(actions, before) == [
        "a int default '-2'",
        "b char(3) utf8mb4_bin default 'x'",
        "c datetime default NOW() invisible",
    ]
    assert altered("ALTER a DROP DEFAULT, ALTER INDEX k INVISIBLE, ALTER CHECK c NOT ENFORCED", before)[0] == "a int"


def test_the_tables_default_charset_is_for_columns_to_come() -> None:
    before = "CREATE TABLE t (a CHAR(1), b CHAR(1) CHARSET latin1) CHARSET utf8mb4"
    catalog = after(before, "ALTER TABLE t DEFAULT CHARACTER SET = ascii, ADD c CHAR(1)", "ALTER TABLE t ADD d CHAR(1)")
    assert table(catalog) == [
        "a char(1) utf8mb4_0900_ai_ci",
        "b char(1) latin1_swedish_ci",
        "c char(1) ascii_general_ci",
        "d char(1) ascii_general_ci",
    ]


def test_convert_changes_every_text_and_lets_texts_grow() -> None:
    before = "CREATE TABLE t (a CHAR(9), b TEXT, c TINYTEXT CHARSET utf8, d BLOB, e ENUM('x'), f JSON, g VARCHAR(9) DEFAULT 'q') CHARSET latin1"
    assert altered("CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", before) == [
        "a char(9) utf8mb4_bin",
        "b mediumtext utf8mb4_bin",
        "c text utf8mb4_bin",
        "d blob",
        "e enum('x') utf8mb4_bin",
        "f json",
        "g varchar(9) utf8mb4_bin default 'q'",
    ]
    assert altered("CONVERT TO CHARSET binary", before)[:2] == ["a binary(9)", "b blob"]
    assert edits_of("ALTER TABLE t CONVERT TO CHARACTER SET latin1", before.replace("utf8", "latin1")) == []


def test_convert_to_default_means_another_database_to_each_server() -> None:
    before = (
        "CREATE DATABASE x CHARACTER SET latin1 COLLATE latin1_bin",
        "CREATE TABLE x.t (a CHAR(1)) CHARSET utf8mb4",
    )
    for context, expected in ((MYSQL, "utf8mb4_bin"), (MYSQL57, "utf8mb4_bin"), (MARIADB, "latin1_swedish_ci")):
        catalog = after(*before, "ALTER TABLE x.t CONVERT TO CHARACTER SET DEFAULT", context=context)
        assert table(catalog, "x.t") == [f"a char(1) {expected}"]


def test_convert_of_labels_that_change_their_bytes_is_refused() -> None:
    found = resolved("ALTER TABLE t CONVERT TO CHARSET utf8mb4", "CREATE TABLE t (a SET('é') CHARSET latin1)")
    assert found.kind == "not_understood"
    assert "damages the labels" in found.reason


def test_not_null_follows_a_key_that_is_added() -> None:
    assert altered("ADD PRIMARY KEY (a), ADD e CHAR(2) UNIQUE")[0] == "a int not null"
    assert altered("MODIFY a BIGINT", "CREATE TABLE t (a INT PRIMARY KEY)")[0] == "a bigint not null"


def test_rename_inside_alter_comes_last() -> None:
    assert edits_of("ALTER TABLE t RENAME TO s.u, ADD e INT, RENAME COLUMN a TO z", ABCD) == [
        "rename_column column_id=1 old=a new=z",
        "add_column column=5: e int after=4",
        "rename_table new=s.u",
    ]
    assert edits_of("ALTER TABLE t RENAME u", ABCD) == ["rename_table new=shop.u"]


@pytest.mark.parametrize(
    "actions",
    [
        "ENGINE=InnoDB",
        "FORCE, ALGORITHM=INPLACE, LOCK = NONE",
        "COMMENT 'DROP a', AUTO_INCREMENT = 5 ROW_FORMAT=DYNAMIC",
        "DISABLE KEYS",
        "ADD PARTITION (PARTITION p VALUES LESS THAN (5))",
        "REORGANIZE PARTITION p INTO (PARTITION q VALUES IN (1, 2))",
        "COALESCE PARTITION 2",
        "REBUILD PARTITION ALL",
        "REMOVE PARTITIONING",
        "PARTITION BY HASH (a) PARTITIONS 4",
        "WITHOUT VALIDATION",
        "SECONDARY_LOAD",
        "STATS_PERSISTENT=DEFAULT, KEY_BLOCK_SIZE 8",
        "",
    ],
)
def test_what_keeps_rows_and_columns_is_no_edit(actions: str) -> None:
    found = resolved(f"ALTER TABLE t {actions}", ABCD)
    assert (found.kind, found.edits) == ("ddl", ())


@pytest.mark.parametrize(
    "actions,reason,others",
    [
        ("DROP PARTITION p, q", "DROP PARTITION takes rows away", ()),
        ("TRUNCATE PARTITION p", "TRUNCATE PARTITION takes rows away", ()),
        (
            "EXCHANGE PARTITION p WITH TABLE x.u WITHOUT VALIDATION",
            "EXCHANGE PARTITION swaps rows",
            (TableName("x", "u"),),
        ),
        ("IMPORT TABLESPACE", "DISCARD and IMPORT TABLESPACE replace all rows", ()),
    ],
)
def test_rows_that_change_unseen_leave_the_schema_known(
    actions: str, reason: str, others: tuple[TableName, ...]
) -> None:
    found = resolved(f"ALTER TABLE t {actions}", ABCD)
    assert (found.kind, found.edits, found.reason) == ("rows", (), f"{reason} without row events")
    assert found.tables == (TableName("shop", "t"), *others)


@pytest.mark.parametrize("action", ["ADD PRIMARY KEY (a)", "ADD UNIQUE (b)", "ADD u INT UNIQUE", "ADD UNIQUE (a(1))"])
def test_rows_that_have_one_new_key_go_unseen_where_it_is_ignored(action: str) -> None:
    table = "CREATE TABLE t (a VARCHAR(9), b INT, UNIQUE (a))"
    found = resolved(f"ALTER IGNORE TABLE t {action}", table, context=MARIADB)
    same = resolved(f"ALTER TABLE t {action}", table, context=MARIADB)
    assert (found.kind, found.tables) == ("rows", (TableName("shop", "t"),))
    assert found.reason == "ALTER IGNORE with a new unique key takes rows away without row events"
    assert (same.kind, same.edits) == ("ddl", found.edits)


@pytest.mark.parametrize(
    "action", ["ADD c INT", "ADD KEY (b)", "MODIFY a VARCHAR(20)", "DROP INDEX a", "ADD UNIQUE (a)"]
)
def test_what_brings_no_new_key_is_followed_although_it_ignores(action: str) -> None:
    table = "CREATE TABLE t (a VARCHAR(9), b INT, UNIQUE (a))"
    assert resolved(f"ALTER IGNORE TABLE t {action}", table, context=MARIADB).kind == "ddl"


LAX = frozenset(("ONLY_FULL_GROUP_BY",))
NULLS = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT NOT NULL, ts TIMESTAMP NULL)"


@pytest.mark.parametrize(
    "action", ["MODIFY a INT NOT NULL", "CHANGE a c BIGINT NOT NULL FIRST", "MODIFY ts TIMESTAMP NOT NULL"]
)
def test_a_column_that_may_not_be_null_any_more_changes_rows_unseen_where_that_is_no_error(action: str) -> None:
    strict = resolved(f"ALTER TABLE t {action}", NULLS)
    lax = resolved(f"ALTER TABLE t {action}", NULLS, context=replace(MYSQL, sql_mode=LAX))
    ignoring = resolved(f"ALTER IGNORE TABLE t {action}", NULLS, context=MARIADB)
    assert strict.kind == "ddl"
    for found in (lax, ignoring):
        assert (found.kind, found.tables) == ("rows", (TableName("shop", "t"),))
        assert "becomes a value of the server's without row events" in found.reason
    assert lax.edits == strict.edits


def test_a_timestamp_takes_the_time_of_the_statement_where_it_may_not_be_null_any_more() -> None:
    """In MariaDB, and in MySQL where it copies the table."""
    for action, context in (
        ("MODIFY ts TIMESTAMP NOT NULL", MARIADB),
        ("MODIFY ts TIMESTAMP(6)", MYSQL57),
        ("MODIFY ts TIMESTAMP NOT NULL, MODIFY a BIGINT", MYSQL),
    ):
        found = resolved(f"ALTER TABLE t {action}", NULLS, context=context)
        assert (found.kind, found.filled) == ("rows", True)
        assert found.reason == "NULL in ts becomes a value of the server's without row events"
    assert resolved("ALTER TABLE t MODIFY ts TIMESTAMP", NULLS, context=MYSQL57).kind == "ddl"
    assert resolved("ALTER TABLE t MODIFY ts TIMESTAMP(6)", NULLS, context=MYSQL).kind == "ddl"


@pytest.mark.parametrize(
    "action", ["MODIFY b INT NULL", "MODIFY b BIGINT NOT NULL", "ADD c INT NOT NULL", "DROP a", "MODIFY a BIGINT"]
)
def test_what_leaves_no_null_to_be_changed_is_followed_in_every_session(action: str) -> None:
    assert resolved(f"ALTER TABLE t {action}", NULLS, context=replace(MYSQL, sql_mode=LAX)).kind == "ddl"


def test_columns_of_a_new_key_are_left_to_the_rows_that_it_finds() -> None:
    action = "DROP PRIMARY KEY, ADD PRIMARY KEY (a)"
    assert resolved(f"ALTER TABLE t {action}", NULLS, context=replace(MYSQL, sql_mode=LAX)).kind == "ddl"


def test_truncating_all_partitions_empties_the_table() -> None:
    assert [edit.kind for edit in resolved("ALTER TABLE t TRUNCATE PARTITION ALL", ABCD).edits] == ["truncate_table"]


def test_a_partition_made_a_table_of_its_own_takes_rows_along() -> None:
    found = resolved("ALTER TABLE t CONVERT PARTITION p TO TABLE u", ABCD, context=MARIADB)
    assert (found.kind, [edit.kind for edit in found.edits]) == ("rows", ["create_table"])
    assert found.tables == (TableName("shop", "t"), TableName("shop", "u"))
    back = resolved("ALTER TABLE t CONVERT TABLE u TO PARTITION p", ABCD, "CREATE TABLE u LIKE t", context=MARIADB)
    assert (back.kind, [edit.kind for edit in back.edits]) == ("rows", ["drop_table"])
    assert back.tables == (TableName("shop", "t"),)


@pytest.mark.parametrize(
    "actions,reason",
    [
        ("ENGINE = BLACKHOLE", "a table of the engine BLACKHOLE holds no rows of its own"),
    ],
)
def test_what_is_not_followed_forgets_the_table(actions: str, reason: str) -> None:
    found = resolved(f"ALTER TABLE t {actions}", ABCD)
    assert (found.kind, found.edits, found.reason) == ("not_understood", (), reason)


def test_online_and_wait_and_if_exists_are_read_over() -> None:
    catalog = after(
        ABCD,
        "ALTER ONLINE IGNORE TABLE IF EXISTS t WAIT 5 DROP a",
        "ALTER TABLE IF EXISTS gone NOWAIT DROP a",
        context=MARIADB,
    )
    assert table(catalog) == ["b int", "c int", "d int"]


def test_a_timestamp_that_is_added_without_explicit_defaults() -> None:
    before = "CREATE TABLE t (i INT, a TIMESTAMP(3) NOT NULL)"
    assert altered("ADD b TIMESTAMP", before, MYSQL57)[2] == "b timestamp not null default '0000-00-00 00:00:00'"
    first = altered("ADD b TIMESTAMP FIRST", before, MYSQL57)[0]
    assert first == "b timestamp not null default CURRENT_TIMESTAMP on update CURRENT_TIMESTAMP"
    assert altered("ADD b TIMESTAMP", before, MYSQL)[2] == "b timestamp"
    for other in ("TIMESTAMP NULL", "TIMESTAMP NULL ON UPDATE NOW()", "TIMESTAMP AS ('2020-01-01') VIRTUAL NULL"):
        behind = altered("ADD b TIMESTAMP", f"CREATE TABLE t (a {other})", MYSQL57)[1]
        assert behind == "b timestamp not null default '0000-00-00 00:00:00'"


def test_the_place_of_a_generated_invisible_key_is_not_guessed() -> None:
    made = "CREATE TABLE t (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY, a INT)"
    for actions in ("ADD b INT FIRST", "ADD b INT FIRST, ALTER my_row_id SET VISIBLE"):
        first = resolved(f"ALTER TABLE t {actions}", made)
        assert (first.kind, first.edits) == ("not_understood", ())
        assert "depends on a setting that is not in the log" in first.reason
    assert resolved("ALTER TABLE t ADD b INT", made).kind == "ddl"


def test_json_of_mariadb_is_converted_as_the_text_that_it_is() -> None:
    added = altered("ADD j JSON, CONVERT TO CHARACTER SET utf8mb3", "CREATE TABLE t (a INT)", MARIADB)
    assert added[-1] == "j longtext utf8mb3_general_ci"


def test_an_auto_increment_column_keeps_no_default_in_mysql() -> None:
    before = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"
    assert resolved("ALTER TABLE t ALTER a SET DEFAULT 5", before).edits == ()


def test_modify_if_exists_of_mariadb_adds_no_key_of_a_name_that_is_there() -> None:
    before = "CREATE TABLE t (a INT, b INT, UNIQUE a (a, b))"
    assert altered("MODIFY IF EXISTS a INT UNIQUE", before, MARIADB)[2:] == ["unique a (a, b)"]
    assert altered("MODIFY a INT UNIQUE", before, MARIADB)[2:] == ["unique a (a, b)", "unique a_2 (a)"]


def test_another_default_ends_on_update_in_mariadb_where_both_were_one_attribute() -> None:
    before = (
        "CREATE TABLE t (a DATETIME DEFAULT NOW() ON UPDATE NOW(), b DATETIME DEFAULT '2020-01-01' ON UPDATE NOW())"
    )
    for actions in ("ALTER a DROP DEFAULT, ALTER b DROP DEFAULT", "ALTER a SET DEFAULT NULL, ALTER b SET DEFAULT NULL"):
        kept = "b datetime on update CURRENT_TIMESTAMP"
        assert altered(actions, before, MARIADB) == ["a datetime", kept]
        assert altered(actions, before, MYSQL) == ["a datetime on update CURRENT_TIMESTAMP", kept]


def test_a_table_option_wins_over_convert_in_mariadb() -> None:
    before = "CREATE TABLE t (a CHAR(1)) CHARSET utf8mb4"
    convert, option = "CONVERT TO CHARACTER SET utf8mb3 COLLATE utf8mb3_bin", "DEFAULT CHARSET=latin1"
    for actions in (f"{option}, {convert}", f"{convert}, {option}"):
        catalog = after(before, f"ALTER TABLE t {actions}", "ALTER TABLE t ADD b CHAR(1)", context=MARIADB)
        assert table(catalog) == ["a char(1) utf8mb3_bin", "b char(1) latin1_swedish_ci"]


def test_a_second_charset_of_mysql_heeds_no_setting_of_the_session() -> None:
    context = replace(MYSQL, utf8mb4_collation="utf8mb4_general_ci")
    before = "CREATE TABLE t (a CHAR(1)) CHARSET latin1"
    assert altered("CONVERT TO CHARSET utf8mb4", before, context) == ["a char(1) utf8mb4_general_ci"]
    twice = "CONVERT TO CHARSET DEFAULT, CONVERT TO CHARSET utf8mb4"
    assert altered(twice, before, context) == ["a char(1) utf8mb4_0900_ai_ci"]


def test_a_key_that_is_not_unique_is_no_constraint() -> None:
    before = "CREATE TABLE t (a INT, b INT, KEY k (a), UNIQUE u (b))"
    assert altered("DROP CONSTRAINT IF EXISTS k, DROP CONSTRAINT u", before, MARIADB)[2:] == ["key k (a)"]
    functional = "CREATE TABLE t (a INT, KEY k (a), UNIQUE u ((a + 1)))"
    assert altered("DROP CONSTRAINT u", functional)[1:] == ["key k (a)"]


def test_a_column_that_is_there_already_brings_its_key_in_mariadb() -> None:
    before = "CREATE TABLE t (a INT, UNIQUE k (a))"
    assert altered("ADD IF NOT EXISTS a CHAR(1) UNIQUE", before, MARIADB) == ["a int", "unique k (a)", "unique a (a)"]
    assert altered("ADD IF NOT EXISTS a INT UNIQUE", before.replace("k", "a"), MARIADB) == ["a int", "unique a (a)"]


@pytest.mark.parametrize(
    "old,new,expected",
    [
        ("VARCHAR(255) CHARSET latin1", "MEDIUMTEXT", "text"),
        ("VARCHAR(255) CHARSET utf8mb4", "TEXT", "tinytext"),
        ("VARCHAR(300) CHARSET utf8mb3", "BLOB", "tinyblob"),
        ("TEXT CHARSET utf8mb3", "TINYTEXT", "mediumtext"),
        ("TEXT CHARSET utf8mb3", "MEDIUMBLOB", "blob"),
        ("MEDIUMBLOB", "BLOB", "mediumblob"),
        ("VARCHAR(10) CHARSET latin1", "LONGBLOB", "longblob"),
        ("INT", "LONGTEXT", "longtext"),
    ],
)
def test_a_text_that_is_redefined_beside_convert_is_sized_as_before_in_mysql_8(
    old: str, new: str, expected: str
) -> None:
    column = altered(f"CONVERT TO CHARACTER SET utf8mb4, MODIFY a {new}", f"CREATE TABLE t (a {old})")[0]
    assert column.split()[1] == expected


@pytest.mark.parametrize(
    "actions,keys",
    [
        ("DROP b, ADD b VARCHAR(20)", ["primary key (a)", "unique u (b(10))", "key k (b(10), a)", "key p (b(3))"]),
        ("DROP b, ADD b VARCHAR(10) FIRST", ["primary key (a)", "unique u (b)", "key k (b, a)", "key p (b(3))"]),
        ("RENAME COLUMN b TO c, ADD b CHAR(10)", ["primary key (a)", "unique u (c)", "key k (c, a)", "key p (c(3))"]),
        (
            "RENAME COLUMN b TO c, ADD b CHAR(10) FIRST",
            ["primary key (a)", "unique u (b)", "key k (b, a)", "key p (b(3))"],
        ),
        (
            "RENAME COLUMN a TO b, RENAME COLUMN b TO a",
            ["primary key (b)", "unique u (a)", "key k (a, b)", "key p (a(3))"],
        ),
        ("DROP b", ["primary key (a)", "key k (a)"]),
    ],
)
def test_key_parts_are_found_by_name_in_the_new_order(actions: str, keys: list[str]) -> None:
    before = "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), UNIQUE u (b), KEY k (b, a), KEY p (b(3)))"
    assert [line for line in altered(actions, before) if line.split()[0] in ("primary", "unique", "key")] == keys


def test_a_new_column_that_takes_over_the_primary_key_is_not_null() -> None:
    before = "CREATE TABLE t (a INT, b INT PRIMARY KEY)"
    assert altered("DROP b, ADD b INT", before) == ["a int", "b int not null", "primary key (b)"]
    taken = altered("RENAME COLUMN b TO c, ADD b INT FIRST", before)
    assert taken == ["b int not null", "a int", "c int not null", "primary key (b)"]


@pytest.mark.parametrize(
    "length,old,new,mysql_8,others",
    [
        (16383, "utf8mb3", "utf8mb4", "varchar(16383)", "varchar(16383)"),
        (16384, "utf8mb3", "utf8mb4", "text", "mediumtext"),
        (20000, "latin1", "utf8mb4", "mediumtext", "mediumtext"),
        (32000, "ucs2", "utf8mb4", "text", "mediumtext"),
        (30000, "gbk", "utf8mb4", "text", "mediumtext"),
    ],
)
def test_a_varchar_that_becomes_too_long_is_a_text_of_the_servers_size(
    length: int, old: str, new: str, mysql_8: str, others: str
) -> None:
    before = f"CREATE TABLE t (a VARCHAR({length}) CHARSET {old})"
    for context, expected in ((MYSQL, mysql_8), (MYSQL57, others), (MARIADB, others)):
        assert altered(f"CONVERT TO CHARSET {new}", before, context)[0].split()[1] == expected


def test_a_literal_in_parentheses_is_one_where_a_default_is_set() -> None:
    for text in ("'x'", "('x')", "(('x'))"):
        assert altered(f"ALTER a SET DEFAULT {text}", "CREATE TABLE t (a VARBINARY(9))") == [
            "a varbinary(9) default '0x78'"
        ]


@pytest.mark.parametrize("literal", ["TIME'01:02:03'", "{t '01:02:03'}"])
def test_a_literal_of_time_as_a_moment_is_of_a_day_that_only_the_server_knows(literal: str) -> None:
    sql = f"ALTER TABLE t ADD x DATETIME DEFAULT {literal}, ADD y DATE DEFAULT {literal}, ADD z TIME DEFAULT {literal}"
    found = after(ABCD, sql, context=MARIADB).tables[TableName("shop", "t")]
    assert [(c.initial_known, c.initial, c.default_is_expression) for c in found.columns[-3:]] == [
        (False, None, True),
        (False, None, True),
        (True, "01:02:03", False),
    ]
