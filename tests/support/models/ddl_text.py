"""Statements in, readable lines out: what the golden tests of DDL are written with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from historian.ddl import Resolution, StatementContext, resolve
from historian.names import TableName
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog, Column, Database, Snapshot, UniqueKey

__all__ = ["MARIADB", "MYSQL", "MYSQL57", "after", "described", "edits_of", "resolved", "shop", "table"]

MYSQL = StatementContext(database="shop", version=80031, utf8mb4_collation="utf8mb4_0900_ai_ci")
MYSQL57 = StatementContext(database="shop", version=50722)
MARIADB = StatementContext(flavor="mariadb", database="shop", version=101119)


def shop(charset: str = "utf8mb4", collation: str = "utf8mb4_bin") -> Catalog:
    """A catalog with the database ``shop`` and no table."""
    return Catalog(databases={"shop": Database(name="shop", charset=charset, collation=collation)})


def after(*statements: str, context: StatementContext = MYSQL, catalog: Catalog | None = None) -> Catalog:
    """The catalog behind statements that are all understood."""
    catalog = shop() if catalog is None else catalog
    for sql in statements:
        resolution = resolve(sql, context, catalog)
        assert resolution.kind in ("ddl", "irrelevant"), f"{sql}: {resolution.reason}"
        catalog = apply_all(resolution.edits, catalog)
    return catalog


def resolved(sql: str, *before: str, context: StatementContext = MYSQL) -> Resolution:
    """What *sql* does behind the statements *before*."""
    return resolve(sql, context, after(*before, context=context))


def edits_of(sql: str, *before: str, context: StatementContext = MYSQL) -> list[str]:
    """The edits of *sql*, a line each, without the table's name."""
    resolution = resolved(sql, *before, context=context)
    assert resolution.kind == "ddl", resolution.reason
    return [_line(edit) for edit in resolution.edits]


def table(catalog: Catalog, name: str = "shop.t") -> list[str]:
    """The table's columns and keys, a line each."""
    return described(catalog.tables[TableName(*name.split(".", 1))])


def described(snapshot: Snapshot) -> list[str]:
    """Columns and keys, a line each."""
    names = {column.id: column.name for column in snapshot.columns}
    lines = [_column(column) for column in snapshot.columns]
    if snapshot.primary_key:
        lines.append(f"primary key ({', '.join(names[column] for column in snapshot.primary_key)})")
    for what, keys in (("unique", snapshot.unique_keys), ("key", snapshot.other_keys)):
        lines += [f"{what} {key.name} ({', '.join(_parts(key, names))})" for key in keys]
    return lines


def _parts(key: UniqueKey, names: dict[int, str]) -> Iterator[str]:
    for column, prefix in zip(key.columns, key.prefixes or (0,) * len(key.columns), strict=True):
        yield names.get(column, "expression") + (f"({prefix})" if prefix else "")


def _column(column: Column) -> str:
    words = [column.name, str(column.type)]
    if column.type.collation:
        words.append(column.type.collation)
    if not column.nullable:
        words.append("not null")
    if column.default is not None:
        words.append(f"default {column.default if column.default_is_expression else repr(column.default)}")
    if column.on_update:
        words.append(f"on update {column.on_update}")
    if column.generated:
        words.append(f"{column.generated} as {column.generation_expression}")
    words += [
        word for word, said in (("auto_increment", column.auto_increment), ("invisible", column.invisible)) if said
    ]
    return " ".join(words)


def _line(edit: Any) -> str:
    said = []
    for name in edit.__slots__:
        value = getattr(edit, name)
        if name in ("table", "kind", "table_id"):
            continue
        if isinstance(value, Column):
            value = f"{value.id}: {_column(value)}"
        elif isinstance(value, Snapshot):
            value = f"{value.table_id}: {value.name}"
        said.append(f"{name}={value}")
    return " ".join([edit.kind, *said])
