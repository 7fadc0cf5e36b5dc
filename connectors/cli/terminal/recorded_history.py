"""The history that a connector has recorded, as commands ask it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from historian.errors import ConfigError, StoreError
from historian.history.prefix import behind
from historian.names import TableName
from historian.plans.passages import version_at as message_version
from historian.positions import KAFKA, LogPosition, parse_position

if TYPE_CHECKING:
    from connectors.config import PipelineConfig
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.store import Store

__all__ = ["located", "open_recorded", "recorded_history", "table_named", "version_at", "versions_by_table"]


def open_recorded(config: PipelineConfig) -> Store:
    """The connector's store. Raises :class:`StoreError` where there is none yet."""
    from connectors.tracking.recorded import recorded_store

    store = recorded_store(config)
    if store is None:
        raise StoreError(
            "there is no history yet",
            where=config.name,
            next_step="`historian run` makes it; `historian tail` shows a log without one",
        )
    return store


def recorded_history(config: PipelineConfig) -> History:
    """All that the connector's store holds of tables."""
    with closing(open_recorded(config)) as store:
        return store.history()


def table_named(text: str) -> TableName:
    """The table of that name, ``database.table``."""
    database, _, name = text.partition(".")
    if not (database and name):
        raise ConfigError("not a table name", problems=(f"expected DATABASE.TABLE (got {text!r})",))
    return TableName(database, name)


def versions_by_table(history: History) -> Iterator[tuple[TableName, tuple[Version, ...]]]:
    """Each name that a table ever had, with what it stood for, oldest first."""
    for name in sorted(history.tables):
        yield name, history.versions(name)


def version_at(config: PipelineConfig, table: TableName, text: str) -> Version:
    """The version of *table* at a position; of topics, the one under which the message there is written."""
    if config.source.flavor != KAFKA:
        history = recorded_history(config)
        return history.at(table, located(config, text, history))
    with closing(open_recorded(config)) as store:
        return message_version(store.history(), store.passages(), table, parse_position(text, KAFKA))


def located(config: PipelineConfig, text: str, history: History) -> LogPosition:
    """The position; a file's place is looked up in the log, since versions are known by GTID where there are any.

    One transaction alone, as the ``position`` of a row has it, stands for all up to it.
    """
    position = parse_position(text, config.source.flavor)
    if not position.file:
        return behind(position, history.entries)
    from connectors.tracking.sources import make_reader

    with closing(make_reader(config.source)) as reader:
        return reader.locate(position)
