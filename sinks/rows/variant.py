"""JSON texts as columns of VARIANT values (:mod:`historian.values.variant`)."""

from __future__ import annotations

import pyarrow as pa

from historian.errors import ValueUnrepresentable
from historian.schema.snapshots import ColumnType
from historian.values.variant import encoded

__all__ = ["VARIANT", "fitted", "is_variant"]

VARIANT = pa.struct([pa.field("metadata", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)])
"""Values in files; Delta and Spark know from the table's schema what they are."""


def is_variant(kind: ColumnType) -> bool:
    """Whether values of that type become VARIANT, where a target has that."""
    return kind.shape == "variant"


def fitted(
    values: pa.Array | pa.ChunkedArray, kind: pa.DataType, where: str | None = None
) -> pa.Array | pa.ChunkedArray:
    """*values* as *kind*: texts as :data:`VARIANT` where it is that, any other by Arrow's cast.

    Each distinct text is encoded once. VARIANT values that come in another order of fields are put into ours. Untyped NULLs become
    ones that can be written, which :func:`pyarrow.nulls` of the type are not: their fields are NULL.

    Raises:
        ValueUnrepresentable: see :func:`historian.values.variant.encoded`; or VARIANT values are shredded, which this release does not write.
    """
    if kind != VARIANT or values.type == VARIANT:
        return values.cast(kind)
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([fitted(chunk, kind, where) for chunk in values.chunks], VARIANT)
    if pa.types.is_null(values.type):
        values = values.cast(pa.string())
    if pa.types.is_struct(values.type):
        return _reordered(values)
    index = values.dictionary_encode()
    pairs = [encoded(text, where) for text in index.dictionary.to_pylist()]
    pairs.append((b"", b""))
    at = index.indices.fill_null(len(pairs) - 1)
    parts = [pa.array([pair[part] for pair in pairs], pa.binary()).take(at) for part in (0, 1)]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=values.is_null())


def _reordered(values: pa.StructArray) -> pa.StructArray:
    names = {field.name for field in values.type}
    if names != {"metadata", "value"}:
        raise ValueUnrepresentable(
            "VARIANT values in a form that is not read", expected="metadata and value", found=sorted(names)
        )
    # A NULL has no bytes, where our own have empty ones.
    parts = [values.field(field.name).fill_null(b"") for field in VARIANT]
    return pa.StructArray.from_arrays(parts, fields=list(VARIANT), mask=values.is_null())
