"""Column-aware row encoding: a row as one binary value that outlives schema changes. docs/reference/row-encoding.md has the layout.

Rows of a changelog as columns do not belong here (:mod:`historian.changelog`).
"""

from historian.encoding.dropping import drop_columns
from historian.encoding.fields import field_id, row_schema, with_id
from historian.encoding.risingwave import encode_risingwave
from historian.encoding.rows import decode_rows, encode_rows, read_rows

__all__ = [
    "decode_rows",
    "drop_columns",
    "encode_risingwave",
    "encode_rows",
    "field_id",
    "read_rows",
    "row_schema",
    "with_id",
]
