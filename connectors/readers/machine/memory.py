"""Loads and stores at addresses, little-endian and unaligned, as single machine instructions.

Whoever calls has compared the address with the bounds of its memory. All numbers are int64: numba makes floats of mixed
signed and unsigned ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types

__all__ = [
    "call",
    "copy_bytes",
    "fill_zero",
    "load_i8",
    "load_i16",
    "load_i32",
    "load_i64",
    "load_u8",
    "load_u16",
    "load_u32",
    "prefetch",
    "prefetch_load",
    "shift_right",
    "store_i8",
    "store_i16",
    "store_i32",
    "store_i64",
    "swap64",
    "trailing_zeros",
]

_Load = Callable[[int], int]
_Store = Callable[[int, int], None]

# Its own type knows nothing of what the function becomes.
_intrinsic: Any = extending.intrinsic


def _load(bits: int, *, signed: bool) -> Any:
    def load(_context: Any, address: Any) -> Any:
        def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            value = builder.load(pointer, align=1)
            if bits == 64:
                return value
            return (builder.sext if signed else builder.zext)(value, ir.IntType(64))

        return types.int64(types.int64), generate

    return _intrinsic(load)


def _store(bits: int) -> Any:
    def store(_context: Any, address: Any, value: Any) -> Any:
        def generate(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            number = arguments[1] if bits == 64 else builder.trunc(arguments[1], ir.IntType(bits))
            builder.store(number, builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()), align=1)
            return target.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return _intrinsic(store)


load_u8: _Load = _load(8, signed=False)
load_u16: _Load = _load(16, signed=False)
load_u32: _Load = _load(32, signed=False)
load_i8: _Load = _load(8, signed=True)
load_i16: _Load = _load(16, signed=True)
load_i32: _Load = _load(32, signed=True)
load_i64: _Load = _load(64, signed=True)
store_i8: _Store = _store(8)
store_i16: _Store = _store(16)
store_i32: _Store = _store(32)
store_i64: _Store = _store(64)

_BYTE = ir.IntType(8).as_pointer()
_WORD = ir.IntType(64)


def _copy_bytes(_context: Any, target: Any, source: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        copy = builder.module.declare_intrinsic("llvm.memcpy", [_BYTE, _BYTE, _WORD])
        ends = [builder.inttoptr(argument, _BYTE) for argument in arguments[:2]]
        builder.call(copy, [*ends, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _fill_zero(_context: Any, target: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        fill = builder.module.declare_intrinsic("llvm.memset", [_BYTE, _WORD])
        pointer = builder.inttoptr(arguments[0], _BYTE)
        builder.call(fill, [pointer, ir.Constant(ir.IntType(8), 0), arguments[1], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


def _prefetch(*, for_writing: bool) -> Any:
    kind = ir.FunctionType(ir.VoidType(), [_BYTE, ir.IntType(32), ir.IntType(32), ir.IntType(32)])
    settings = [ir.Constant(ir.IntType(32), number) for number in (int(for_writing), 3, 1)]

    def prefetch(_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            fetch = builder.module.declare_intrinsic("llvm.prefetch", [_BYTE], kind)
            builder.call(fetch, [builder.inttoptr(arguments[0], _BYTE), *settings])
            return context.get_dummy_value()

        return types.void(types.int64), generate

    return _intrinsic(prefetch)


def _swap64(_context: Any, value: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.int64(types.int64), generate


def _shift_right(_context: Any, value: Any, bits: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.lshr(arguments[0], arguments[1])

    return types.int64(types.int64, types.int64), generate


def _trailing_zeros(_context: Any, value: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _call(_context: Any, function: Any, first: Any, second: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_WORD, [_WORD, _WORD])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


call: Callable[[int, int, int], int] = _intrinsic(_call)
"""What the C function at an address gives of two words; those that it does not take, and what one without a result gives, mean nothing."""

copy_bytes: Callable[[int, int, int], None] = _intrinsic(_copy_bytes)
"""Copies *count* bytes from address *source* to address *target*; they do not overlap."""

fill_zero: _Store = _intrinsic(_fill_zero)
"""Sets *count* bytes from address *target* to zero."""

prefetch: Callable[[int], None] = _prefetch(for_writing=True)
"""Has the memory at an address, which need not be anyone's, near the processor for a store to come."""

prefetch_load: Callable[[int], None] = _prefetch(for_writing=False)
"""The same for a load to come."""

swap64: Callable[[int], int] = _intrinsic(_swap64)
"""*value* with its eight bytes in reverse order."""

trailing_zeros: Callable[[int], int] = _intrinsic(_trailing_zeros)
"""How many bits of *value* are zero below its lowest one; it is not 0."""

shift_right: Callable[[int, int], int] = _intrinsic(_shift_right)
"""*value* shifted right as an unsigned number, 0 <= *bits* <= 63."""
