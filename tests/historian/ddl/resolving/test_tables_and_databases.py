import random
from dataclasses import replace

import pytest

from historian.ddl import StatementContext, resolve
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog
from models.ddl_text import MARIADB, MYSQL, MYSQL57, after, edits_of, resolved, table

T = TableName("shop", "t")
U = TableName("shop", "u")
GONE = TableName("shop", "gone")


def names(catalog: Catalog) -> list[str]:
    return sorted(map(str, catalog.tables))


def test_tables_swap_over_a_third_name() -> None:
    catalog = after(
        "CREATE TABLE t (a INT)",
        "CREATE TABLE x.u (b INT)",
        "RENAME TABLE t TO tmp, x.u TO t, tmp TO x.u",
    )
    assert names(catalog) == ["shop.t", "x.u"]
    assert (table(catalog), table(catalog, "x.u")) == (["b int"], ["a int"])
    assert [catalog.tables[name].table_id for name in sorted(catalog.tables)] == [2, 1]


def test_a_rename_of_what_is_not_known_leaves_the_rest() -> None:
    found = resolved("RENAME TABLE t TO v, gone TO t", "CREATE TABLE t (a INT)")
    assert (found.kind, found.tables) == ("not_understood", (GONE, T))
    assert [edit.kind for edit in found.edits] == ["rename_table"]


def test_a_rename_to_a_name_that_is_taken_says_so() -> None:
    found = resolved("RENAME TABLE t TO u", "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)")
    assert (found.kind, found.reason) == (
        "not_understood",
        "shop.t is renamed to shop.u, which is the name of another table",
    )


FORGOTTEN = Catalog(unknown={GONE: "why"})


@pytest.mark.parametrize(
    "pairs, known, unknown, behind",
    [
        ("gone TO v, u TO gone", {"shop.t": 1, "shop.gone": 2}, {"shop.v": "why"}, ["shop.v"]),
        ("gone TO tmp, u TO gone, tmp TO u", {"shop.t": 1, "shop.gone": 2}, {"shop.u": "why"}, ["shop.u"]),
        ("u TO v, gone TO u", {"shop.t": 1, "shop.v": 2}, {"shop.u": "why"}, ["shop.u"]),
        ("gone TO v, v TO w", {"shop.t": 1, "shop.u": 2}, {"shop.w": "why"}, ["shop.w"]),
        ("gone TO v, v TO gone", {"shop.t": 1, "shop.u": 2}, {"shop.gone": "why"}, ["shop.gone"]),
        # What stands under the name of one that is not known was not it.
        ("gone TO t, u TO gone", {"shop.t": 1, "shop.gone": 2}, {}, ["shop.t"]),
        ("t TO u, u TO w", {"shop.t": 1, "shop.u": 2}, {"shop.gone": "why"}, ["shop.t", "shop.u", "shop.w"]),
        ("t TO u, gone TO t", {"shop.t": 1, "shop.u": 2}, {"shop.gone": "why"}, ["shop.t", "shop.u", "shop.gone"]),
        ("gone TO t, t TO w", {"shop.t": 1, "shop.u": 2}, {"shop.gone": "why"}, ["shop.gone", "shop.t", "shop.w"]),
        ("t TO v, never TO t", {"shop.u": 2, "shop.v": 1}, {"shop.gone": "why"}, ["shop.never", "shop.t"]),
        ("never TO tmp, u TO never, tmp TO u", {"shop.t": 1, "shop.never": 2}, {"shop.gone": "why"}, ["shop.u"]),
    ],
)
def test_what_is_not_known_is_so_under_its_new_name_and_others_go_on(
    pairs: str, known: dict[str, int], unknown: dict[str, str], behind: list[str]
) -> None:
    catalog = after("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", catalog=FORGOTTEN)
    found = resolve(f"RENAME TABLE {pairs}", MYSQL, catalog)
    assert found.kind == "not_understood"
    then = apply_all(found.edits, catalog)
    assert known == {str(name): held.table_id for name, held in then.tables.items()}
    assert unknown == {str(name): why for name, why in then.unknown.items()}
    assert behind == [str(name) for name in found.unknown_behind]


@pytest.mark.parametrize("seed", range(40))
def test_any_chain_of_renames_ends_where_the_server_has_its_tables(seed: int) -> None:
    numbers = random.Random(seed)
    names = [TableName("shop", letter) for letter in "abcdef"]
    made = numbers.sample(names, 4)
    catalog = after(*(f"CREATE TABLE {name.table} (x INT)" for name in made[:2]))
    catalog = replace(catalog, unknown={name: f"why {name.table}" for name in made[2:]})
    present: dict[TableName, int | str] = {name: held.table_id for name, held in catalog.tables.items()}
    present |= catalog.unknown
    pairs, moved = list[str](), set[str]()
    for _ in range(numbers.randrange(1, 7)):
        old = numbers.choice(sorted(present))
        new = numbers.choice(sorted(set(names) - set(present)))
        present[new] = what = present.pop(old)
        pairs.append(f"{old.table} TO {new.table}")
        moved |= {what} if isinstance(what, str) else set()
    found = resolve(f"RENAME TABLE {', '.join(pairs)}", MYSQL, catalog)
    then = apply_all(found.edits, catalog)
    assert present == {**{name: held.table_id for name, held in then.tables.items()}, **then.unknown}
    assert set(found.unknown_behind) == {name for name, what in present.items() if what in moved}
    assert ("not_understood" if moved else "ddl") == found.kind


def test_drop_table_tells_known_from_unknown() -> None:
    found = resolved("DROP TABLE t, gone CASCADE", "CREATE TABLE t (a INT)")
    assert (found.kind, found.tables, found.reason) == (
        "not_understood",
        (GONE,),
        "the schema of shop.gone is not known",
    )
    assert [edit.kind for edit in found.edits] == ["drop_table"]
    assert resolved("DROP TABLE IF EXISTS gone").kind == "ddl"
    unknown = Catalog(unknown={GONE: "why"})
    assert resolve("DROP TABLE IF EXISTS gone", MYSQL, unknown).reason == "the schema of shop.gone is not known: why"


def test_truncate() -> None:
    assert edits_of("TRUNCATE t", "CREATE TABLE t (a INT)") == ["truncate_table"]
    assert edits_of("truncate table shop . t WAIT 3", "CREATE TABLE t (a INT)", context=MARIADB) == ["truncate_table"]
    assert resolved("TRUNCATE gone").tables == (GONE,)


def test_drop_database_drops_its_tables_first() -> None:
    catalog = after("CREATE TABLE t (a INT)", "CREATE TABLE x.t (a INT)", "CREATE TABLE u (a INT)")
    edits = resolve("DROP SCHEMA IF EXISTS shop", MYSQL, catalog).edits
    assert [edit.kind for edit in edits] == ["drop_table", "drop_table", "drop_database"]
    assert names(apply_all(edits, catalog)) == ["x.t"]


@pytest.mark.parametrize(
    "clause,context,expected",
    [
        ("", MYSQL, "latin2 latin2_bin"),
        ("CHARACTER SET latin1", MYSQL, "latin1 latin1_swedish_ci"),
        ("DEFAULT CHARSET = utf8 COLLATE 'utf8_bin'", MYSQL, "utf8mb3 utf8mb3_bin"),
        ("COLLATE greek_bin ENCRYPTION='N' READ ONLY = 1", MYSQL, "greek greek_bin"),
        ("CHARACTER SET DEFAULT", MYSQL57, "latin2 latin2_bin"),
        ("CHARACTER SET DEFAULT COMMENT 'x'", MARIADB, "latin2 latin2_general_ci"),
    ],
)
def test_databases_take_their_charset_from_clause_or_server(
    clause: str, context: StatementContext, expected: str
) -> None:
    catalog = Catalog(charset="latin2", collation="latin2_bin")
    for verb in ("CREATE DATABASE", "CREATE SCHEMA IF NOT EXISTS"):
        database = after(f"{verb} d {clause}", context=context, catalog=catalog).databases["d"]
        assert f"{database.charset} {database.collation}" == expected


def test_alter_database_means_the_default_one_where_it_names_none() -> None:
    catalog = after("ALTER DATABASE CHARACTER SET latin1", "ALTER SCHEMA `shop` DEFAULT COLLATE latin1_bin")
    assert catalog.databases["shop"].collation == "latin1_bin"
    assert resolved("ALTER DATABASE shop READ ONLY = 1").edits == ()


@pytest.mark.parametrize(
    "version, collation", [(100529, "koi8r_general_ci"), (101119, "latin2_general_ci"), (0, "latin2_general_ci")]
)
def test_a_database_keeps_its_charset_by_default_before_mariadb_109(version: int, collation: str) -> None:
    old = replace(MARIADB, version=version)
    catalog = Catalog(charset="latin2", collation="latin2_bin")
    made = "CREATE DATABASE d CHARACTER SET koi8r"
    assert (
        after(made, "ALTER DATABASE d CHARACTER SET DEFAULT", context=old, catalog=catalog).databases["d"].collation
        == collation
    )


def test_before_mariadb_109_a_default_charset_comes_with_its_collation() -> None:
    catalog = Catalog(charset="latin2", collation="latin2_bin")
    for version, collation in ((100529, "latin2_bin"), (101119, "latin2_general_ci")):
        context = replace(MARIADB, version=version)
        made = after("CREATE DATABASE d CHARACTER SET DEFAULT", context=context, catalog=catalog).databases["d"]
        assert made.collation == collation


def test_before_mariadb_109_convert_takes_the_charset_of_the_sessions_database() -> None:
    catalog = Catalog(charset="latin2", collation="latin2_bin")
    for version, collation in ((100529, "koi8r_bin"), (101119, "greek_general_ci")):
        context = replace(MARIADB, version=version)
        found = after(
            "CREATE DATABASE shop COLLATE koi8r_bin",
            "CREATE DATABASE d COLLATE greek_bin",
            "CREATE TABLE d.t (a TEXT CHARACTER SET latin1)",
            "ALTER TABLE d.t CONVERT TO CHARACTER SET DEFAULT",
            context=context,
            catalog=catalog,
        )
        assert found.tables[TableName("d", "t")].collation == collation


def test_system_tables_are_nobodys_business() -> None:
    for sql in (
        "TRUNCATE mysql.slow_log",
        "CREATE TABLE sys.t (a INT)",
        "ALTER TABLE mysql.user FROB",
        "DROP TABLE mysql.t",
    ):
        assert resolved(sql).edits == ()
        assert resolved(sql).tables == ()


def test_no_default_database_and_no_name_for_one_is_said() -> None:
    found = resolve("DROP TABLE t", StatementContext(), Catalog())
    assert (found.kind, found.reason) == ("not_understood", "cannot be parsed: no default database for the table 't'")


def test_names_may_be_digits_behind_a_dot() -> None:
    assert names(after("CREATE TABLE shop.123 (a INT)", "CREATE TABLE `4 5`.`6``7` (a INT)")) == ["4 5.6`7", "shop.123"]


@pytest.mark.parametrize(
    "sql,tables",
    [
        ("INSERT LOW_PRIORITY IGNORE INTO t SELECT * FROM gone", (T,)),
        ("REPLACE shop.u VALUES (1)", (U,)),
        ("UPDATE t SET a = 1", (T,)),
        ("UPDATE t AS x, u JOIN (SELECT * FROM gone) y ON x.a = u.a SET x.a = 1", (T, U)),
        ("DELETE QUICK FROM t WHERE a IN (SELECT a FROM gone)", (T,)),
        ("DELETE x, y FROM t x INNER JOIN u AS y", (T, U)),
        ("DELETE FROM x USING t AS x LEFT JOIN u ON 1", (T, U)),
        ("LOAD DATA LOCAL INFILE 'TABLE' INTO TABLE t FIELDS TERMINATED BY ','", (T,)),
        ("WITH c AS (SELECT 1) UPDATE t, c SET a = 1", (T, TableName("shop", "c"))),
        ("INSERT INTO mysql.user VALUES (1)", ()),
        ("CALL p(1)", ()),
        ("SELECT f()", ()),
    ],
)
def test_changes_of_rows_name_the_tables_they_change(sql: str, tables: tuple[TableName, ...]) -> None:
    found = resolved(sql)
    assert (found.kind, found.tables, found.edits) == ("dml", tables, ())


@pytest.mark.parametrize(
    "sql,tables",
    [
        ("ALTER TABLE t FROBNICATE WITH (x)", (T,)),
        ("ALTER TABLE t ADD c WIDGET", (T,)),
        ("ALTER TABLE t ADD c CHAR(1) DEFAULT 'open", (T,)),
        ("CREATE TABLE t (a INT FROB)", (T,)),
        ("RENAME TABLE t TO u, gone TO", (T, U, GONE)),
        ("DROP TABLE t, u FROB", (T, U)),
        ("CREATE INDEX i FROB ON t", (T,)),
        ("FROBNICATE t", ()),
    ],
)
def test_what_is_not_understood_names_its_tables(sql: str, tables: tuple[TableName, ...]) -> None:
    found = resolved(sql)
    assert (found.kind, found.tables, found.edits) == ("not_understood", tables, ())
    assert found.reason


def test_statements_that_failed_half_way() -> None:
    before = "CREATE TABLE t (a INT)"
    failed = StatementContext(flavor="mariadb", database="shop", error_code=1051)
    catalog = after(before)
    dropped = resolve("DROP TABLE t, gone", failed, catalog)
    assert (dropped.kind, [edit.kind for edit in dropped.edits]) == ("ddl", ["drop_table"])
    replaced = resolve("CREATE OR REPLACE TABLE t (a SERIAL)", failed, catalog)
    assert (replaced.kind, [edit.kind for edit in replaced.edits]) == ("ddl", ["drop_table"])
    altered = resolve("ALTER TABLE t ADD b INT", failed, catalog)
    assert (altered.kind, altered.tables, altered.reason) == (
        "not_understood",
        (T,),
        "it failed with error 1051 half-way",
    )


def test_a_drop_that_a_foreign_key_stopped_tells_not_what_it_dropped() -> None:
    failed = StatementContext(database="shop", version=50722, error_code=1217)
    dropped = resolve("DROP TABLE t, u", failed, after("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)"))
    assert (dropped.kind, dropped.edits) == ("not_understood", ())
    assert dropped.tables == (TableName("shop", "t"), TableName("shop", "u"))
