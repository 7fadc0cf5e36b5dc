"""Rows of changes: chunks, operations, folding, projection to another schema, forms of other systems.

Files, tables and whatever else holds a changelog do not belong here (:mod:`sinks`).
"""

from historian.changelog.chunks import (
    CHUNK_STREAM,
    Chunk,
    chunk_row,
    chunks_of,
    dead_letters,
    ipc_stream,
    positions,
    transactions,
)
from historian.changelog.conversions import AFTER, BEFORE, EVENT, ROW_KIND
from historian.changelog.folding import BAG_COUNT, fold_bag, key_numbers, net_changes, rows_by_key, summed_bags
from historian.changelog.missing_columns import (
    ABSENT,
    MISSING_COLUMNS,
    NAMES_TYPE,
    UNSEEN,
    WHOLE_IMAGES,
    carry_missing,
    lacking,
    marked,
    missing_lists,
    missing_names,
    name_lists,
    pack,
)
from historian.changelog.operations import (
    CHUNK_COLUMNS,
    POSITION_COLUMNS,
    RESERVED_COLUMNS,
    SYSTEM_COLUMNS,
    Op,
    column_id,
    data_columns,
    physical_name,
    position_column,
)
from historian.changelog.partial_folding import FROM, PartialNet, completed, missing_row, partial_net
from historian.changelog.projection import project
from historian.changelog.row_images import Mask, differing, differs, rows_where, where
from historian.changelog.state import AddedColumn, state_columns, up_to, without_positions

__all__ = [
    "ABSENT",
    "AFTER",
    "BAG_COUNT",
    "BEFORE",
    "CHUNK_COLUMNS",
    "CHUNK_STREAM",
    "EVENT",
    "FROM",
    "MISSING_COLUMNS",
    "NAMES_TYPE",
    "POSITION_COLUMNS",
    "RESERVED_COLUMNS",
    "ROW_KIND",
    "SYSTEM_COLUMNS",
    "UNSEEN",
    "WHOLE_IMAGES",
    "AddedColumn",
    "Chunk",
    "Mask",
    "Op",
    "PartialNet",
    "carry_missing",
    "chunk_row",
    "chunks_of",
    "column_id",
    "completed",
    "data_columns",
    "dead_letters",
    "differing",
    "differs",
    "fold_bag",
    "ipc_stream",
    "key_numbers",
    "lacking",
    "marked",
    "missing_lists",
    "missing_names",
    "missing_row",
    "name_lists",
    "net_changes",
    "pack",
    "partial_net",
    "physical_name",
    "position_column",
    "positions",
    "project",
    "rows_by_key",
    "rows_where",
    "state_columns",
    "summed_bags",
    "transactions",
    "up_to",
    "where",
    "without_positions",
]
