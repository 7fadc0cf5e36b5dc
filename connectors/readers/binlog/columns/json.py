"""JSON columns of MySQL: binary documents into an Arrow array of the server's own text, or of VARIANT."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.readers.binlog.columns.arrays import Cells, Finish, utf8
from connectors.readers.binlog.columns.lenient import Lost, lose
from connectors.readers.binlog.kernels.text import json_layout as at
from connectors.readers.binlog.kernels.text.json import json_text
from historian.errors import ValueUnrepresentable
from historian.values.variant import encoded

__all__ = ["json_finish", "within_variant"]

_SLACK_BYTES = 128


def json_finish(*, bare: bool) -> Finish:
    """Prints documents as MySQL 8.0 and later do; *bare*: as 5.7 (1 instead of 1.0, raw line ends inside base64)."""

    def finish(cells: Cells) -> pa.Array:
        offsets, data = cells.offsets, cells.data
        assert data is not None  # noqa: S101 - a column of varying width
        results = pa.allocate_buffer(4 * (cells.rows + 1))
        np.frombuffer(results, np.int32)[0] = 0
        text = pa.allocate_buffer(int(1.5 * offsets[-1]) + 8 * cells.rows + _SLACK_BYTES, resizable=True)
        state = np.zeros(at.JSON_WORDS, np.int64)
        state[at.ROW_COUNT], state[at.BARE] = cells.rows, bare
        state[at.IN_OFFSETS], state[at.IN_DATA] = offsets.ctypes.data, data.address
        state[at.OUT_OFFSETS] = results.address
        while True:
            state[at.OUT_DATA], state[at.OUT_CAPACITY] = text.address, text.size
            code = json_text(state.ctypes.data)
            if code == at.DONE:
                break
            row = int(state[at.ROW])
            if code == at.INVALID:
                raise ValueUnrepresentable(
                    "a JSON document that the log holds in an unknown form",
                    where=cells.place(row),
                    found=f"bytes {bytes(data[offsets[row] : offsets[row + 1]])[:64].hex()}",
                    next_step="choose null_and_count or dead_letter as types.invalid_json",
                ).because("invalid_json")
            text.resize(2 * text.size + 6 * int(offsets[row + 1] - offsets[row]), shrink_to_fit=False)
        used = int(np.frombuffer(results, np.int32)[-1])
        text.resize(used)
        printed = replace(cells, values=results, data=text)
        try:
            return utf8(printed)
        except ValueUnrepresentable as error:
            raise error.because("invalid_json") from None

    return finish


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
