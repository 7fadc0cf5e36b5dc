"""Arrow arrays of what the row kernel wrote: a *finish* a column. None copies a value that is right already."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.texts import (
    date_text,
    datetime_text,
    time_text,
    timestamp_text,
    wide_decimal_text,
)
from connectors.readers.binlog.kernels.values.layout import NO_DATE_32, NO_DATE_64
from historian.errors import ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Cells",
    "Finish",
    "bits",
    "dates",
    "is_ascii",
    "plain",
    "temporal_text",
    "text_array",
    "utf8",
    "wide_decimal",
]


@dataclass(slots=True, kw_only=True)
class Cells:
    """One column of a chunk as the kernel wrote it.

    Attributes:
        arrow: the type to make.
        rows: their number.
        validity: Arrow's bitmap; None: no NULLs. ``nulls``: how many.
        values: of fixed width, else the int32 offsets, one more than rows; ``data``: what the offsets point into.
        unrepresentable: values that became NULL, set by a finish; ``first_unrepresentable``: the row of the first.
        place: table, column and position of a row, for errors.
        dead_letters: rows whose values became dead letters, with the bytes of the log, the server's text and the reason; set by
            a finish.
    """

    arrow: pa.DataType
    rows: int
    validity: pa.Buffer | None
    nulls: int
    values: pa.Buffer
    data: pa.Buffer | None
    place: Callable[[int], str]
    unrepresentable: int = 0
    first_unrepresentable: int = 0
    dead_letters: tuple[tuple[int, bytes, str, str], ...] = ()

    @property
    def offsets(self) -> NDArray[np.int32]:
        """The offsets as numbers."""
        return np.frombuffer(self.values, np.int32, self.rows + 1)

    @property
    def words(self) -> NDArray[np.int64]:
        """The values as 64-bit numbers."""
        return np.frombuffer(self.values, np.int64, self.rows)

    def valid(self) -> NDArray[np.bool_]:
        """For each row whether it has a value."""
        if self.validity is None:
            return np.ones(self.rows, np.bool_)
        packed = np.frombuffer(self.validity, np.uint8)
        return np.unpackbits(packed, count=self.rows, bitorder="little").astype(np.bool_)

    def pieces(self) -> list[bytes | None]:
        """The bytes of each row, None for NULL."""
        data, offsets, valid = memoryview(self.data or b""), self.offsets.tolist(), self.valid().tolist()
        return [bytes(data[offsets[row] : offsets[row + 1]]) if valid[row] else None for row in range(self.rows)]


Finish = Callable[[Cells], pa.Array]

_LOOKED_AT = 1 << 16


def plain(cells: Cells) -> pa.Array:
    """The values as they are."""
    buffers = [cells.validity, cells.values] if cells.data is None else [cells.validity, cells.values, cells.data]
    return pa.Array.from_buffers(cells.arrow, cells.rows, buffers, cells.nulls)


def is_ascii(data: pa.Buffer | None) -> bool:
    """Whether no byte is above 127."""
    values = np.frombuffer(data or b"", np.uint8)
    # Its beginning alone first, since text of another kind mostly shows it at once.
    return all(not len(part) or int(part.max()) < 0x80 for part in (values[:_LOOKED_AT], values[_LOOKED_AT:]))


def utf8(cells: Cells) -> pa.Array:
    """Text that is UTF-8 already.

    Raises:
        ValueUnrepresentable: bytes that are not; they are never replaced.
    """
    array = plain(cells)
    if is_ascii(cells.data):
        return array
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        for row, piece in enumerate(cells.pieces()):
            try:
                (piece or b"").decode()
            except UnicodeDecodeError as error:
                raise ValueUnrepresentable(
                    "text that is not valid UTF-8",
                    where=cells.place(row),
                    expected="UTF-8, as the column's charset says",
                    found=f"bytes {error.object[error.start : error.end].hex()} at byte {error.start} of the value",
                    next_step="mend the value at the source, or declare the column as VARBINARY or BLOB",
                ).because("invalid_text") from None
        raise
    return array


def text_array(texts: Iterable[str | None]) -> pa.Array:
    """Texts as an Arrow array; ``pa.array`` would import pandas to do it, which takes longer than anything here."""
    pieces = [None if text is None else text.encode() for text in texts]
    offsets = np.zeros(len(pieces) + 1, np.int32)
    np.cumsum([len(piece or b"") for piece in pieces], out=offsets[1:])
    missing = np.array([piece is None for piece in pieces], np.bool_)
    nulls = int(np.count_nonzero(missing))
    validity = pa.py_buffer(np.packbits(~missing, bitorder="little")) if nulls else None
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(b"".join(piece or b"" for piece in pieces))]
    return pa.Array.from_buffers(pa.string(), len(pieces), buffers, nulls)


def bits(cells: Cells) -> pa.Array:
    """BIT(1), a byte each, as booleans."""
    packed = np.packbits(np.frombuffer(cells.values, np.uint8, cells.rows), bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), cells.rows, [cells.validity, pa.py_buffer(packed)], cells.nulls)


def dates(cells: Cells) -> pa.Array:
    """DATE, DATETIME, TIMESTAMP; counts the dates that the calendar does not have, which the kernel has made NULL."""
    if cells.validity is not None:
        narrow = pa.types.is_date32(cells.arrow)
        values = np.frombuffer(cells.values, np.int32 if narrow else np.int64, cells.rows)
        missing = np.flatnonzero(values == (NO_DATE_32 if narrow else NO_DATE_64))
        if len(missing):
            cells.unrepresentable, cells.first_unrepresentable = len(missing), int(missing[0])
    return plain(cells)


def temporal_text(name: str, digits: int) -> Finish:
    """The server's own text of a temporal column with *digits* fractional digits."""
    make = {"date": date_text, "datetime": datetime_text, "timestamp": timestamp_text, "time": time_text}[name]

    def finish(cells: Cells) -> pa.Array:
        texts = (
            make(word, digits) if valid else None
            for word, valid in zip(cells.words.tolist(), cells.valid().tolist())  # noqa: B905 - one length
        )
        return text_array(texts)

    return finish


def wide_decimal(digits: int, scale: int) -> Finish:
    """DECIMAL above 38 digits as the server's own text."""

    def finish(cells: Cells) -> pa.Array:
        return text_array(
            None if piece is None else wide_decimal_text(piece, digits, scale) for piece in cells.pieces()
        )

    return finish
