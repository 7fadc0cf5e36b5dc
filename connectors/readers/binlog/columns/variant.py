"""JSON documents that VARIANT does not hold, where a policy lets their rows go on."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from connectors.readers.binlog.columns.arrays import Cells, Finish
from connectors.readers.binlog.columns.lenient import Lost, lose
from historian.errors import ValueUnrepresentable
from historian.values.variant import encoded

__all__ = ["within_variant"]


def within_variant(finish: Finish, policy: str) -> Finish:
    """The texts of *finish*; those that VARIANT does not hold are NULL as *policy* says, whatever a sink makes of texts."""

    def finish_within(cells: Cells) -> pa.Array:
        texts = finish(cells)
        index = texts.dictionary_encode()
        refused = [at for at, text in enumerate(index.dictionary.to_pylist()) if not _is_held(text)]
        if not refused:
            return texts
        wrong = pc.is_in(index.indices, pa.array(refused, index.indices.type))
        offsets, data = cells.offsets, memoryview(cells.data or b"")

        def lost(row: int) -> Lost:
            return row, bytes(data[offsets[row] : offsets[row + 1]]), texts[row].as_py(), "invalid_variant"

        lose(cells, map(lost, pc.indices_nonzero(wrong).to_pylist()), lambda _: policy)
        return pc.if_else(wrong, pa.scalar(None, pa.string()), texts)

    return finish_within


def _is_held(text: str) -> bool:
    try:
        encoded(text)
    except ValueUnrepresentable:
        return False
    return True
