"""SQL files applied without a server: a schema given by hand, and the statements of a migration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path

from historian.charsets.client_text import printable
from historian.ddl import Resolution, ScriptError, ScriptStatement, StatementContext, read_script, resolve
from historian.errors import SourceError
from historian.schema.applying import apply_all
from historian.schema.edits import SetDatabase
from historian.schema.snapshots import Catalog, Database

__all__ = ["AppliedStatement", "applied", "catalog_of", "fresh_server", "sql_text"]

_SHOWN_CHARACTERS = 200
_NEWEST = {"mysql": 90700, "mariadb": 110800}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedStatement:
    """A statement of a file, what it does, and the catalog behind it."""

    statement: ScriptStatement
    resolution: Resolution
    before: Catalog
    after: Catalog


def fresh_server(flavor: str, version: int = 0, database: str = "") -> tuple[Catalog, StatementContext]:
    """The catalog and the session of a server of that kind as it comes; of the newest that is known where *version* is 0."""
    version = version or _NEWEST[flavor]
    charset, collation = _defaults(flavor, version)
    context = StatementContext(
        flavor=flavor,
        version=version,
        database=database,
        client_charset="",
        utf8mb4_collation=collation if charset == "utf8mb4" else "",
    )
    return Catalog(charset=charset, collation=collation), context


def sql_text(path: Path) -> str:
    """The text of an SQL file in UTF-8, with or without a mark of that; bytes that are no UTF-8 as single surrogates.

    MariaDB's dumps have such bytes in defaults of binary columns.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except OSError as error:
        raise SourceError("a file cannot be read", where=str(path), found=error.strerror) from None


def applied(sql: str, *, catalog: Catalog, context: StatementContext, where: str) -> Iterator[AppliedStatement]:
    """Applies the statements of *sql* to *catalog* one by one. A database that is used but not made is taken to be there.

    Statements that change rows alone change nothing here.

    Raises:
        SourceError: a statement is not understood, or does not fit the tables; *where* and its line are in it.
    """
    statements = read_script(sql, context)
    catalog = _with_database(catalog, context.database)
    while True:
        try:
            statement = next(statements, None)
        except ScriptError as error:
            raise SourceError(
                "an SQL file cannot be read",
                where=f"{where}:{error.line}",
                found=str(error),
                next_step="close the quote or comment; write a setting as a value",
            ) from None
        if statement is None:
            return
        catalog = _with_database(catalog, statement.context.database)
        resolution = resolve(statement.sql, statement.context, catalog)
        statement = replace(statement, sql=printable(statement.sql))
        if resolution.kind == "not_understood":
            raise _not_understood(statement, resolution, where)
        if _holds_bytes(resolution.edits):
            raise SourceError(
                "a statement has bytes that are no UTF-8 where text is expected",
                where=f"{where}:{statement.line}",
                found=_shown(statement.sql),
                next_step="save the file as UTF-8; bytes in defaults of BINARY, VARBINARY and BLOB may stay, or be x'...'",
            )
        after = apply_all(resolution.edits, catalog)
        yield AppliedStatement(statement=statement, resolution=resolution, before=catalog, after=after)
        catalog = after


def catalog_of(sql: str, *, flavor: str, where: str, version: int = 0, database: str = "") -> Catalog:
    """The catalog after the statements of *sql*, as a dump writes them: CREATE, USE, ALTER, SET.

    Raises:
        SourceError: a statement is not understood.
    """
    catalog, context = fresh_server(flavor, version, database)
    for step in applied(sql, catalog=catalog, context=context, where=where):
        catalog = step.after
    return catalog


def _defaults(flavor: str, version: int) -> tuple[str, str]:
    if flavor == "mariadb":
        return ("utf8mb4", "utf8mb4_uca1400_ai_ci") if version >= 110500 else ("latin1", "latin1_swedish_ci")
    return ("utf8mb4", "utf8mb4_0900_ai_ci") if version >= 80000 else ("latin1", "latin1_swedish_ci")


def _with_database(catalog: Catalog, name: str) -> Catalog:
    if not name or name in catalog.databases:
        return catalog
    made = Database(name=name, charset=catalog.charset, collation=catalog.collation)
    return apply_all((SetDatabase(database=made),), catalog)


def _holds_bytes(value: object) -> bool:
    """Whether a text in *value*, which may be of several parts, is none in UTF-8."""
    if isinstance(value, str):
        return not value.isascii() and any("\udc80" <= character <= "\udcff" for character in value)
    if isinstance(value, Mapping):
        return any(map(_holds_bytes, chain(value, value.values())))
    if isinstance(value, Iterable):
        return any(map(_holds_bytes, value))
    return is_dataclass(value) and any(_holds_bytes(getattr(value, each.name)) for each in fields(value))


def _shown(sql: str) -> str:
    return sql if len(sql) <= _SHOWN_CHARACTERS else f"{sql[:_SHOWN_CHARACTERS]}..."


def _not_understood(statement: ScriptStatement, resolution: Resolution, where: str) -> SourceError:
    next_step = "leave it out if it changes no table, else write it in forms that docs/reference/ddl.md names"
    if "no default database" in resolution.reason:
        next_step = "name the database: a USE before it, or --database"
    elif "is not known" in resolution.reason:
        next_step = "give the tables that are there already: --schema FILE.sql, as mysqldump --no-data writes it"
    return SourceError(
        "a statement is not understood",
        where=f"{where}:{statement.line}",
        found=f"{_shown(statement.sql)}\n{printable(resolution.reason)}",
        next_step=next_step,
    )
