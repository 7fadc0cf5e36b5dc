"""What columns become so that the server makes other values of those that are there, and expressions of generated columns."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["COMPUTED", "EXPRESSIONS", "REWRITES", "Expression"]

REWRITES: dict[str, tuple[str, ...]] = {
    "tinyint": ("VARCHAR(20)", "TINYINT UNSIGNED", "BIT(8)"),
    "smallint": ("TINYINT", "VARCHAR(20)", "CHAR(6)", "DECIMAL(6,1)"),
    "mediumint": ("SMALLINT", "VARCHAR(20)", "YEAR"),
    "int": ("SMALLINT", "TINYINT UNSIGNED", "VARCHAR(30)", "INT UNSIGNED", "DECIMAL(8,2)"),
    "bigint": ("INT", "VARCHAR(30)", "BIGINT UNSIGNED", "DECIMAL(12,2)", "DOUBLE"),
    "decimal": ("DECIMAL(12,1)", "DECIMAL(6,0)", "INT", "VARCHAR(60)", "DOUBLE"),
    "float": ("DECIMAL(20,3)", "BIGINT", "INT"),
    "double": ("DECIMAL(24,4)", "BIGINT", "VARCHAR(60)"),
    "varchar": ("VARCHAR(3)", "CHAR(5)", "INT", "VARCHAR(12) CHARACTER SET latin1", "VARBINARY(30)", "ENUM('','none')"),
    "char": ("CHAR(2)", "VARCHAR(4) CHARACTER SET latin1", "BIGINT", "DECIMAL(6,2)"),
    "tinytext": ("VARCHAR(5)", "TINYTEXT CHARACTER SET latin1"),
    "text": ("VARCHAR(8)", "TEXT CHARACTER SET latin1", "TINYTEXT", "INT"),
    "mediumtext": ("VARCHAR(9)", "TINYTEXT"),
    "enum": ("ENUM('off','paid','new')", "ENUM('n/a','new','off','paid','m4')", "VARCHAR(3)", "INT"),
    "set": ("SET('e','a','x')", "VARCHAR(4)", "INT"),
    "binary": ("BINARY(4)", "VARBINARY(3)"),
    "varbinary": ("VARBINARY(4)", "BINARY(12)"),
    "blob": ("VARBINARY(5)", "TINYBLOB"),
    "date": ("YEAR", "VARCHAR(12)", "INT"),
    "datetime": ("DATE", "DATETIME", "VARCHAR(16)", "TIME(1)"),
    "timestamp": ("DATE", "DATETIME(3)", "TIMESTAMP"),
    "time": ("TIME", "TIME(1)", "INT", "VARCHAR(8)"),
    "year": ("INT", "VARCHAR(4)", "TINYINT UNSIGNED"),
    "bit": ("INT", "BIT(4)", "VARBINARY(3)"),
    "json": ("TEXT", "LONGTEXT CHARACTER SET latin1"),
    "longtext": ("VARCHAR(11)",),
}
"""By the type that a column has. A session that is not strict cuts what does not fit; no type's text has more digits than the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Of a generated column, over a column whose name stands for ``{}``."""

    type: str
    text: str


EXPRESSIONS = (
    Expression(type="INT", text="LENGTH({})"),
    Expression(type="BIGINT", text="CHAR_LENGTH({}) * 3 - 1"),
    Expression(type="VARCHAR(64)", text="CONCAT('x', HEX(LEFT({}, 6)))"),
    Expression(type="TINYINT", text="{} IS NULL"),
    Expression(type="INT UNSIGNED", text="CRC32({})"),
)

COMPUTED = (
    "VARCHAR(40) DEFAULT (UUID())",
    "VARCHAR(40) NOT NULL DEFAULT (CONCAT('d', UUID()))",
    "DOUBLE DEFAULT (RAND())",
    "INT NOT NULL DEFAULT (FLOOR(RAND() * 1000))",
)
"""Added columns whose values the server computes for each row that is there."""
