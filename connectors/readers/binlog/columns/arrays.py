"""Arrow arrays of what the row kernel wrote: a *finish* a column. None copies a value that is right already."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

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
    make = {"date": _date_text, "datetime": _datetime_text, "timestamp": _timestamp_text, "time": _time_text}[name]

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
            None if piece is None else _wide_decimal_text(piece, digits, scale) for piece in cells.pieces()
        )

    return finish


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _date_text(packed: int, _digits: int) -> str:
    """DATE of its packed 24 bits, zero parts as they are."""
    return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}"


def _split(packed: int, digits: int) -> tuple[int, str]:
    """The part before the fraction, and the fraction's text with its point."""
    size = 8 * ((digits + 1) // 2)
    fraction = packed & ((1 << size) - 1)
    if digits == 0:
        return packed, ""
    # Two digits a byte, so an odd count has one digit too many, always 0. MySQL 5.7 rounds some times of its clock up to
    # 1,000,000 microseconds, which it prints with seven digits.
    return packed >> size, f".{fraction // 10 ** (digits % 2):0{digits}d}"


def _datetime_text(packed: int, digits: int) -> str:
    """DATETIME of its 40 bits and fraction, zero parts as they are."""
    whole, fraction = _split(packed, digits)
    whole &= 0x7FFFFFFFFF
    year, month = divmod(whole >> 22, 13)
    date = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    return f"{date} {whole >> 12 & 31:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}{fraction}"


def _timestamp_text(packed: int, digits: int) -> str:
    """TIMESTAMP of its seconds and fraction, in UTC."""
    seconds, fraction = _split(packed, digits)
    if packed == 0:
        return "0000-00-00 00:00:00" + fraction
    return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}{fraction}"


def _time_text(packed: int, digits: int) -> str:
    """TIME of its 24 bits and fraction, offset by half the range."""
    packed -= 1 << (8 * (3 + (digits + 1) // 2) - 1)
    whole, fraction = _split(abs(packed), digits)
    sign = "-" if packed < 0 else ""
    return f"{sign}{whole >> 12 & 1023:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}{fraction}"


def _wide_decimal_text(piece: bytes, digits: int, scale: int) -> str:
    """DECIMAL of its groups of nine digits, with *scale* digits behind the point."""
    negative = piece[0] < 0x80
    raw = bytes((byte ^ 0xFF) if negative else byte for byte in piece)
    raw = bytes((raw[0] ^ 0x80,)) + raw[1:]
    whole = digits - scale
    groups = [whole % 9] + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9]
    number = at = 0
    for count in groups:
        size = _DIGITS_BYTES[count]
        number = number * 10**count + int.from_bytes(raw[at : at + size], "big")
        at += size
    text = f"{number:0{scale + 1}d}"
    text = f"{text[:-scale]}.{text[-scale:]}" if scale else text
    return "-" + text if negative else text
