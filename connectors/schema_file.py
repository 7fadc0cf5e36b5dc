"""A schema given by hand: an SQL file whose statements make the first catalog."""

from __future__ import annotations

from historian.ddl import StatementContext, resolve, split_statements
from historian.edits import SetDatabase, apply_all
from historian.errors import SourceError
from historian.schema import Catalog, Database

__all__ = ["catalog_of"]


def catalog_of(sql: str, *, flavor: str, where: str) -> Catalog:
    """The catalog after the statements of *sql*, as a dump without rows writes them: CREATE, USE, ALTER, SET.

    A database that is used but not created is taken to be there.

    Raises:
        SourceError: a statement is not understood.
    """
    catalog = Catalog()
    database = ""
    for statement in split_statements(sql):
        words = statement.split(maxsplit=1)
        if words and words[0].lower() == "use":
            database = words[1].strip().strip("`")
            if database not in catalog.databases:
                made = Database(name=database, charset=catalog.charset, collation=catalog.collation)
                catalog = apply_all((SetDatabase(database=made),), catalog)
            continue
        resolution = resolve(statement, StatementContext(flavor=flavor, database=database), catalog)
        if resolution.kind == "not_understood":
            raise SourceError(
                "a statement of the schema file is not understood",
                where=where,
                found=f"{statement[:200]}: {resolution.reason}",
                next_step="leave it out if it makes no table, else write the table as one CREATE TABLE",
            )
        catalog = apply_all(resolution.edits, catalog)
    return catalog
