"""A batch that arrives some other way becomes changelog rows, by a strategy.

Spark's half does not belong here (:mod:`pyspark_historian.merging`).
"""

from historian.changelog.merging.batches import refused, whole_ms
from historian.changelog.merging.matching import KeyIndex
from historian.changelog.merging.strategies import (
    Append,
    ChangelogStream,
    Ledger,
    Snapshot,
    Strategy,
    UpsertStream,
    merged_columns,
)

__all__ = [
    "Append",
    "ChangelogStream",
    "KeyIndex",
    "Ledger",
    "Snapshot",
    "Strategy",
    "UpsertStream",
    "merged_columns",
    "refused",
    "whole_ms",
]
