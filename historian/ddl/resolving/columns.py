"""Column definitions to columns, as the server makes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from historian.charsets.client_text import read_as_one
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.definitions import CharsetClause, ColumnSpec, DefaultSpec
from historian.ddl.resolving.refused import Refused
from historian.ddl.types.column_types import Charset, column_type, display_width, resolves_default_charset
from historian.ddl.types.defaults import default_text, initial_value, now_text
from historian.schema.snapshots import Column

__all__ = [
    "added_column",
    "built_column",
    "completed_spec",
    "has_explicit_timestamps",
    "in_converted_charset",
    "with_initial",
    "with_promoted_timestamp",
]

_ZERO = DefaultSpec(kind="string", text="0000-00-00 00:00:00")
_EMPTY = DefaultSpec(kind="string", text="")


def built_column(
    spec: ColumnSpec, column_id: int, inherited: Charset, context: StatementContext, *, in_primary_key: bool
) -> Column:
    """The column of that definition; its ``initial`` is left out."""
    kind = column_type(spec.type, *inherited, context)
    if same := read_as_one(kind.labels):
        raise Refused(
            f"two labels of {spec.name} read {same}: bytes that are no text, and the text that stands for them"
        )
    if in_primary_key:
        spec = _with_zero_default(spec, context)
    text, is_expression = default_text(spec.default, kind, context)
    on_update = kind.fraction if context.flavor == "mariadb" else spec.on_update or 0
    return Column(
        id=column_id,
        name=spec.name,
        type=kind,
        nullable=not in_primary_key and spec.nullable is not False,
        default=text,
        default_is_expression=is_expression,
        on_update=None if spec.on_update is None else now_text(on_update),
        auto_increment=spec.auto_increment,
        generated=spec.generated,
        generation_expression=spec.generation_expression,
        invisible=spec.invisible,
        display_width=display_width(spec.type, context),
        compressed=spec.compressed,
        unversioned=spec.system_versioned is False,
    )


def added_column(
    spec: ColumnSpec, column_id: int, inherited: Charset, context: StatementContext, *, in_primary_key: bool
) -> Column:
    """The column that ADD COLUMN makes, with the value that it gives to rows which are there."""
    column = built_column(spec, column_id, inherited, context, in_primary_key=in_primary_key)
    if column.generated or column.auto_increment or _is_odd_default(spec, column, context):
        return replace(column, initial_known=False)
    return with_initial(column, spec.default, context)


def _is_odd_default(spec: ColumnSpec, column: Column, context: StatementContext) -> bool:
    """A TEXT that its charset makes a BLOB: MariaDB fills it in the charset of the table."""
    is_turned = spec.type.name.endswith("text") and column.type.name.endswith("blob")
    return context.flavor == "mariadb" and is_turned and spec.default is not None and spec.default.kind == "string"


def completed_spec(spec: ColumnSpec, context: StatementContext) -> ColumnSpec:
    """The definition with what TIMESTAMP columns are given without being asked, but for the first one's default.

    Without ``explicit_defaults_for_timestamp`` they are NOT NULL unless they say NULL.
    """
    name = spec.type.name
    if name == "timestamp" and spec.nullable is None and not spec.generated and not has_explicit_timestamps(context):
        spec = replace(spec, nullable=False)
    if spec.compressed and spec.nullable is False and spec.default is None:
        spec = replace(spec, default=_EMPTY)  # MariaDB's default of such a column is no text, without being asked
    return _with_zero_default(spec, context) if spec.nullable is False else spec


def _with_zero_default(spec: ColumnSpec, context: StatementContext) -> ColumnSpec:
    """MariaDB gives a zero default to a column that is never NULL and has ON UPDATE alone."""
    is_moment = spec.type.name in ("timestamp", "datetime")
    if context.flavor == "mariadb" and is_moment and spec.on_update is not None and spec.default is None:
        return replace(spec, default=_ZERO)
    return spec


def with_promoted_timestamp(
    columns: Sequence[Column], defined: Collection[int], added: Collection[int], context: StatementContext
) -> list[Column]:
    """All columns behind a statement, with the defaults that TIMESTAMPs get without being asked.

    Without ``explicit_defaults_for_timestamp``, of those that the statement defines, are NOT NULL and have no default,
    the one that is first in the table gets CURRENT_TIMESTAMP for default and ON UPDATE. Others get a zero default.

    Args:
        defined: ids of columns that the statement defines.
        added: ids of those that it adds.
    """
    result = list(columns)
    if has_explicit_timestamps(context):
        return result
    first = True
    for at, column in enumerate(result):
        if column.type.name != "timestamp":
            continue
        promoted = first and column.on_update is None
        first = False
        if column.default is None and column.id in defined and not (column.nullable or column.generated):
            now = DefaultSpec(kind="now", fraction=column.type.fraction)
            result[at] = _with_default(column, now if promoted else _ZERO, context, is_added=column.id in added)
    return result


def _with_default(column: Column, default: DefaultSpec, context: StatementContext, *, is_added: bool) -> Column:
    text, is_expression = default_text(default, column.type, context)
    column = replace(column, default=text, default_is_expression=is_expression)
    if is_expression:
        column = replace(column, on_update=text)
    return with_initial(column, default, context) if is_added else column


def with_initial(column: Column, default: DefaultSpec | None, context: StatementContext) -> Column:
    """The column with what rows that are there read in it, when it is added with that default."""
    initial = initial_value(default, column.type, context, nullable=column.nullable)
    return replace(column, initial=initial.text, initial_known=initial.known)


def has_explicit_timestamps(context: StatementContext) -> bool:
    """Whether ``explicit_defaults_for_timestamp`` held, as far as the event or the version tells."""
    if context.explicit_defaults_for_timestamp is not None:
        return context.explicit_defaults_for_timestamp
    since = 101000 if context.flavor == "mariadb" else 80002
    return context.version == 0 or context.version >= since


def in_converted_charset(spec: ColumnSpec, charset: str, collation: str, context: StatementContext) -> ColumnSpec:
    """The definition beside a CONVERT TO CHARACTER SET of the same statement, which overrides its own charset."""
    clause = spec.type.charset
    if clause.charset == "binary":
        return spec
    binary = clause.binary and clause.charset is None
    own = binary or (clause.collation == "" and resolves_default_charset(context))
    converted = CharsetClause(charset=charset, collation=None if own else collation, binary=binary)
    return replace(spec, type=replace(spec.type, charset=converted))
