"""The configured type options against those that targets were made with, which cannot change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.errors import ConfigError
from historian.plans.plans import LogRange, Plan, PreparedRows, PreparedTable
from historian.plans.type_options import TYPE_OPTIONS, TypeOptions, planned_type_options

if TYPE_CHECKING:
    from historian.history.history import History

__all__ = ["check_type_options", "ranges_with_type_options"]


def ranges_with_type_options(
    ranges: Sequence[LogRange], type_options: TypeOptions, history: History
) -> tuple[LogRange, ...]:
    """*ranges* with the forms of columns in the schemas of rows that were prepared before them."""

    def table(prepared: PreparedTable) -> PreparedTable:
        if prepared.snapshot is None:
            return prepared
        versions = history.versions_of(prepared.table_id)
        return replace(prepared, snapshot=type_options.with_type_options(prepared.snapshot, versions))

    def rows(prepared: PreparedRows) -> PreparedRows:
        return replace(prepared, tables=tuple(map(table, prepared.tables)))

    return tuple(replace(each, prepared=tuple(map(rows, each.prepared))) for each in ranges)


def check_type_options(plan: Plan, before: Mapping[str, str]) -> None:
    """Compares the forms in *plan* with those of the plans *before*.

    Raises:
        ConfigError: a column has another one; nothing was stored or written.
    """
    names = {
        str(column.id): f"{version.snapshot.name}.{column.name}"
        for table in plan.tables
        for version in table.versions
        if version.snapshot is not None
        for column in version.snapshot.columns
    }
    problems = []
    for key, form in planned_type_options(plan).items():
        held = before.get(key, form)
        if held != form:
            column, choice = key.split(" ")
            problems.append(
                f"{names[column]} is {_value(choice, form)}, and was {_value(choice, held)} @ $.types.{choice}"
            )
    if problems:
        raise ConfigError(
            "type options differ from those of the targets: put them back, or start a connector with a store and targets of"
            " their own",
            problems=tuple(problems),
        )


def _value(choice: str, form: str) -> str:
    """What the user calls it."""
    return next(value for value, each in TYPE_OPTIONS[choice].items() if each == form)
