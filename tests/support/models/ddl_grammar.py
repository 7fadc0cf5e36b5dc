"""Random DDL over the tables that are there: from plausible to nasty, the same for the same seed and the same catalog."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from historian.names import TableName
from historian.schema.snapshots import Catalog, Column, Snapshot

__all__ = ["DATABASES", "DdlGrammar", "is_ours"]

DATABASES = ("oracle_a", "oracle_B")
TABLES = ("t1", "T1", "t2", "t3", "t 4", "tä", "order", "t`6")
COLUMNS = ("id", "a", "b", "c", "D", "e e", "f", "g", "sel`ect", "über", "key", "name", "first", "after", "column")
KEYS = ("k1", "k2", "K3", "a", "b", "u 1")
CHARSETS = ("utf8mb4", "latin1", "utf8", "utf8mb3", "ascii", "binary", "ucs2", "gbk", "utf16", "cp1251")
COLLATIONS = (
    "utf8mb4_bin",
    "utf8mb4_unicode_ci",
    "latin1_bin",
    "latin1_german1_ci",
    "utf8_general_ci",
    "ascii_bin",
    "binary",
)
MARIADB_COLLATIONS = ("uca1400_ai_ci", "uca1400_as_cs", "utf8mb4_uca1400_nopad_ai_ci")
MEMBERS = ("'b\\\\s'", "'n\\nl'", "'x'", "'y'", "'it''s'", "'Z z'", "'a,b'", "'é'", "''")
SET_MEMBERS = ("'b\\\\s'", "'n\\nl'", "'x'", "'y'", "'it''s'", "'Z z'", "'é'")
SESSIONS = (
    "SET sql_mode = ''",
    "SET sql_mode = ''",
    "SET sql_mode = 'STRICT_TRANS_TABLES'",
    "SET sql_mode = 'ANSI_QUOTES'",
    "SET sql_mode = 'ORACLE'",
    "SET sql_mode = 'ANSI'",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = 'REAL_AS_FLOAT'",
    "SET sql_mode = DEFAULT",
    "SET explicit_defaults_for_timestamp = 0",
    "SET explicit_defaults_for_timestamp = 1",
    "SET time_zone = '+02:00'",
    "SET time_zone = '-03:30'",
    "SET NAMES utf8mb4",
    "SET NAMES latin1",
    "SET character_set_server = latin1",
    "SET character_set_server = utf8mb4",
    "SET collation_server = utf8mb4_bin",
    "SET default_collation_for_utf8mb4 = utf8mb4_general_ci",
    "SET default_collation_for_utf8mb4 = utf8mb4_0900_ai_ci",
    "SET sql_generate_invisible_primary_key = 1",
    "SET sql_generate_invisible_primary_key = 0",
    "SET character_set_collations = ''",
    "SET character_set_collations = DEFAULT",
    "SET character_set_collations = 'utf8mb4=utf8mb4_unicode_ci'",
    f"USE `{DATABASES[0]}`",
    f"USE `{DATABASES[1]}`",
)


def is_ours(name: TableName) -> bool:
    """Whether it is a table of the databases that statements are made for; a server may have their names in lower case."""
    return name.database.lower() in {database.lower() for database in DATABASES}


@dataclass
class DdlGrammar:
    """Makes statements for a server of that flavor."""

    seed: int
    flavor: str
    random: random.Random = field(init=False)
    database: str = DATABASES[0]

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def session(self) -> str:
        """A setting of the session; not all servers know all."""
        return self.random.choice(SESSIONS)

    def statement(self, catalog: Catalog) -> str:
        """A statement on one of the tables of *catalog*, or one that makes one."""
        tables = [table for name, table in catalog.tables.items() if is_ours(name)]
        if len(tables) < 3:
            return self.create(tables)
        makers: tuple[tuple[int, Callable[[], str]], ...] = (
            (12, lambda: self.create(tables)),
            (60, lambda: self.alter(self.random.choice(tables))),
            (6, lambda: self.drop(tables)),
            (6, lambda: self.rename(tables)),
            (3, lambda: f"TRUNCATE {self.maybe('TABLE ')}{self.table(self.random.choice(tables).name)}"),
            (6, lambda: self.index(self.random.choice(tables))),
            (4, self.of_database),
            (4, self.nothing),
            (2, lambda: self.of_partitions(self.random.choice(tables))),
        )
        return self.decorated(self.weighted(makers)())

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def weighted(self, makers: Sequence[tuple[int, Callable[[], str]]]) -> Callable[[], str]:
        return self.random.choices([make for _, make in makers], [weight for weight, _ in makers])[0]

    def maybe(self, text: str, chance: float = 0.5) -> str:
        return text if self.random.random() < chance else ""

    def pick(self, *texts: str) -> str:
        return self.random.choice(texts)

    def decorated(self, sql: str) -> str:
        """Comments and blanks in places where they mean nothing."""
        if self.random.random() < 0.1:
            sql = sql.replace(" ", self.pick("  ", "\n", " /* , ( ' */ ", " -- ' x\n", " # )\n"), 1)
        if self.random.random() < 0.05:
            sql = f"/* {self.pick('DROP TABLE t1', 'x')} */ {sql}"
        return sql

    def quoted(self, name: str) -> str:
        if name.isascii() and name.isidentifier() and name.lower() not in RESERVED and self.random.random() < 0.6:
            return name
        return "`" + name.replace("`", "``") + "`"

    def table(self, name: TableName) -> str:
        if name.database == self.database and self.random.random() < 0.6:
            return self.quoted(name.table)
        return f"{self.quoted(name.database)}{self.pick('.', '.', ' . ')}{self.quoted(name.table)}"

    def some_name(self) -> TableName:
        return TableName(self.random.choice(DATABASES), self.random.choice(TABLES))

    def column(self, table: Snapshot | None) -> str:
        """A column of the table, or rarely another, in any letter case."""
        name = self.random.choice(COLUMNS)
        if table is not None and self.random.random() < 0.95:
            name = self.random.choice(table.columns).name
        return self.quoted(name.upper() if self.random.random() < 0.05 else name)

    def new_column(self, table: Snapshot | None) -> str:
        taken = set() if table is None else {column.name.lower() for column in table.columns}
        free = [name for name in COLUMNS if name.lower() not in taken]
        return self.quoted(self.random.choice(free or COLUMNS))

    # ---- columns -----------------------------------------------------------------------------------------------------

    def definition(self) -> str:
        """Type and attributes of a column."""
        kind, default = self.type_and_default()
        parts = [kind]
        attributes = []
        chance = self.random.random()
        if chance < 0.35:
            attributes.append("NOT NULL")
        elif chance < 0.45:
            attributes.append("NULL")
        if default and self.random.random() < 0.5:
            attributes.append(f"DEFAULT {default}")
        if kind.startswith(("TIMESTAMP", "DATETIME")) and self.random.random() < 0.4:
            attributes.append(f"ON UPDATE CURRENT_TIMESTAMP{kind.partition('(')[1]}{kind.partition('(')[2]}")
        attributes += [
            text
            for text, often in (
                ("COMMENT 'it''s, (a) \\\\ \"comment\"'", 0.05),
                ("UNIQUE", 0.04),
                ("UNIQUE KEY", 0.02),
                ("PRIMARY KEY", 0.02),
                ("KEY", 0.01),
                ("CHECK (1 > 0)", 0.03),
                ("CONSTRAINT CHECK (length('),') < 3)", 0.01),
                ("COLUMN_FORMAT DYNAMIC", 0.01),
                ("INVISIBLE", 0.03),
                ("/*!80023 INVISIBLE */", 0.02),
                ("/*M!100300 INVISIBLE */", 0.02),
                ("/*!99999 NOT REAL */", 0.01),
            )
            if self.random.random() < often
        ]
        self.random.shuffle(attributes)
        return " ".join(parts + attributes)

    def type_and_default(self) -> tuple[str, str]:
        make = self.weighted(
            (
                (24, self.integer),
                (10, self.exact_or_floating),
                (14, self.temporal),
                (26, self.characters),
                (8, self.binary),
                (8, self.enumeration),
                (6, self.other),
                (4, self.generated),
            )
        )
        kind, _, default = make().partition("|")
        if default and self.random.random() < 0.08:
            default = f"({default})"
        return kind, default or self.maybe("NULL", 0.1)

    def integer(self) -> str:
        name = self.pick("INT", "INTEGER", "BIGINT", "SMALLINT", "TINYINT", "MEDIUMINT", "INT8", "INT1", "MIDDLEINT")
        width = self.pick("", "", "(1)", "(11)", "(5)")
        sign = self.pick("", "", "", " UNSIGNED", " SIGNED", " ZEROFILL", " UNSIGNED ZEROFILL")
        default = self.pick("0", "1", "-1", "+7", "'12'", "1.5", "0x1F", "b'101'", "TRUE", "FALSE", "100")
        if self.random.random() < 0.1:
            return f"{self.pick('BOOL', 'BOOLEAN')}|{self.pick('TRUE', '0', '1')}"
        return f"{name}{width}{sign}|{default}"

    def exact_or_floating(self) -> str:
        name = self.pick(
            "DECIMAL",
            "DEC",
            "NUMERIC",
            "FIXED",
            "FLOAT",
            "DOUBLE",
            "DOUBLE PRECISION",
            "REAL",
            "FLOAT(20)",
            "FLOAT(30)",
        )
        digits = "" if "(" in name else self.pick("", "(10,2)", "(10, 2)", "(30,10)", "(5,0)")
        if name in ("DECIMAL", "NUMERIC") and not digits:
            digits = self.pick("", "(12)", "(0)", "(65,30)")
        sign = self.pick("", "", "", " UNSIGNED", " ZEROFILL")
        default = self.pick("0", "1", "1.5", "'2.25'", "1e3", "0.1", "12345.678", "1e-5", "99999.99")
        return f"{name}{digits}{sign}|{default}"

    def temporal(self) -> str:
        fraction = self.pick("", "", "", "(3)", "(6)", "(0)", "(1)")
        now = f"{self.pick('CURRENT_TIMESTAMP', 'NOW', 'LOCALTIMESTAMP')}{fraction or '()'}"
        moment = self.pick(
            "'2020-01-02 03:04:05'", "'2021-12-31 23:59:59.987'", "20200102030405", "'2020/1/2'", "'0000-00-00'"
        )
        return self.weighted(
            (
                (3, lambda: f"TIMESTAMP{fraction}|{self.pick(now, now, moment, '0')}"),
                (3, lambda: f"DATETIME{fraction}|{self.pick(now, now, moment, '0')}"),
                (
                    2,
                    lambda: (
                        f"DATE|{self.pick(chr(39) + '2020-1-2' + chr(39), '20200102', '0', chr(39) + '70-01-01' + chr(39))}"
                    ),
                ),
                (
                    2,
                    lambda: (
                        f"TIME{fraction}|{self.pick(chr(39) + '10:11:12.5' + chr(39), '123', '0', chr(39) + '-1:02' + chr(39))}"
                    ),
                ),
                (
                    1,
                    lambda: (
                        f"YEAR{self.pick('', '(4)')}|{self.pick('2020', '70', '69', '0', chr(39) + '99' + chr(39))}"
                    ),
                ),
            )
        )()

    def charset_clause(self) -> str:
        return self.pick(
            *("", "", "", "", " BINARY", " ASCII", " UNICODE", " BYTE"),
            f" {self.pick('CHARACTER SET', 'CHARSET', 'CHAR SET')} {self.random.choice(CHARSETS)}",
            f" COLLATE {self.random.choice(self.collations())}",
            " CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
            " CHARACTER SET latin1 COLLATE 'latin1_bin'",
            " BINARY CHARACTER SET latin1",
            " CHARACTER SET 'utf8mb4' BINARY",
        )

    def collations(self) -> tuple[str, ...]:
        return COLLATIONS + (MARIADB_COLLATIONS if self.flavor == "mariadb" else ())

    def characters(self) -> str:
        length = self.pick("1", "10", "20", "64", "255")
        name = self.pick(
            *("CHAR", f"CHAR({length})", f"CHARACTER({length})", f"VARCHAR({length})", f"VARCHAR({length})"),
            *(f"VARCHAR({length})", f"CHARACTER VARYING({length})", f"NATIONAL CHAR({length})", f"NVARCHAR({length})"),
            *(f"NATIONAL VARCHAR({length})", f"NCHAR({length})", f"NCHAR VARCHAR({length})", "VARCHAR(20000)"),
            *("VARCHAR(65000)", "TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "TEXT(63)", "TEXT(64)", "TEXT(20000)"),
            *("LONG", "LONG VARCHAR", "LONG CHARACTER VARYING", "TEXT(0)"),
        )
        clause = "" if name.startswith("N") else self.charset_clause()
        default = self.pick(
            "''", "'a'", "'x y '", "'it''s'", "'\\\\n'", "5", "1.50", "0x41", "'a' 'b'", "_latin1'q'", "N'n'", "'é'"
        )
        if "TEXT" in name or "LONG" in name:
            default = self.maybe("('text')", 0.5) if self.flavor == "mysql" else default
        return f"{name}{clause}|{default}"

    def binary(self) -> str:
        name = self.pick(
            "BINARY(4)",
            "BINARY",
            "VARBINARY(10)",
            "VARBINARY(300)",
            "BLOB",
            "TINYBLOB",
            "LONGBLOB",
            "BLOB(100)",
            "BLOB(70000)",
            "LONG VARBINARY",
            "VARBINARY(66000)",
        )
        default = self.pick("'a'", "''", "0x4142", "x'43'") if "BINARY(" in name else ""
        return f"{name}|{default}"

    def enumeration(self) -> str:
        if self.random.random() < 0.6:
            labels = self.random.sample(MEMBERS, self.random.randint(1, 4))
            return f"ENUM({', '.join(labels)}){self.charset_clause()}|{labels[0]}"
        labels = self.random.sample(SET_MEMBERS, self.random.randint(1, 4))
        default = ",".join(label[1:-1] for label in reversed(labels))
        return f"SET({','.join(labels)}){self.charset_clause()}|'{default}'"

    def other(self) -> str:
        own = (
            ("UUID", "INET6", "INET4", "NUMBER", "NUMBER(7,2)", "VARCHAR2(9)", "CLOB", "RAW(4)")
            if self.flavor == "mariadb"
            else ("POINT", "GEOMETRY")
        )
        return self.pick("JSON", "JSON", "BIT", "BIT(8)|b'11'", "BIT(64)|5", "GEOMETRYCOLLECTION", "SERIAL", *own)

    def generated(self) -> str:
        kind = self.pick("INT", "VARCHAR(20)", "DECIMAL(10,2)")
        stored = self.pick("", " VIRTUAL", " STORED", " PERSISTENT")
        return (
            f"{kind} {self.maybe('GENERATED ALWAYS ')}AS ({self.pick('1 + 1', '(2)', 'length(concat(1, 2))')}){stored}|"
        )

    # ---- keys --------------------------------------------------------------------------------------------------------

    def key(self, table: Snapshot | None, columns: Sequence[str] = ()) -> str:
        parts = list(columns) or [self.column(table) for _ in range(self.random.choice((1, 1, 2, 3)))]
        parts = list(dict.fromkeys(parts))
        inside = ", ".join(part + self.pick("", "", "", " ASC", " DESC", "(3)") for part in parts)
        name = self.maybe(f" {self.quoted(self.random.choice(KEYS))}", 0.5)
        using = self.maybe(" USING BTREE", 0.1)
        after = self.pick("", "", "", " COMMENT 'k'", " KEY_BLOCK_SIZE = 8", " USING BTREE")
        head = self.pick(
            *("PRIMARY KEY", f"CONSTRAINT {self.quoted('pk')} PRIMARY KEY"),
            *(f"UNIQUE{name}", f"UNIQUE KEY{name}", f"UNIQUE INDEX{name}", f"CONSTRAINT UNIQUE{name}"),
            *(f"CONSTRAINT {self.quoted(self.random.choice(KEYS))} UNIQUE KEY", f"KEY{name}", f"INDEX{name}"),
        )
        return f"{head}{using} ({inside}){after}"

    def functional(self) -> str:
        unique = self.pick("", "UNIQUE ")
        return f"{unique}{self.pick('KEY', 'INDEX')} {self.quoted(self.random.choice(KEYS))} ((1 + {self.pick('1', '(2)')}))"

    def foreign(self, table: Snapshot | None) -> str:
        name = self.maybe(f"CONSTRAINT fk{self.random.randint(1, 999)} ", 0.5)
        action = self.pick("", " ON DELETE CASCADE", " ON UPDATE SET NULL", " MATCH FULL ON DELETE NO ACTION")
        column = self.column(table)
        target = self.quoted(self.random.choice(TABLES))
        return f"{name}FOREIGN KEY {self.maybe('fkey ', 0.3)}({column}) REFERENCES {target} ({column}){action}"

    # ---- statements --------------------------------------------------------------------------------------------------

    def create(self, tables: Sequence[Snapshot]) -> str:
        name = self.table(self.some_name())
        replace = self.maybe("OR REPLACE ", 0.3) if self.flavor == "mariadb" else ""
        head = f"CREATE {replace}TABLE {self.maybe('IF NOT EXISTS ', 0.2)}{name}"
        if tables and self.random.random() < 0.1:
            like = self.table(self.random.choice(tables).name)
            return f"{head} {self.pick(f'LIKE {like}', f'(LIKE {like})')}"
        plain = self.flavor == "mariadb"
        sources = [
            table for table in tables if not any(_is_misprinted(column, plain=plain) for column in table.columns)
        ]
        if sources and (name.isascii() or not plain) and self.random.random() < 0.1 and not self.is_old:
            source = self.random.choice(sources)
            body = self.maybe(f"({self.quoted('own')} {self.definition()}) ", 0.3)
            return f"{head} {body}{self.options()} {self.pick('', 'AS ')}SELECT * FROM {self.table(source.name)}"
        columns = [self.new_column(None) for _ in range(self.random.randint(1, 8))]
        columns = list({column.strip("`").lower(): column for column in columns}.values())
        body = [f"{column} {self.definition()}" for column in columns]
        body += [
            self.key(None, self.random.sample(columns, min(len(columns), self.random.choice((1, 1, 2)))))
            for _ in range(self.random.choice((0, 1, 1, 2)))
        ]
        if self.random.random() < 0.1:
            body.append(
                f"{self.maybe('CONSTRAINT chk' + str(self.random.randint(1, 999)) + ' ')}CHECK ({columns[0]} IS NOT NULL OR ')' <> '(')"
            )
        return f"{head} ({', '.join(body)}) {self.options()}{self.partitions()}"

    is_old = False

    def options(self) -> str:
        options = (
            "ENGINE=InnoDB",
            f"DEFAULT CHARSET={self.random.choice(CHARSETS)}",
            f"CHARACTER SET {self.random.choice(CHARSETS)}",
            f"COLLATE {self.random.choice(self.collations())}",
            "DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin",
            "COMMENT='a '' comment'",
            "AUTO_INCREMENT 7",
            "ROW_FORMAT=DYNAMIC",
            "STATS_PERSISTENT = DEFAULT",
            "MAX_ROWS=10 MIN_ROWS 1",
        )
        chosen = [option for option in options if self.random.random() < 0.1]
        return self.pick(" ", ", ").join(chosen)

    def partitions(self) -> str:
        return self.pick(
            *[""] * 12,
            " PARTITION BY HASH (1 + 1) PARTITIONS 2",
            " PARTITION BY KEY () PARTITIONS 3",
            " PARTITION BY RANGE (1) (PARTITION p0 VALUES LESS THAN (5) COMMENT 'SELECT', PARTITION p1 VALUES LESS THAN MAXVALUE)",
            " PARTITION BY LINEAR KEY ALGORITHM = 2 () PARTITIONS 2",
        )

    def of_partitions(self, table: Snapshot) -> str:
        action = self.pick(
            *("ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 1", "REBUILD PARTITION ALL", "ANALYZE PARTITION p0"),
            *("TRUNCATE PARTITION ALL", "TRUNCATE PARTITION p0", "DROP PARTITION p0", "REMOVE PARTITIONING"),
            *("REORGANIZE PARTITION", "PARTITION BY HASH (2) PARTITIONS 3", "CHECK PARTITION ALL"),
        )
        return f"ALTER TABLE {self.table(table.name)} {action}"

    def drop(self, tables: Sequence[Snapshot]) -> str:
        names = [
            self.table(table.name)
            for table in self.random.sample(tables, min(len(tables), self.random.choice((1, 1, 2))))
        ]
        exists = self.maybe("IF EXISTS ", 0.5)
        if self.random.random() < 0.3:
            names.append(self.table(self.some_name()))
        return f"DROP {self.pick('TABLE', 'TABLE', 'TABLES')} {exists}{', '.join(dict.fromkeys(names))}{self.pick('', '', ' CASCADE', ' RESTRICT')}"

    def rename(self, tables: Sequence[Snapshot]) -> str:
        first, second = self.random.sample(tables, 2)
        word = self.pick("TABLE", "TABLES")
        if self.random.random() < 0.4:
            spare = TableName(self.random.choice(DATABASES), "spare")
            pairs = ((first.name, spare), (second.name, first.name), (spare, second.name))
            return f"RENAME {word} " + ", ".join(f"{self.table(old)} TO {self.table(new)}" for old, new in pairs)
        return f"RENAME {word} {self.table(first.name)} TO {self.table(self.some_name())}"

    def index(self, table: Snapshot) -> str:
        name = self.quoted(self.random.choice(KEYS))
        if self.random.random() < 0.3:
            return f"DROP INDEX {self.key_name(table)} ON {self.table(table.name)}"
        where = f"ON {self.table(table.name)} ({self.column(table)}{self.maybe(', ' + self.column(table), 0.3)})"
        return f"CREATE {self.pick('', 'UNIQUE ', 'UNIQUE ')}INDEX {name}{self.maybe(' USING BTREE', 0.2)} {where}{self.maybe(' ALGORITHM = INPLACE LOCK=NONE', 0.1)}"

    def key_name(self, table: Snapshot) -> str:
        names = [key.name for key in (*table.unique_keys, *table.other_keys)] or list(KEYS)
        return self.quoted(self.random.choice(names))

    def of_database(self) -> str:
        name = self.quoted(self.random.choice(DATABASES))
        word = self.pick("DATABASE", "SCHEMA")
        charset = self.pick(
            f"CHARACTER SET {self.random.choice(CHARSETS)}",
            f"DEFAULT CHARSET = {self.random.choice(CHARSETS)}",
            f"COLLATE {self.random.choice(COLLATIONS)}",
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            "DEFAULT CHARACTER SET DEFAULT",
        )
        return self.pick(
            f"ALTER {word} {name} {charset}",
            f"ALTER {word} {charset}",
            f"CREATE {word} IF NOT EXISTS {name} {charset}",
            f"CREATE {word} IF NOT EXISTS {name}",
        )

    def nothing(self) -> str:
        return self.pick(
            "CREATE OR REPLACE VIEW oracle_a.v AS SELECT 1 AS `TABLE`",
            "DROP VIEW IF EXISTS oracle_a.v",
            "CREATE TEMPORARY TABLE oracle_a.temporary (x INT)",
            "DROP TEMPORARY TABLE IF EXISTS oracle_a.temporary",
            "CREATE PROCEDURE oracle_a.p() BEGIN DROP TABLE IF EXISTS t1; END",
            "DROP PROCEDURE IF EXISTS oracle_a.p",
            "ANALYZE TABLE oracle_a.t1",
            "FLUSH TABLES",
            "CREATE USER IF NOT EXISTS oracle IDENTIFIED BY 'DROP TABLE t1'",
            "GRANT SELECT ON oracle_a.* TO oracle",
            "DROP USER IF EXISTS oracle",
        )

    # ---- ALTER TABLE -------------------------------------------------------------------------------------------------

    def alter(self, table: Snapshot) -> str:
        actions = [self.action(table) for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 4)))]
        if self.random.random() < 0.1:
            actions.append(
                self.pick(
                    "ALGORITHM=COPY", "ALGORITHM = DEFAULT", "LOCK=DEFAULT", "FORCE", "ENGINE=InnoDB", "COMMENT 'x'"
                )
            )
        exists = self.maybe("IF EXISTS ", 0.1) if self.flavor == "mariadb" else ""
        tail = self.pick(*[""] * 15, " PARTITION BY HASH (1) PARTITIONS 2", " REMOVE PARTITIONING")
        return f"ALTER {self.maybe('IGNORE ', 0.02)}TABLE {exists}{self.table(table.name)} {', '.join(actions)}{tail}"

    def action(self, table: Snapshot) -> str:
        return self.weighted(
            (
                (22, lambda: self.add(table)),
                (9, lambda: self.drop_column(table)),
                (
                    14,
                    lambda: (
                        f"MODIFY {self.word()}{self.if_exists()}{self.column(table)} {self.definition()}{self.position(table)}"
                    ),
                ),
                (
                    10,
                    lambda: (
                        f"CHANGE {self.word()}{self.if_exists()}{self.column(table)} {self.renamed(table)} {self.definition()}{self.position(table)}"
                    ),
                ),
                (10, lambda: f"RENAME COLUMN {self.column(table)} TO {self.renamed(table)}"),
                (4, lambda: self.swap(table)),
                (8, lambda: self.alter_column(table)),
                (8, lambda: f"ADD {self.key(table)}"),
                (6, lambda: self.drop_key(table)),
                (
                    2,
                    lambda: (
                        f"RENAME {self.pick('INDEX', 'KEY')} {self.key_name(table)} TO {self.quoted(self.random.choice(KEYS))}"
                    ),
                ),
                (3, lambda: self.rename_to(table)),
                (4, self.convert),
                (4, lambda: self.options() or "AUTO_INCREMENT = 9"),
                (1, lambda: f"ORDER BY {self.column(table)}"),
                (2, lambda: f"ADD (n1 {self.definition()}, {self.key(table)}, n2 {self.definition()})"),
                (2, lambda: self.moved(table)),
                (1, lambda: f"ADD {self.functional()}"),
                (1, lambda: f"ADD {self.foreign(table)}"),
                (1, lambda: f"ADD {self.pick('FULLTEXT', 'FULLTEXT KEY', 'SPATIAL INDEX')} ({self.column(table)})"),
                (1, lambda: f"ADD CONSTRAINT {self.quoted('chk')} CHECK ({self.column(table)} IS NOT NULL)"),
                (1, lambda: f"ALTER INDEX {self.key_name(table)} {self.pick('VISIBLE', 'INVISIBLE', 'NOT IGNORED')}"),
                (1, lambda: self.pick("DISABLE KEYS", "ENABLE KEYS", "ROW_FORMAT=COMPACT", "STATS_PERSISTENT 1")),
            )
        )()

    def rename_to(self, table: Snapshot) -> str:
        if self.flavor == "mariadb" and not (table.name.table.isascii() and table.name.table.isalnum()):
            return "FORCE"  # MariaDB leaves the old table behind as well, where its file's name is not its own
        return f"RENAME {self.pick('TO ', 'AS ', '')}{self.table(self.some_name())}"

    def word(self) -> str:
        return self.maybe("COLUMN ", 0.4)

    def if_exists(self) -> str:
        return self.maybe("IF EXISTS ", 0.1) if self.flavor == "mariadb" else ""

    def if_not_exists(self) -> str:
        return self.maybe("IF NOT EXISTS ", 0.1) if self.flavor == "mariadb" else ""

    def position(self, table: Snapshot) -> str:
        return self.pick("", "", "", " FIRST", f" AFTER {self.column(table)}", f" AFTER {self.column(table)}")

    def renamed(self, table: Snapshot) -> str:
        return self.column(table) if self.random.random() < 0.3 else self.new_column(table)

    def add(self, table: Snapshot) -> str:
        name = self.column(table) if self.random.random() < 0.1 else self.new_column(table)
        return f"ADD {self.word()}{self.if_not_exists()}{name} {self.definition()}{self.position(table)}"

    def moved(self, table: Snapshot) -> str:
        """Several columns to other places, types kept as far as their text tells."""
        chosen = self.random.sample(table.columns, min(len(table.columns), 3))
        return ", ".join(
            f"MODIFY {self.quoted(column.name)} {_text(column)}{self.position(table)}" for column in chosen
        )

    def drop_column(self, table: Snapshot) -> str:
        return f"DROP {self.word()}{self.if_exists()}{self.column(table)}"

    def swap(self, table: Snapshot) -> str:
        first, second = (
            self.quoted(self.random.choice(table.columns).name),
            self.quoted(self.random.choice(table.columns).name),
        )
        return f"RENAME COLUMN {first} TO {second}, RENAME COLUMN {second} TO {first}"

    def alter_column(self, table: Snapshot) -> str:
        default = self.type_and_default()[1] or "1"
        what = self.pick(f"SET DEFAULT {default}", "DROP DEFAULT", "SET DEFAULT NULL", "SET INVISIBLE", "SET VISIBLE")
        return f"ALTER {self.word()}{self.column(table)} {what}"

    def drop_key(self, table: Snapshot) -> str:
        exists = self.if_exists()
        return self.pick(
            "DROP PRIMARY KEY",
            f"DROP INDEX {exists}{self.key_name(table)}",
            f"DROP KEY {exists}{self.key_name(table)}",
            f"DROP CONSTRAINT {exists}{self.key_name(table)}",
        )

    def convert(self) -> str:
        charset = self.random.choice(CHARSETS)
        word = self.pick("CHARACTER SET", "CHARSET")
        collation = self.maybe(f" COLLATE {self.random.choice(self.collations())}", 0.2)
        return f"CONVERT TO {word} {self.pick(charset, charset, 'DEFAULT', 'utf8mb4')}{collation}"


def _is_misprinted(column: Column, *, plain: bool) -> bool:
    """Whether the statement that the server makes of CREATE TABLE … SELECT does not say what the column is.

    It forgets expressions and escapes bytes. With *plain* it is in no charset and no mode that could be told.
    """
    if column.default is not None and (column.default_is_expression or column.default.startswith("0x")):
        return True
    texts = (column.name, column.default or "", *column.type.labels)
    return plain and not all(text.isascii() and "\\" not in text and "\n" not in text for text in texts)


def _text(column: Column) -> str:
    charset = f" CHARACTER SET {column.type.charset} COLLATE {column.type.collation}" if column.type.charset else ""
    return f"{column.type}{charset}"


RESERVED = frozenset(("order", "key", "select", "column", "a b", "first", "after", "name"))
