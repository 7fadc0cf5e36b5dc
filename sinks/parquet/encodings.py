"""How changelogs stand in Parquet files: the encodings of Open Data Fabric."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["changelog_writer"]


def changelog_writer(stream: pa.NativeFile, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of changelog rows: ``offset`` delta-packed, all else in dictionaries."""
    return pq.ParquetWriter(
        stream,
        schema,
        compression="zstd",
        use_dictionary=[field.name for field in schema if field.name != "offset"],
        column_encoding={"offset": "DELTA_BINARY_PACKED"},
        store_decimal_as_integer=True,
    )
