"""The foreign keys with an action that a table has behind a statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from historian.ddl.parsing.definitions import KeySpec
from historian.names import TableName
from historian.schema.snapshots import Column, ForeignKey

__all__ = ["added_foreign_keys", "kept_foreign_keys"]


def kept_foreign_keys(keys: Iterable[ForeignKey], dropped: Collection[str]) -> tuple[ForeignKey, ...]:
    """Those of *keys* that a statement leaves; *dropped*: names in lower case."""
    return tuple(key for key in keys if not key.name or key.name.lower() not in dropped)


def added_foreign_keys(
    table: TableName, specs: Iterable[KeySpec], column_of: Callable[[str], Column], *, inline_references: bool
) -> tuple[ForeignKey, ...]:
    """Those that *specs* bring to *table*; *inline_references*: REFERENCES in a column definition counts."""
    return tuple(
        ForeignKey(
            name=spec.references.constraint,
            parent=spec.references.parent._replace(database=spec.references.parent.database or table.database),
            columns=tuple(column_of(name).id for name in spec.columns if name is not None),
            referenced=spec.references.columns,
            on_delete=spec.references.on_delete,
            on_update=spec.references.on_update,
        )
        for spec in specs
        if spec.references is not None
        and (inline_references or not spec.inline)
        and (spec.references.on_delete or spec.references.on_update)
    )
