"""Configuration: one YAML file a connector, checked whole, handed inward as plain values.

What a setting does does not belong here.
"""

from connectors.config.copy_limits import limits_in_force, limits_of_texts, limits_text, named_limits
from connectors.config.filters import TableFilter
from connectors.config.load import can_change, load_config, parse_config, reread, revision
from connectors.config.settings import (
    BinlogFilesSource,
    CopyLimits,
    HistoryConfig,
    KafkaSource,
    PauseAbove,
    PipelineConfig,
    RowServer,
    RunConfig,
    ServerSource,
    SinkConfig,
    SourceConfig,
    SparkConfig,
)
from connectors.config.values import ServerIds
from connectors.config.written import parse_value

__all__ = [
    "BinlogFilesSource",
    "CopyLimits",
    "HistoryConfig",
    "KafkaSource",
    "PauseAbove",
    "PipelineConfig",
    "RowServer",
    "RunConfig",
    "ServerIds",
    "ServerSource",
    "SinkConfig",
    "SourceConfig",
    "SparkConfig",
    "TableFilter",
    "can_change",
    "limits_in_force",
    "limits_of_texts",
    "limits_text",
    "load_config",
    "named_limits",
    "parse_config",
    "parse_value",
    "reread",
    "revision",
]
