"""CRC32 by carry-less products, where the processor has them: 16 bytes at a time, or 64 where it has four at once.

Method and constants: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

__all__ = ["CAN_FOLD", "FOLD_FROM_BYTES", "WIDE_FROM_BYTES", "fold", "fold_wide"]

FOLD_FROM_BYTES = 64

_POLYNOMIAL = 0x104C11DB7
_FEATURES = ("pclmul", "sse4.1")
_WIDE_FEATURES = (*_FEATURES, "avx512f", "vpclmulqdq")
_LANES = 4
_WIDE_BLOCKS = 4  # in one wide word
_NEVER = 1 << 62

_BYTE, _WORD, _INDEX = ir.IntType(8), ir.IntType(64), ir.IntType(32)
_PAIR = ir.VectorType(_WORD, 2)


def _has(features: tuple[str, ...]) -> bool:
    host = binding.get_host_cpu_features()
    return binding.get_process_triple().startswith("x86_64") and all(host.get(name) for name in features)


CAN_FOLD = _has(_FEATURES)
"""Whether this processor can run :func:`fold`."""

WIDE_FROM_BYTES = 16 * _WIDE_BLOCKS * _LANES if _has(_WIDE_FEATURES) else _NEVER
"""From how many bytes on this processor can run :func:`fold_wide`."""


def _remainder(bits: int) -> int:
    """x**bits modulo the polynomial, in the order of bits that reflected products take."""
    value = 1
    for _ in range(bits):
        value <<= 1
        value ^= _POLYNOMIAL if value >> 32 else 0
    return int(f"{value:032b}"[::-1], 2) << 1


def _constants(blocks: int) -> tuple[int, int]:
    """The factors that move a value by so many blocks."""
    return _remainder(128 * blocks + 32), _remainder(128 * blocks - 32)


def _function(module: Any, name: str, features: tuple[str, ...], width: int) -> Any:
    """The function (address, number of whole blocks, register, address of the result), made once a module."""
    found = module.globals.get(name)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WORD] * 4), name)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    # Code for any processor of the family holds these instructions too; who calls has asked for them at run time.
    set.add(function.attributes, '"target-features"="' + ",".join(f"+{each}" for each in features) + '"')
    _Body(function, width).fill()
    return function


class _Body:
    """The code of a function that folds words of *width* blocks of 16 bytes."""

    def __init__(self, function: Any, width: int) -> None:
        self._function, self._width = function, width
        self._builder = ir.IRBuilder(function.append_basic_block("entry"))

    def fill(self) -> None:
        """Folds four words at a time, then one, then what is left by blocks."""
        builder, width = self._builder, self._width
        at, blocks, register, result = self._function.args
        zeros = ir.Constant(ir.VectorType(_WORD, 2 * width), [0] * 2 * width)
        values = [self._load(at, number, width) for number in range(_LANES)]
        values[0] = builder.xor(values[0], builder.insert_element(zeros, register, ir.Constant(_INDEX, 0)))
        step = width * _LANES
        at, left = builder.add(at, ir.Constant(_WORD, 16 * step)), builder.sub(blocks, ir.Constant(_WORD, step))
        at, left, values = self._loop("four", at, left, values, width)
        at, left, (value,) = self._loop("one", at, left, [self._joined(values, width)], width)
        if width > 1:
            parts = [
                builder.shuffle_vector(value, zeros, ir.Constant(ir.VectorType(_INDEX, 2), [first, first + 1]))
                for first in range(0, 2 * width, 2)
            ]
            at, left, (value,) = self._loop("block", at, left, [self._joined(parts, 1)], 1)
        builder.store(value, builder.inttoptr(result, _PAIR.as_pointer()), align=1)
        builder.ret_void()

    def _load(self, at: Any, number: int, width: int) -> Any:
        address = self._builder.add(at, ir.Constant(_WORD, 16 * width * number))
        kind = ir.VectorType(_WORD, 2 * width)
        return self._builder.load(self._builder.inttoptr(address, kind.as_pointer()), align=1)

    def _moved(self, value: Any, width: int, blocks: int) -> Any:
        """*value*, congruent to what it stands for so many blocks earlier."""
        kind = ir.VectorType(_WORD, 2 * width)
        name = "llvm.x86.pclmulqdq" + (f".{128 * width}" if width > 1 else "")
        module = self._function.module
        product = module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [kind, kind, _BYTE]), name)
        constants = ir.Constant(kind, list(_constants(blocks)) * width)
        low = self._builder.call(product, [value, constants, ir.Constant(_BYTE, 0x00)])
        high = self._builder.call(product, [value, constants, ir.Constant(_BYTE, 0x11)])
        return self._builder.xor(low, high)

    def _joined(self, values: list[Any], width: int) -> Any:
        """One word that stands for words that follow each other."""
        value = values[0]
        for following in values[1:]:
            value = self._builder.xor(self._moved(value, width, width), following)
        return value

    def _loop(self, name: str, at: Any, left: Any, values: list[Any], width: int) -> tuple[Any, Any, list[Any]]:
        """While there are as many words left as *values*, folds each value onto the word that comes so much later."""
        builder, step = self._builder, width * len(values)
        before = builder.block
        head, body, behind = (
            self._function.append_basic_block(f"{name}.{part}") for part in ("head", "body", "behind")
        )
        builder.branch(head)
        builder.position_at_end(head)
        places = [builder.phi(_WORD), builder.phi(_WORD)]
        carried = [builder.phi(value.type) for value in values]
        for phi, value in zip([*places, *carried], [at, left, *values], strict=True):
            phi.add_incoming(value, before)
        enough = builder.icmp_signed(">=", places[1], ir.Constant(_WORD, step))
        builder.cbranch(enough, body, behind)
        builder.position_at_end(body)
        folded = [
            builder.xor(self._moved(value, width, step), self._load(places[0], number, width))
            for number, value in enumerate(carried)
        ]
        following = builder.add(places[0], ir.Constant(_WORD, 16 * step))
        fewer = builder.sub(places[1], ir.Constant(_WORD, step))
        for phi, value in zip([*places, *carried], [following, fewer, *folded], strict=True):
            phi.add_incoming(value, body)
        builder.branch(head)
        builder.position_at_end(behind)
        return places[0], places[1], list(carried)


def _folding(name: str, features: tuple[str, ...], width: int) -> Any:
    def fold(_context: Any, start: Any, blocks: Any, register: Any, result: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            builder.call(_function(builder.module, name, features, width), arguments)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64, types.int64), generate

    make: Any = intrinsic
    return make(fold)


fold: Callable[[int, int, int, int], None] = _folding("historian_crc32_fold", _FEATURES, 1)
"""Stores 16 bytes at *result* whose CRC, begun with 0, is that of *blocks* (4 or more) of 16 bytes begun with *register*."""

fold_wide: Callable[[int, int, int, int], None] = _folding("historian_crc32_fold_wide", _WIDE_FEATURES, _WIDE_BLOCKS)
"""The same of 16 blocks or more."""
