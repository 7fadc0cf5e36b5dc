"""Column definitions to columns, as the server makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from historian.ddl.column_types import column_type
from historian.ddl.context import StatementContext
from historian.ddl.defaults import default_text, initial_value, now_text
from historian.ddl.statements import CharsetClause, ColumnSpec, DefaultSpec
from historian.schema import Column

__all__ = ["Inherited", "added_column", "built_column", "in_converted_charset", "with_implicit_timestamps"]

Inherited = tuple[str, str]
"""Charset and collation that a column takes where it says none."""

_ZERO = DefaultSpec(kind="string", text="0000-00-00 00:00:00")


def built_column(
    spec: ColumnSpec, column_id: int, inherited: Inherited, context: StatementContext, *, in_primary_key: bool
) -> Column:
    """The column of that definition; its ``initial`` is left out."""
    kind = column_type(spec.type, *inherited, context)
    text, is_expression = default_text(spec.default, kind, context)
    return Column(
        id=column_id,
        name=spec.name,
        type=kind,
        nullable=not in_primary_key and not spec.auto_increment and spec.nullable is not False,
        default=text,
        default_is_expression=is_expression,
        on_update=None if spec.on_update is None else now_text(spec.on_update),
        auto_increment=spec.auto_increment,
        generated=spec.generated,
        generation_expression=spec.generation_expression,
        invisible=spec.invisible,
    )


def added_column(
    spec: ColumnSpec, column_id: int, inherited: Inherited, context: StatementContext, *, in_primary_key: bool
) -> Column:
    """The column that ADD COLUMN makes, with the value that it gives to rows which are there."""
    column = built_column(spec, column_id, inherited, context, in_primary_key=in_primary_key)
    if column.generated or column.auto_increment:
        return replace(column, initial_known=False)
    initial = initial_value(spec.default, column.type, context, nullable=column.nullable)
    return replace(column, initial=initial.text, initial_known=initial.known)


def with_implicit_timestamps(specs: Sequence[ColumnSpec], context: StatementContext) -> list[ColumnSpec]:
    """What TIMESTAMP columns of one statement, in its order, are given without being asked.

    Without ``explicit_defaults_for_timestamp`` they are NOT NULL unless they say NULL; the first of these, if it has no
    default and no ON UPDATE, gets CURRENT_TIMESTAMP for both, the others a zero default.
    """
    if _explicit(context):
        return [_with_zero_default(spec) if context.flavor == "mariadb" else spec for spec in specs]
    result = []
    promoted = False
    for spec in specs:
        if spec.type.name != "timestamp" or spec.nullable is True or spec.generated:
            result.append(spec)
            continue
        spec = replace(spec, nullable=False)  # noqa: PLW2901 the same definition, completed
        if spec.default is None:
            fraction = spec.type.length or 0
            if not promoted and spec.on_update is None:
                spec = replace(spec, default=DefaultSpec(kind="now", fraction=fraction), on_update=fraction)  # noqa: PLW2901
            else:
                spec = replace(spec, default=_ZERO)  # noqa: PLW2901
        promoted = True
        result.append(spec)
    return result


def _with_zero_default(spec: ColumnSpec) -> ColumnSpec:
    """MariaDB gives a NOT NULL timestamp that has only ON UPDATE a zero default."""
    if spec.type.name == "timestamp" and spec.nullable is False and spec.on_update is not None and spec.default is None:
        return replace(spec, default=_ZERO)
    return spec


def _explicit(context: StatementContext) -> bool:
    if context.explicit_defaults_for_timestamp is not None:
        return context.explicit_defaults_for_timestamp
    since = 101000 if context.flavor == "mariadb" else 80002
    return context.version == 0 or context.version >= since


def in_converted_charset(spec: ColumnSpec, charset: str, collation: str) -> ColumnSpec:
    """The definition beside a CONVERT TO CHARACTER SET of the same statement, which overrides its own charset."""
    clause = spec.type.charset
    if clause.charset == "binary":
        return spec
    converted = CharsetClause(charset=charset, collation=None if clause.binary else collation, binary=clause.binary)
    return replace(spec, type=replace(spec.type, charset=converted))
