"""Latin-1 text into UTF-8, eight characters at a time, where the processor has a shuffle of bytes by a register.

Each character becomes two bytes, and a shuffle takes the second ones of ASCII out. So do Keiser and Lemire, Transcoding
billions of Unicode characters per second with SIMD instructions (2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CAN_SHUFFLE", "STORED_BYTES", "latin1_run", "shuffles"]

STORED_BYTES = 16
"""So many are stored at a time, of which eight or more count."""

_FEATURE = "ssse3"
_NAME = "historian_latin1_run"
_HIGH_BITS = 0x8080808080808080
_ONE_BIT_A_BYTE = 0x0102040810204080  # brings the lowest bit of each byte into the highest byte
_CHARS = 8

_BYTE, _WORD = ir.IntType(8), ir.IntType(64)
_BYTES, _PAIRS = ir.VectorType(_BYTE, STORED_BYTES), ir.VectorType(ir.IntType(16), _CHARS)

_IS_X86 = binding.get_process_triple().startswith("x86_64")

CAN_SHUFFLE = _IS_X86 and bool(binding.get_host_cpu_features().get(_FEATURE))
"""Whether this processor can run :func:`latin1_run`."""


def shuffles() -> NDArray[np.uint8]:
    """The table that :func:`latin1_run` takes: 256 shuffles of 16 bytes, one for each set of characters above 127."""
    table = np.full((256, STORED_BYTES), 0x80, np.uint8)
    for high in range(256):
        kept = [2 * char + half for char in range(_CHARS) for half in range(1 + (high >> char & 1))]
        table[high, : len(kept)] = kept
    return table


def _same(value: int) -> Any:
    return ir.Constant(_PAIRS, [value] * _CHARS)


def _function(module: Any) -> Any:
    """The function, made once a module."""
    found = module.globals.get(_NAME)
    if found is not None:
        return found
    function = ir.Function(module, ir.FunctionType(_WORD, [_WORD] * 4), _NAME)
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    # Code for any processor of the family holds the instruction too; who calls has asked for it at run time.
    set.add(function.attributes, f'"target-features"="+{_FEATURE}"')
    entry, head, body, step, behind = map(function.append_basic_block, ("entry", "head", "body", "step", "behind"))
    start, words, out, table = function.args
    zero, one = ir.Constant(_WORD, 0), ir.Constant(_WORD, 1)

    builder = ir.IRBuilder(entry)
    builder.branch(head)

    builder.position_at_end(head)
    done, used = builder.phi(_WORD), builder.phi(_WORD)
    builder.cbranch(builder.icmp_signed("<", done, words), body, behind)

    builder.position_at_end(body)
    address = builder.add(start, builder.shl(done, ir.Constant(_WORD, 3)))
    word = builder.load(builder.inttoptr(address, _WORD.as_pointer()), align=1)
    high = builder.and_(word, ir.Constant(_WORD, _HIGH_BITS))
    # 0x80 to 0x9F, which Latin-1 has controls for and MySQL's latin1 other characters: bit 7 without bits 6 and 5.
    other = builder.or_(builder.shl(word, one), builder.shl(word, ir.Constant(_WORD, 2)))
    builder.cbranch(builder.icmp_signed("==", builder.and_(high, builder.not_(other)), zero), step, behind)

    builder.position_at_end(step)
    chars = builder.zext(builder.bitcast(word, ir.VectorType(_BYTE, _CHARS)), _PAIRS)
    lead = builder.or_(builder.lshr(chars, _same(6)), _same(0xC0))
    trail = builder.shl(builder.or_(builder.and_(chars, _same(0x3F)), _same(0x80)), _same(8))
    pairs = builder.select(builder.icmp_unsigned(">", chars, _same(0x7F)), builder.or_(lead, trail), chars)
    bits = builder.mul(builder.lshr(high, ir.Constant(_WORD, 7)), ir.Constant(_WORD, _ONE_BIT_A_BYTE))
    number = builder.lshr(bits, ir.Constant(_WORD, 56))
    row = builder.add(table, builder.shl(number, ir.Constant(_WORD, 4)))
    shuffle = builder.load(builder.inttoptr(row, _BYTES.as_pointer()), align=1)
    name = "llvm.x86.ssse3.pshuf.b.128"
    shuffled = module.globals.get(name) or ir.Function(module, ir.FunctionType(_BYTES, [_BYTES, _BYTES]), name)
    text = builder.call(shuffled, [builder.bitcast(pairs, _BYTES), shuffle])
    builder.store(text, builder.inttoptr(builder.add(out, used), _BYTES.as_pointer()), align=1)
    longer = builder.add(builder.ctpop(number), ir.Constant(_WORD, _CHARS))
    for phi, first, following in ((done, zero, builder.add(done, one)), (used, zero, builder.add(used, longer))):
        phi.add_incoming(first, entry)
        phi.add_incoming(following, step)
    builder.branch(head)

    builder.position_at_end(behind)
    builder.ret(builder.or_(builder.shl(done, ir.Constant(_WORD, 32)), used))
    return function


def _latin1_run(_context: Any, start: Any, words: Any, out: Any, table: Any) -> Any:
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        # Other families of processors have no such instruction that could be compiled.
        return builder.call(_function(builder.module), arguments) if _IS_X86 else ir.Constant(_WORD, 0)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


_make: Any = intrinsic
latin1_run: Callable[[int, int, int, int], int] = _make(_latin1_run)
"""Converts up to *words* times eight characters at *start*, up to a word that holds one from 0x80 to 0x9F.

*table* is the address of :func:`shuffles`. The result holds the number of words in its upper half, that of the UTF-8
bytes at *out* in its lower half. Behind these, up to ``STORED_BYTES`` less eight hold anything.
"""
