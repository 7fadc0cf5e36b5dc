"""CRC32 sixteen bytes at a time by carry-less products, where the processor has them.

Method and constants: Gopal and others, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ (Intel, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

__all__ = ["CAN_FOLD", "FOLD_FROM_BYTES", "fold"]

FOLD_FROM_BYTES = 64

_NAME = "historian_crc32_fold"
_FEATURES = ("pclmul", "sse4.1")
_FOUR_BLOCKS = (0x154442BD4, 0x1C6E41596)
_ONE_BLOCK = (0x1751997D0, 0x0CCAA009E)
_LANES = 4

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_PAIR = ir.VectorType(_WORD, 2)


def _can_fold() -> bool:
    host = binding.get_host_cpu_features()
    return binding.get_process_triple().startswith("x86_64") and all(host.get(name) for name in _FEATURES)


CAN_FOLD = _can_fold()
"""Whether this processor can run :func:`fold`."""


def _function(module: Any) -> Any:
    """The function (address, number of whole blocks, register, address of the result), made once a module."""
    found = module.globals.get(_NAME)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_WORD] * 4), _NAME)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    # Code for any processor of the family holds these instructions too; who calls has asked for them at run time.
    set.add(function.attributes, '"target-features"="' + ",".join(f"+{name}" for name in _FEATURES) + '"')
    _fill(function)
    return function


def _fill(function: Any) -> None:
    module = function.module
    product_type = ir.FunctionType(_PAIR, [_PAIR, _PAIR, _BYTE])
    product = module.globals.get("llvm.x86.pclmulqdq") or ir.Function(module, product_type, "llvm.x86.pclmulqdq")
    start, blocks, register, result = function.args
    entry = function.append_basic_block("entry")
    builder = ir.IRBuilder(entry)

    def load(at: Any, number: int) -> Any:
        address = builder.inttoptr(builder.add(at, ir.Constant(_WORD, 16 * number)), _PAIR.as_pointer())
        return builder.load(address, align=1)

    def moved(value: Any, constants: Any) -> Any:
        """*value*, congruent to what it stands for as many blocks earlier as the constants say."""
        low = builder.call(product, [value, constants, ir.Constant(_BYTE, 0x00)])
        high = builder.call(product, [value, constants, ir.Constant(_BYTE, 0x11)])
        return builder.xor(low, high)

    four, one = (ir.Constant(_PAIR, list(pair)) for pair in (_FOUR_BLOCKS, _ONE_BLOCK))
    first = builder.insert_element(ir.Constant(_PAIR, [0, 0]), register, ir.Constant(ir.IntType(32), 0))
    lanes = [load(start, number) for number in range(_LANES)]
    lanes[0] = builder.xor(lanes[0], first)
    at, left = builder.add(start, ir.Constant(_WORD, 16 * _LANES)), builder.sub(blocks, ir.Constant(_WORD, _LANES))

    def loop(name: str, step: int, at: Any, left: Any, values: list[Any], constants: Any) -> tuple[Any, Any, list[Any]]:
        """While *step* blocks are left, folds each value onto the block that comes *step* blocks later."""
        before = builder.block
        head, body, behind = (function.append_basic_block(f"{name}.{part}") for part in ("head", "body", "behind"))
        builder.branch(head)
        builder.position_at_end(head)
        places = [builder.phi(_WORD), builder.phi(_WORD)]
        carried = [builder.phi(_PAIR) for _ in values]
        for phi, value in zip([*places, *carried], [at, left, *values], strict=True):
            phi.add_incoming(value, before)
        enough = builder.icmp_signed(">=", places[1], ir.Constant(_WORD, step))
        builder.cbranch(enough, body, behind)
        builder.position_at_end(body)
        folded = [builder.xor(moved(value, constants), load(places[0], number)) for number, value in enumerate(carried)]
        following = builder.add(places[0], ir.Constant(_WORD, 16 * step))
        fewer = builder.sub(places[1], ir.Constant(_WORD, step))
        for phi, value in zip([*places, *carried], [following, fewer, *folded], strict=True):
            phi.add_incoming(value, body)
        builder.branch(head)
        builder.position_at_end(behind)
        return places[0], places[1], list(carried)

    at, left, lanes = loop("four", _LANES, at, left, lanes, four)
    value = lanes[0]
    for lane in lanes[1:]:
        value = builder.xor(moved(value, one), lane)
    at, left, (value,) = loop("one", 1, at, left, [value], one)
    builder.store(value, builder.inttoptr(result, _PAIR.as_pointer()), align=1)
    builder.ret_void()


def _fold(_context: Any, start: Any, blocks: Any, register: Any, result: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.call(_function(builder.module), arguments)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


_make: Any = intrinsic
fold: Callable[[int, int, int, int], None] = _make(_fold)
"""Stores 16 bytes at *result* whose CRC, begun with 0, is that of *blocks* (4 or more) of 16 bytes begun with *register*."""
