"""Copies and loads at places of byte arrays as single machine instructions, little-endian and unaligned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types

from historian.encoding.kernels.jit import kernel

__all__ = ["copy_bytes", "load_u32"]

# Its own type knows nothing of what the function becomes.
_intrinsic: Any = extending.intrinsic

_BYTE = ir.IntType(8).as_pointer()


def _copy(_context: Any, target: Any, source: Any, count: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        copy = builder.module.declare_intrinsic("llvm.memcpy", [_BYTE, _BYTE, ir.IntType(64)])
        ends = [builder.inttoptr(argument, _BYTE) for argument in arguments[:2]]
        builder.call(copy, [*ends, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _load(_context: Any, address: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(32).as_pointer())
        return builder.zext(builder.load(pointer, align=1), ir.IntType(64))

    return types.int64(types.int64), generate


_copy_at: Callable[[int, int, int], None] = _intrinsic(_copy)
_load_at: Callable[[int], int] = _intrinsic(_load)


@kernel
def copy_bytes(out, target, data, source, count):
    """Copies *count* bytes of *data* from *source* to *target* of *out*."""
    _copy_at(np.int64(out.ctypes.data) + target, np.int64(data.ctypes.data) + source, count)


@kernel
def load_u32(data, at):
    """The unsigned number of four bytes at *at*."""
    return _load_at(np.int64(data.ctypes.data) + at)
