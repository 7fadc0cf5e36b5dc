"""Text written at an address: numbers as the server prints them, base64. The caller has made room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from connectors.readers.binlog.kernels.machine.jit import kernel
from connectors.readers.machine.memory import load_u8, shift_right, store_i8

__all__ = ["MAX_DOUBLE_BYTES", "put_double", "put_integer", "put_padded", "put_unsigned"]

MAX_DOUBLE_BYTES = 64  # while it is made
_MAX_POINT = 15  # digits before the point that are written out
_MIN_POINT = -14


@kernel
def put_unsigned(out: int, value: int) -> int:
    """Writes *value* as an unsigned number; returns the address behind it."""
    count = 1
    # Halved first, since the word may be above the signed range.
    rest = shift_right(value, 1) // 5
    while rest:
        count += 1
        rest //= 10
    for place in range(count - 1, -1, -1):
        tenth = shift_right(value, 1) // 5
        store_i8(out + place, 48 + value - 10 * tenth)
        value = tenth
    return out + count


@kernel
def put_integer(out: int, value: int) -> int:
    """Writes *value*; returns the address behind it."""
    if value < 0:
        store_i8(out, 45)
        return put_unsigned(out + 1, -value)
    return put_unsigned(out, value)


@kernel
def put_padded(out: int, value: int, width: int) -> int:
    """Writes *value* with zeros in front up to *width* digits."""
    limit = 10
    digits = 1
    while digits < width:
        if value < limit:
            store_i8(out, 48)
            out += 1
        limit *= 10
        digits += 1
    # Zeros were written from the left; the number itself takes what is left of the width, or more.
    return put_unsigned(out, value)


def _shortest(_context: Any, bits: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        number = builder.bitcast(arguments[0], ir.DoubleType())
        kind = ir.FunctionType(byte, [ir.DoubleType(), ir.IntType(8), ir.IntType(32), ir.IntType(32), byte])
        function = _external(builder.module, kind, "PyOS_double_to_string")
        zero = ir.Constant(ir.IntType(32), 0)
        text = builder.call(
            function, [number, ir.Constant(ir.IntType(8), ord("r")), zero, zero, ir.Constant(byte, None)]
        )
        return builder.ptrtoint(text, word)

    return types.int64(types.int64), generate


def _free(_context: Any, address: Any) -> Any:
    def generate(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        function = _external(builder.module, ir.FunctionType(ir.VoidType(), [byte]), "PyMem_Free")
        builder.call(function, [builder.inttoptr(arguments[0], byte)])
        return target.get_dummy_value()

    return types.void(types.int64), generate


def _external(module: Any, kind: Any, name: str) -> Any:
    found = module.globals.get(name)
    return ir.Function(module, kind, name) if found is None else found


_make: Any = intrinsic
# Python's own shortest text of a double that reads back the same: the digits are those of the server's, both being David
# Gay's algorithm. It needs the interpreter's lock.
_shortest_text: Callable[[int], int] = _make(_shortest)
_free_text: Callable[[int], None] = _make(_free)


@kernel
def _exponent(text: int) -> int:
    """The number behind the e that stands before *text*."""
    negative = load_u8(text) == 45
    text += 1
    value = 0
    while load_u8(text):
        value = 10 * value + load_u8(text) - 48
        text += 1
    return -value if negative else value


@kernel
def put_double(out: int, bits: int, bare: int) -> int:
    """Writes the double of those *bits* as ``my_gcvt`` (MySQL, strings/dtoa.cc); whole ones get ".0" unless *bare*.

    Returns the address behind it; 0 where memory ran out.
    """
    text = _shortest_text(bits)
    if text == 0:
        return 0
    at = text
    if load_u8(at) == 45:
        store_i8(out, 45)
        out += 1
        at += 1
    # The digits without point and leading zeros are put aside, behind the longest result.
    digits = out + 40
    count = 0
    point = 0
    seen_point = False
    while load_u8(at) and load_u8(at) != 101:
        byte = load_u8(at)
        if byte == 46:
            seen_point = True
        elif count or byte != 48:
            store_i8(digits + count, byte)
            count += 1
            point += 0 if seen_point else 1
        elif seen_point:
            point -= 1
        at += 1
    if load_u8(at):
        point += _exponent(at + 1)
    _free_text(text)
    while count and load_u8(digits + count - 1) == 48:
        count -= 1
    if count == 0:
        store_i8(digits, 48)
        count = 1
        point = 1
    return _place(out, digits, count, point, bare)


@kernel
def _place(out: int, digits: int, count: int, point: int, bare: int) -> int:
    """Writes 0.DIGITS * 10 ** point in plain or exponent form."""
    if point < _MIN_POINT or (point > _MAX_POINT and count <= point):
        store_i8(out, load_u8(digits))
        out += 1
        if count > 1:
            store_i8(out, 46)
            out += 1
            for index in range(1, count):
                store_i8(out, load_u8(digits + index))
                out += 1
        store_i8(out, 101)
        return put_integer(out + 1, point - 1)
    if point <= 0:
        store_i8(out, 48)
        store_i8(out + 1, 46)
        out += 2
        for index in range(count - point):
            store_i8(out, 48 if index < -point else load_u8(digits + index + point))
            out += 1
        return out
    for index in range(point):
        store_i8(out, load_u8(digits + index) if index < count else 48)
        out += 1
    if count > point:
        store_i8(out, 46)
        out += 1
        for index in range(point, count):
            store_i8(out, load_u8(digits + index))
            out += 1
    elif not bare:
        store_i8(out, 46)
        store_i8(out + 1, 48)
        out += 2
    return out
