"""The tables that a workload begins with, and the columns that its DDL adds."""

from __future__ import annotations

import random
from dataclasses import dataclass

__all__ = ["ADDED", "CONVERSIONS", "TABLES", "WIDENINGS", "AddedColumn", "InitialTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialTable:
    """A table's columns as SQL. ``narrow``: all INT NOT NULL, where a DROP and an ADD ... FIRST keep the shape."""

    name: str
    columns: str
    narrow: bool = False


TABLES = (
    InitialTable(
        name="orders",
        columns="""
            id_1 INT NOT NULL PRIMARY KEY, customer_2 BIGINT UNSIGNED,
            status_3 ENUM('new','paid','größer','it''s') NOT NULL DEFAULT 'new', total_4 DECIMAL(12,2),
            placed_5 DATETIME(3), `unit price_6` FLOAT, `größe_7` SMALLINT UNSIGNED DEFAULT 7, note_8 TEXT,
            touched_9 TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)""",
    ),
    InitialTable(
        name="Order_Lines",
        columns="""
            order_1 INT NOT NULL, line_2 VARCHAR(20) NOT NULL, amount_3 INT, price_4 DECIMAL(5,2),
            tags_5 SET('a','b','cd','e'), flag_6 BIT(1), mask_7 BIT(13), weight_8 DOUBLE,
            PRIMARY KEY (line_2, order_1)""",
    ),
    InitialTable(
        name="products",
        columns="""
            sku_1 VARCHAR(24) NOT NULL, title_2 CHAR(30), origin_3 VARCHAR(40) CHARACTER SET latin1, doc_4 JSON,
            photo_5 BLOB, digest_6 BINARY(8), raw_7 VARBINARY(30), year_8 YEAR, opens_9 TIME(2),
            exact_10 VARCHAR(30) COLLATE utf8mb4_bin, PRIMARY KEY (sku_1)""",
    ),
    InitialTable(
        name="events",
        columns="""
            owner_1 TINYINT NOT NULL, kind_2 TINYINT UNSIGNED, at_3 DATE, small_4 SMALLINT, medium_5 MEDIUMINT,
            umedium_6 MEDIUMINT UNSIGNED, label_7 VARCHAR(12), KEY by_owner (owner_1)""",
    ),
    InitialTable(
        name="visits",
        columns="""
            id_1 BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, page_2 VARCHAR(300), big_3 BIGINT,
            ubig_4 BIGINT UNSIGNED, uint_5 INT UNSIGNED, wide_6 DECIMAL(38,10), since_7 TIME, seen_8 TIMESTAMP NULL,
            whole_9 DATETIME, tiny_10 TINYTEXT, text_11 MEDIUMTEXT CHARACTER SET latin1, blob_12 LONGBLOB""",
    ),
    InitialTable(
        name="stock",
        columns="id_1 INT NOT NULL PRIMARY KEY, shelf_2 INT NOT NULL, onhand_3 INT NOT NULL, sold_4 INT NOT NULL",
        narrow=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedColumn:
    """A kind of column that DDL adds. ``defaults``: as SQL; none where the type takes no literal one."""

    stem: str
    type: str
    defaults: tuple[str, ...] = ()

    def clause(self, rng: random.Random) -> str:
        """Type, nullability and default, of those that the type allows."""
        if not self.defaults:
            return f"{self.type} NULL"
        default = rng.choice(self.defaults)
        # Older servers make a TIMESTAMP that does not say NULL a NOT NULL one, by a setting that no log tells.
        null = "NULL " if self.type == "TIMESTAMP" else ""
        choices = (f"NOT NULL DEFAULT {default}", f"{null}DEFAULT {default}", "NULL")
        return f"{self.type} {rng.choice(choices)}"


ADDED = (
    AddedColumn(stem="count", type="INT", defaults=("0", "42", "-7")),
    AddedColumn(stem="tiny", type="TINYINT", defaults=("1", "-128")),
    AddedColumn(stem="flag", type="TINYINT(1)", defaults=("0", "1")),
    AddedColumn(stem="small", type="SMALLINT UNSIGNED", defaults=("65535",)),
    AddedColumn(stem="ubig", type="BIGINT UNSIGNED", defaults=("18446744073709551615", "5")),
    AddedColumn(stem="rate", type="DECIMAL(5,2)", defaults=("1.50", "-0.01")),
    AddedColumn(stem="ratio", type="FLOAT", defaults=("0.5", "0.1")),
    AddedColumn(stem="mean", type="DOUBLE", defaults=("2.25",)),
    AddedColumn(stem="label", type="VARCHAR(20)", defaults=("'none'", "''", "'größer ''x'''")),
    AddedColumn(stem="latin", type="VARCHAR(20) CHARACTER SET latin1", defaults=("'façade'",)),
    AddedColumn(stem="code", type="CHAR(8)", defaults=("'n/a'",)),
    AddedColumn(stem="text", type="TEXT"),
    AddedColumn(stem="raw", type="VARBINARY(16)", defaults=("'abc'",)),
    AddedColumn(stem="blob", type="BLOB"),
    AddedColumn(stem="day", type="DATE", defaults=("'2024-02-29'",)),
    AddedColumn(stem="when", type="DATETIME(6)", defaults=("'2024-02-29 12:34:56.789012'",)),
    AddedColumn(stem="stamp", type="TIMESTAMP", defaults=("'2024-02-29 12:34:56'",)),
    AddedColumn(stem="length", type="TIME(3)", defaults=("'-01:02:03.004'",)),
    AddedColumn(stem="year", type="YEAR", defaults=("2024",)),
    AddedColumn(stem="state", type="ENUM('on','off','n/a')", defaults=("'off'",)),
    AddedColumn(stem="marks", type="SET('x','y','z')", defaults=("'x,z'", "''")),
    AddedColumn(stem="bits", type="BIT(10)", defaults=("b'101'",)),
    AddedColumn(stem="doc", type="JSON"),
    AddedColumn(stem="select", type="INT", defaults=("1",)),
)

WIDENINGS: dict[str, tuple[str, ...]] = {
    "tinyint": ("SMALLINT", "INT", "BIGINT", "DECIMAL(10,0)"),
    "smallint": ("INT", "BIGINT", "DOUBLE"),
    "mediumint": ("INT", "DECIMAL(12,2)"),
    "int": ("BIGINT", "BIGINT", "DECIMAL(12,2)", "DOUBLE"),
    "bigint": ("DECIMAL(22,2)",),
    "tinyint unsigned": ("SMALLINT UNSIGNED", "INT UNSIGNED", "DECIMAL(12,2)"),
    "smallint unsigned": ("INT UNSIGNED", "DOUBLE"),
    "mediumint unsigned": ("INT UNSIGNED", "DOUBLE"),
    "int unsigned": ("BIGINT UNSIGNED", "DECIMAL(20,0)"),
    "bigint unsigned": ("DECIMAL(22,2)",),
    "date": ("DATETIME(3)",),
    "float": ("DOUBLE",),
    "decimal(5,2)": ("DECIMAL(7,2)", "DECIMAL(7,4)"),
    "decimal(12,2)": ("DECIMAL(14,2)",),
    "varchar": ("VARCHAR(400)", "TEXT"),
}
"""What a column may become so that every value stays itself and a lake's column can follow."""

CONVERSIONS: dict[str, str] = {
    "smallint": "VARCHAR(30)",
    "int": "VARCHAR(30)",
    "bigint": "VARCHAR(30)",
    "decimal": "VARCHAR(60)",
}
"""What a column may become so that its values become others, and none is too great."""
