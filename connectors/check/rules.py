"""Checks of a sink's rules for columns against the present tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from connectors.check.result import CheckResult, failed, warning
from connectors.config import SinkConfig
from connectors.sink_kinds import lake
from historian.errors import ConfigError
from historian.globs import matches
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.delta import DeltaSettings

__all__ = ["check_expressions", "rule_checks"]


def check_expressions(sinks: Sequence[SinkConfig], tables: Sequence[Snapshot], spark: SparkSession) -> None:
    """Whether expressions fit *tables*, the captured ones with which a connector begins. Shards are left to their first rows.

    Raises:
        ConfigError: with every expression that does not.
    """
    from sinks.shaping.expressions import Expressions
    from sinks.shaping.tables import shape_of

    expressions, problems = Expressions(spark), []
    for at, config in enumerate(sinks):
        settings = lake(config)
        if settings is None or not settings.tables:
            continue
        for snapshot in tables:
            chosen = settings.for_table(snapshot.name)
            if chosen.into is None and chosen.rules.has_expressions:
                bindings = shape_of(snapshot, chosen.rules, by_key=False).bindings
                found = expressions.misfits(snapshot, bindings)
                problems += [f"{why} @ $.sinks[{at}].tables of {snapshot.name}: {where}" for where, why in found]
    if problems:
        raise ConfigError("expressions do not fit the tables that are there", problems=tuple(problems))


def rule_checks(sinks: Sequence[SinkConfig], tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    """Whether rules for columns fit *tables*, those that are captured; of expressions see :func:`check_expressions`."""
    for at, config in enumerate(sinks):
        settings = lake(config)
        if settings is not None:
            yield from _misfits(f"sinks[{at}].tables", settings, tables)
            yield from _unused(f"sinks[{at}].tables", settings, tables)


def _misfits(place: str, settings: DeltaSettings, tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    from sinks.shaping.tables import misfits, shape_of

    for snapshot in tables:
        chosen = settings.for_table(snapshot.name)
        key = tuple(column.id for name in chosen.key if (column := snapshot.column(name)) is not None)
        by_key = bool(chosen.mirror or chosen.history)
        for where, reason in misfits(snapshot, shape_of(snapshot, chosen.rules, by_key=by_key, key=key)):
            yield failed(
                f"columns of {snapshot.name}", f"{where}: {reason}", "rules that fit the table", f"correct {place}"
            )


def _unused(place: str, settings: DeltaSettings, tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    """A misspelt name would let through what it should hide; but a rule may be there before its column."""
    for pattern, chosen in settings.tables:
        found = [snapshot for snapshot in tables if matches(pattern.split(".", 1), snapshot.name)]
        for key, names in chosen:
            listed = _names(names) if key in _BY_NAME else ()
            lacking = [name for name in listed if not any(snapshot.column(name) for snapshot in found)]
            if found and lacking:
                where = f"{place}[{pattern!r}].{'columns.exclude' if key == 'exclude' else key}"
                yield warning(
                    where, f"no table that matches has {', '.join(lacking)}", "names of columns, unless they come later"
                )


_BY_NAME = ("columns", "exclude", "mask", "hash", "truncate")


def _names(value: Sequence[str | tuple[str, object]]) -> Sequence[str]:
    return [one if isinstance(one, str) else one[0] for one in value]
