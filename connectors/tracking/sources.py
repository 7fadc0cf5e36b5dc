"""From a configuration to the reader and the tracker of its source."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from connectors.config import BinlogFilesSource, KafkaSource, PipelineConfig, ServerSource, revision
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.connection import ServerAddress
from historian.values.policies import DEAD_LETTER

if TYPE_CHECKING:
    from connectors.config import SourceConfig
    from connectors.readers.base import Reader
    from connectors.readers.kafka.client import KafkaSettings
    from connectors.tracking.capture.catalog import Capture
    from connectors.tracking.capture.shared import Databases, HeadCaptures
    from connectors.tracking.tracker import Tracker
    from historian.schema.snapshots import Catalog
    from historian.store import Store

__all__ = ["kafka_settings", "make_reader", "make_tracker", "server_address"]


def make_reader(source: SourceConfig) -> Reader:
    """A reader of the configured log. It connects or opens files when it is first used, and it pickles."""
    match source:
        case ServerSource():
            return BinlogServerReader(server_address(source), flavor=source.flavor)
        case BinlogFilesSource():
            return BinlogFilesReader(source.paths())
        case KafkaSource():
            from connectors.readers.kafka.reader import KafkaReader

            return KafkaReader(kafka_settings(source))


def kafka_settings(source: KafkaSource) -> KafkaSettings:
    """The settings of a configured source's reader."""
    from connectors.readers.kafka.client import KafkaSettings

    return KafkaSettings(
        brokers=source.brokers,
        topics=(*source.topics, *((source.schema_topic,) if source.schema_topic else ())),
        client=source.client,
        format=source.format,
        zone=source.time_zone,
        registry=source.registry,
        modes=source.modes,
        message_schema="" if source.message_schema is None else source.message_schema.read_text(encoding="utf-8"),
        schema_topic=source.schema_topic,
        keeps_unread=source.unreadable == DEAD_LETTER,
        normalized=source.normalize,
        tombstones=source.tombstones,
    )


def server_address(source: ServerSource) -> ServerAddress:
    """Where the configured server is and who asks."""
    return ServerAddress(
        host=source.host,
        port=source.port,
        user=source.user,
        password=source.password,
        tls=source.tls,
        compression=source.compression,
        server_ids=(source.server_ids.first, source.server_ids.last),
    )


def make_tracker(
    config: PipelineConfig, *, store: Store | None = None, start: str | None = None, range_bytes: int | None = None
) -> Tracker:
    """A tracker of the configured source.

    Args:
        config: of the pipeline.
        store: to use instead of the configured one.
        start: position to begin at instead of the configured one, where the store holds no history yet.
        range_bytes: see :class:`Tracker`.
    """
    # An executor makes readers alone, and starts sooner without the store's libraries.
    from connectors.tracking.tracker import Tracker
    from historian.store import Store

    source = config.source
    store = Store.open(config.history.store) if store is None else store
    settings: dict[str, Any] = {} if range_bytes is None else {"range_bytes": range_bytes}
    return Tracker(
        reader=make_reader(source),
        store=store,
        connector=store.connector(config.name),
        captured=source.tables,
        revision=revision(config),
        start=source.start if start is None else start,
        capture=_capture(source) if isinstance(source, ServerSource) else None,
        head=_head(source) if isinstance(source, ServerSource) else None,
        schema=_schema(source),
        online_changes=source.tables.online_changes,
        type_options=config.types,
        accept_cascades=source.accept_cascades if isinstance(source, ServerSource) else (),
        **settings,
    )


def _capture(source: ServerSource) -> Capture:
    from connectors.tracking.capture.catalog import capture_catalog
    from connectors.tracking.capture.shared import shared_captures

    address = server_address(source)
    shared = shared_captures(address)

    def capture(next_table_id: int, next_column_id: int, *, exact: bool = True) -> Catalog:
        def ask() -> Catalog:
            with closing(address.connect()) as connection:
                return capture_catalog(connection, next_table_id, next_column_id, exact=exact)

        # Checks ask under this key too.
        return shared.begun_from_now((next_table_id, next_column_id, exact), ask)

    return capture


def _head(source: ServerSource) -> HeadCaptures:
    from connectors.tracking.capture.catalog import capture_catalog
    from connectors.tracking.capture.shared import HeadCaptures, shared_captures

    address = server_address(source)

    def ask(databases: Databases) -> Catalog:
        with closing(address.connect()) as connection:
            return capture_catalog(connection, 1, 1, exact=False, databases=databases)

    return HeadCaptures(ask, source.tables.databases(), shared_captures(address))


def _schema(source: SourceConfig) -> Catalog | None:
    if source.schema is None:
        return None
    from connectors.tracking.schema_file import catalog_of, sql_text

    flavor = "mysql" if isinstance(source, KafkaSource) else source.flavor
    return catalog_of(sql_text(source.schema), flavor=flavor, where=str(source.schema))
