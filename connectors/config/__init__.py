"""Configuration: one YAML file a connector, checked whole, handed inward as plain values.

What a setting does does not belong here.
"""

from connectors.config.filters import TableFilter
from connectors.config.load import can_change, load_config, reread, revision
from connectors.config.settings import (
    BinlogFilesSource,
    CopyLimits,
    HistoryConfig,
    PauseAbove,
    PipelineConfig,
    RowServer,
    RunConfig,
    ServerSource,
    SinkConfig,
    SourceConfig,
)
from connectors.config.values import ServerIds

__all__ = [
    "BinlogFilesSource",
    "CopyLimits",
    "HistoryConfig",
    "PauseAbove",
    "PipelineConfig",
    "RowServer",
    "RunConfig",
    "ServerIds",
    "ServerSource",
    "SinkConfig",
    "SourceConfig",
    "TableFilter",
    "can_change",
    "load_config",
    "reread",
    "revision",
]
