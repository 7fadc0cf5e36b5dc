"""Arrow arrays of located values: by compiled code, and value by value where that does not understand one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.readers.kafka.kernels import changes, moments, numbers
from connectors.readers.kafka.kernels import layout as at
from connectors.readers.kafka.kernels import texts as text_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from connectors.readers.kafka.located.batches import LocatedRows

__all__ = [
    "Convert",
    "Reading",
    "array_of",
    "base64_bytes",
    "base64_decimals",
    "booleans",
    "bounds_of",
    "dates",
    "decimals",
    "doubles",
    "enum_numbers",
    "fixed",
    "integers",
    "labels",
    "latin1_bytes",
    "moments_of",
    "texts",
    "times",
    "values_of",
    "varying",
]

_LEAST, _MOST = -(2**63), 2**63 - 1
_MOST_EXACT = 2**24
"""Up to this a FLOAT has all integers."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """A column of located rows, as kernels are told of it.

    Attributes:
        place: buffer, images, columns, column and rows of the kernels' arguments, and how many rows there are.
    """

    rows: LocatedRows
    place: tuple[int, int, int, int, int, int]

    @property
    def count(self) -> int:
        return self.place[-1]


Reading = Callable[[_Cells], "tuple[pa.Array, NDArray[np.uint8]]"]
"""Makes an array of a column, and of each row a byte that says what it is: ``NO_VALUE``, ``HAS_VALUE`` or ``MISFIT``, which is NULL so far."""

Convert = Callable[[Sequence[Any]], pa.Array]
"""Makes an array of values as messages have them, None for NULL."""


def array_of(rows: LocatedRows, name: str, reading: Reading | None, convert: Convert, *, whole: bool) -> pa.Array:
    """The column *name* of located rows.

    Args:
        reading: by compiled code; None: there is none for the type.
        convert: what an array is where that does not understand a value.
        whole: a row without the column is an error.

    Raises:
        KeyError: it is, and there is one.
        Whatever *convert* raises.
    """
    column = rows.program.slots.get(name)
    if column is None:
        if whole:
            raise KeyError(name)
        return convert([None] * len(rows))
    cells = _cells(rows, column)
    if whole and changes.missing(*cells.place[1:]):
        raise KeyError(name)
    if reading is None:
        return convert(_values(cells, None))
    array, status = reading(cells)
    strange = status >= at.MISFIT
    if not strange.any():
        return array
    made = convert(_values(cells, np.flatnonzero(strange)))
    return pc.replace_with_mask(array, pa.array(strange), made)


def values_of(rows: LocatedRows, name: str) -> list[Any]:
    """The values of a column as messages have them, None for NULL and where there is none."""
    column = rows.program.slots.get(name)
    return [None] * len(rows) if column is None else _values(_cells(rows, column), None)


def _cells(rows: LocatedRows, column: int) -> _Cells:
    program = rows.program
    return _Cells(rows, (rows.texts.address, program.images, len(program.slots), column, rows.rows_address, len(rows)))


def _values(cells: _Cells, chosen: NDArray[np.intp] | None) -> list[Any]:
    """Values as messages have them: of all rows, or of those *chosen*."""
    rows = cells.rows
    numbers = np.arange(rows.begin, rows.end) if chosen is None else rows.begin + chosen
    return rows.program.values(rows.texts, numbers, cells.place[3])


# ---- of fixed width --------------------------------------------------------------------------------------------------
def fixed(
    cells: _Cells, kind: pa.DataType, width: int, kernel: Callable[..., int], *more: int
) -> tuple[pa.Array, NDArray[np.uint8]]:
    """What a kernel makes of a column: values of *width* bytes."""
    out, status = np.empty(cells.count * width, np.uint8), np.empty(cells.count, np.uint8)
    kernel(*cells.place, out.ctypes.data, status.ctypes.data, *more)
    return _array(kind, [pa.py_buffer(out)], status), status


def _array(kind: pa.DataType, buffers: list[pa.Buffer], status: NDArray[np.uint8]) -> pa.Array:
    held = status == at.HAS_VALUE
    nulls = len(held) - int(np.count_nonzero(held))
    validity = pa.py_buffer(np.packbits(held, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(kind, len(held), [validity, *buffers], nulls)


def bounds_of(kind: pa.DataType) -> tuple[int, int, int]:
    """How many bytes a value takes, and between which integers it is; above 8 bytes those of 8."""
    width = kind.bit_width // 8
    return (width, -(1 << 8 * width - 1), (1 << 8 * width - 1) - 1) if width < 8 else (width, _LEAST, _MOST)


def integers(
    kind: pa.DataType,
    *,
    multiplier: int = 1,
    divisor: int = 1,
    texts: bool = False,
    truths: bool = False,
    wraps: bool = False,
) -> Reading:
    """Integers as an Arrow type of integers, of moments or of DECIMAL(20,0); see the kernel."""
    width, low, high = bounds_of(kind)
    more = (width, low, high, multiplier, divisor, int(texts), int(truths), int(wraps))
    return lambda cells: fixed(cells, kind, width, numbers.integers, *more)


def decimals(kind: pa.DataType) -> Reading:
    """Texts and numbers as DECIMAL."""
    return lambda cells: fixed(cells, kind, 16, numbers.decimals, kind.precision, kind.scale)


def base64_decimals(kind: pa.DataType) -> Reading:
    """Digits without a point as a number in base64, as DECIMAL of that many digits behind it."""
    return lambda cells: fixed(cells, kind, 16, numbers.base64_decimals, kind.precision, _SIX_BITS.ctypes.data)


def doubles(kind: pa.DataType, *, texts: bool = False) -> Reading:
    """Numbers as FLOAT or DOUBLE; without *texts*, FLOATs that are written as integers are exact."""
    most = _MOST_EXACT if kind == pa.float32() and not texts else _MOST

    def read(cells: _Cells) -> tuple[pa.Array, NDArray[np.uint8]]:
        out, status = np.empty(cells.count, np.float64), np.empty(cells.count, np.uint8)
        if numbers.doubles(*cells.place, out.ctypes.data, status.ctypes.data, int(texts), most):
            long = np.flatnonzero(status == at.LONG_NUMBER)
            if len(long):
                found = _spans(cells, long).cast(pa.float64()).to_numpy()
                finite = np.isfinite(found)
                out[long] = found
                status[long] = np.where(finite, at.HAS_VALUE, at.MISFIT)
        if kind == pa.float32():
            with np.errstate(over="ignore"):
                return _array(kind, [pa.py_buffer(out.astype(np.float32))], status), status
        return _array(kind, [pa.py_buffer(out)], status), status

    return read


def _spans(cells: _Cells, chosen: NDArray[np.intp]) -> pa.Array:
    """The values of the rows *chosen* as they stand in messages."""
    buffer, images, columns, column, _, _ = cells.place
    rows = cells.rows.program.row_images[cells.rows.begin : cells.rows.end][chosen]
    size = text_kernels.most_bytes(images, columns, column, rows.ctypes.data, len(rows))
    offsets, data = np.empty(len(rows) + 1, np.int32), np.empty(size + at.SLACK, np.uint8)
    text_kernels.spans(
        buffer, images, columns, column, rows.ctypes.data, len(rows), offsets.ctypes.data, data.ctypes.data
    )
    return pa.Array.from_buffers(pa.string(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)


def booleans(*, numbers_too: bool = False) -> Reading:
    """True and false, and 1 and 0 where *numbers_too*, as BIT(1)."""

    def read(cells: _Cells) -> tuple[pa.Array, NDArray[np.uint8]]:
        out, status = np.empty(cells.count, np.uint8), np.empty(cells.count, np.uint8)
        numbers.booleans(*cells.place, out.ctypes.data, status.ctypes.data, int(numbers_too))
        return _array(pa.bool_(), [pa.py_buffer(np.packbits(out, bitorder="little"))], status), status

    return read


def moments_of(kind: pa.DataType, *, zulu: bool) -> Reading:
    """Texts of a date and a time in UTC, with a Z behind where *zulu*."""
    return lambda cells: fixed(cells, kind, 8, moments.moments, int(zulu))


def dates() -> Reading:
    """Texts of dates."""
    return lambda cells: fixed(cells, pa.date32(), 4, moments.dates)


def times() -> Reading:
    """Texts of TIME as microseconds."""
    return lambda cells: fixed(cells, pa.int64(), 8, moments.times)


# ---- of varying width ------------------------------------------------------------------------------------------------
def varying(
    cells: _Cells, kind: pa.DataType, kernel: Callable[..., int], *more: int
) -> tuple[pa.Array, NDArray[np.uint8]]:
    """What a kernel makes of a column: values of as many bytes as they have."""
    size = text_kernels.most_bytes(*cells.place[1:])
    offsets, data = np.empty(cells.count + 1, np.int32), np.empty(size + at.SLACK, np.uint8)
    status = np.empty(cells.count, np.uint8)
    kernel(*cells.place, offsets.ctypes.data, data.ctypes.data, status.ctypes.data, *more)
    return _array(kind, [pa.py_buffer(offsets), pa.py_buffer(data[: offsets[-1]])], status), status


def texts(*, escapes: bool = True) -> Reading:
    """Texts; with *escapes* those too that have some."""
    return lambda cells: varying(cells, pa.string(), text_kernels.texts, int(escapes))


def base64_bytes() -> Reading:
    """Bytes in base64 with padding."""
    return lambda cells: varying(cells, pa.binary(), text_kernels.base64_bytes, _SIX_BITS.ctypes.data)


def latin1_bytes() -> Reading:
    """Bytes of which each is the character of its number."""
    return lambda cells: varying(cells, pa.binary(), text_kernels.latin1_bytes)


def labels(known: Sequence[str]) -> Reading:
    """Texts that are one of those *known*."""
    among, read = pa.array(known, pa.string()), texts()

    def checked(cells: _Cells) -> tuple[pa.Array, NDArray[np.uint8]]:
        array, status = read(cells)
        wrong = ~pc.is_in(array, value_set=among).to_numpy(zero_copy_only=False) & (status == at.HAS_VALUE)
        status[wrong] = at.MISFIT
        return array, status

    return checked


def enum_numbers(known: Sequence[str]) -> Reading:
    """Numbers of labels, of which the first one is 1, and 0 the empty text."""
    among = pa.array(["", *known], pa.string())
    read = integers(pa.int64(), texts=True)

    def taken(cells: _Cells) -> tuple[pa.Array, NDArray[np.uint8]]:
        array, status = read(cells)
        found = np.frombuffer(array.buffers()[1], np.int64, len(array))
        status[(status == at.HAS_VALUE) & ((found < 0) | (found >= len(among)))] = at.MISFIT
        held = status == at.HAS_VALUE
        return among.take(pa.array(np.where(held, found, 0), mask=~held)), status

    return taken


def _six_bits() -> NDArray[np.uint8]:
    found = np.full(256, 255, np.uint8)
    for number, character in enumerate(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):
        found[character] = number
    return found


_SIX_BITS = _six_bits()
