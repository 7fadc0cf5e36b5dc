"""Finds a typed table in the log, and the schema that its rows get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.spark.typed_schemas import FittingRules, TypedSchema, last_schema, remembered, schema_of
from connectors.spark.typed_tables import TypedTable
from historian.errors import ConfigError, PositionError, UnknownTable
from historian.history.prefix import behind
from historian.names import TableName
from historian.positions import parse_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connectors.spark.options import SourceOptions
    from connectors.tracking.tracker import Tracker
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.positions import LogPosition

__all__ = ["next_schema", "schema_position", "stream_table", "table_of_range", "typed"]


def typed(options: SourceOptions, schema: TypedSchema) -> TypedTable:
    """The typed table of *schema* as the *options* want it. Raises :class:`ConfigError` for names that cannot be."""
    table = TypedTable(schema_of=schema, missing=options.missing, rules=_rules(options), only=options.columns)
    table.check_names()
    return table


def table_of_range(options: SourceOptions, tracker: Tracker, *, begin: int) -> TypedTable:
    """The table with its schema at the end of what *tracker* has planned, unless the options name another place.

    *begin*: number of the timeline entry that the rows begin behind.

    Raises:
        ConfigError: no ``database.table``, or columns that cannot be.
        UnknownTable: the log holds no such table there.
    """
    return typed(options, _chosen(options, tracker, begin=begin))


def stream_table(options: SourceOptions, tracker: Tracker) -> TypedTable:
    """The table of a stream under the schema that is remembered under its name; until the stream first starts it is chosen.

    That is the schema at the log's present end, or the last one before it that all rows until then can be carried to. The
    log is tracked up to there, in the plans that the stream begins with. Nothing is remembered: Spark may want a batch.
    """
    held = remembered(tracker.store, options.name or "")
    if held:
        return typed(options, held[-1])
    tracker.catch_up(limit_bytes=options.batch_bytes())
    begin = tracker.history.first_number if options.after_plan == 0 else tracker.stored(options.after_plan).version
    return typed(options, _chosen(options, tracker, begin=begin, carries_all=True))


def schema_position(text: str, tracker: Tracker) -> LogPosition:
    """The position that *text* is, or behind the transaction that it names alone, as ``position`` of a row does.

    Raises:
        ConfigError: the text is no position.
    """
    try:
        position = parse_position(text, tracker.reader.flavor)
    except PositionError:
        problem = f"expected latest, earliest or a position @ $.schema_at (got {text!r})"
        raise ConfigError('options of format("historian") cannot be used', problems=(problem,)) from None
    return behind(position, tracker.history.entries)


def next_schema(options: SourceOptions, tracker: Tracker, table_id: int, begin: int) -> TypedSchema | None:
    """The schema under which a stream goes on with the version *begin*, which did not fit; None: the table is gone."""
    tracker.catch_up(limit_bytes=options.batch_bytes())
    chain = _chain(tracker, table_id)
    if not any(version.snapshot is not None and version.number >= begin for version in chain):
        name = _table_name(options)
        later = [each for each in tracker.history.versions(name) if each.snapshot is not None and each.number > begin]
        if not later:
            return None
        chain = _chain(tracker, later[0].table_id)
        begin = later[0].number
    return last_schema(chain, _rules(options), begin=begin, dropped=options.dropped)


def _chosen(options: SourceOptions, tracker: Tracker, *, begin: int, carries_all: bool = False) -> TypedSchema:
    name, at = _table_name(options), options.schema_at
    history = tracker.history
    versions = [version for version in history.versions(name) if version.snapshot is not None]
    if not versions:
        raise _not_there(options, history, name)
    if at == "earliest":
        first = versions[0]
        return schema_of(_chain(tracker, first.table_id), first.number, begin=begin, pinned=True)
    if at != "latest":
        there = history.at(name, schema_position(at, tracker))
        return schema_of(_chain(tracker, there.table_id), there.number, begin=begin, pinned=True)
    chain = _chain(tracker, versions[-1].table_id)
    begin = max((version.number for version in chain if version.number <= begin), default=chain[0].number)
    if carries_all:
        found = last_schema(chain, _rules(options), begin=begin, dropped=options.dropped)
        if found is not None:
            return found
    last = next(version for version in reversed(chain) if version.snapshot is not None)
    return schema_of(chain, last.number, begin=begin, dropped=options.dropped)


def _not_there(options: SourceOptions, history: History, name: TableName) -> UnknownTable:
    """The error of a table without a version. A batch has looked at the log before ``from`` too, a stream has not."""
    reason = history.catalog_at(history.first_number).unknown_tables.get(name)
    next_step = "check the name, and that source.tables captures it"
    if reason is not None or (options.name is not None and options.begin not in (None, "earliest", "latest")):
        next_step = "begin where its CREATE is in the log, or write the tables of that place into source.schema"
    return UnknownTable(reason or "no such table in the log", where=str(name), next_step=next_step)


def _chain(tracker: Tracker, table_id: int) -> Sequence[Version]:
    return tracker.type_options.applied(tracker.history.versions_of(table_id))


def _rules(options: SourceOptions) -> FittingRules:
    only = None if options.columns is None else frozenset(name.lower() for name in options.columns)
    return FittingRules(rescues=options.on_schema_change == "rescue", only=only)


def _table_name(options: SourceOptions) -> TableName:
    table = options.table or ""
    database, dot, plain = table.partition(".")
    if not dot or not database or not plain:
        raise ConfigError("not a table name", problems=(f'expected DATABASE.TABLE @ $.table (got "{table}")',))
    return TableName(database, plain)
