"""Values of one key column against one bound: -1, 0 and 1, as the server orders them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.backfill.keys.literals import literal, text_literal
from historian.errors import SourceError
from historian.plans.key_order import Signs, arrow_signs, compared_here
from historian.plans.key_ranges import KeyValue
from historian.schema.snapshots import ColumnType

__all__ = ["compared"]

_Ask = Callable[[str], Sequence[Sequence[Any]]]

_CODE_POINTS = {
    **dict.fromkeys(("utf8mb4_bin", "utf8mb3_bin", "ascii_bin"), True),
    **dict.fromkeys(("utf8mb4_0900_bin", "utf8mb4_nopad_bin", "utf8mb3_nopad_bin", "ascii_nopad_bin"), False),
}
"""Collations by the numbers of characters, and whether blanks at the end do not count. The bytes of these sets are UTF-8."""

_STATEMENT_BYTES = 200_000
_STATEMENT_KEYS = 500


def compared(values: pa.Array, kind: ColumnType, bound: KeyValue, ask: _Ask) -> Signs:
    """For each of *values*, none of them NULL, on which side of *bound* it lies.

    Args:
        values: of a column of type *kind*, in any form.
    """
    here = compared_here(values, kind, bound)
    if here is not None:
        return here
    distinct = values.dictionary_encode()
    texts = distinct.dictionary.to_pylist()
    if kind.collation in _CODE_POINTS:
        signs = _code_points(distinct.dictionary, str(bound), pads=_CODE_POINTS[kind.collation])
    else:
        make = literal if kind.charset is None else text_literal
        signs = _asked([make(kind, text) for text in texts], kind, bound, ask)
    result: Signs = signs[distinct.indices.to_numpy()]
    return result


def _asked(literals: Sequence[str], kind: ColumnType, bound: KeyValue, ask: _Ask) -> Signs:
    """As the server compares literals; one text of digits is its answer, whatever the number of keys."""
    collate = "" if kind.collation is None else f" COLLATE {kind.collation}"
    other = f"SELECT {literal(kind, bound)}{collate} AS b"
    digits = ""
    for some in _statements(literals):
        terms = (f"STRCMP({one}, k.b) + 1" if collate else f"({one} > k.b) + ({one} >= k.b)" for one in some)
        ((answer,),) = ask(f"SELECT CONCAT({', '.join(terms)}) FROM ({other}) AS k")  # noqa: S608 - literals of our own
        found = answer.decode() if isinstance(answer, bytes) else str(answer)
        if len(found) != len(some):
            raise SourceError("the server cannot compare keys", where=str(kind), expected=len(some), found=answer)
        digits += found
    signs: Signs = np.frombuffer(digits.encode(), dtype=np.int8) - np.int8(ord("1"))
    return signs


def _statements(literals: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many of them as go into one statement: servers take longer for each of many."""
    first = size = 0
    for at, one in enumerate(literals):
        if at > first and (size + len(one) > _STATEMENT_BYTES or at - first == _STATEMENT_KEYS):
            yield literals[first:at]
            first, size = at, 0
        size += len(one)
    if first < len(literals):
        yield literals[first:]


def _code_points(values: pa.Array, bound: str, *, pads: bool) -> Signs:
    """In the order of characters' numbers, which is that of their UTF-8."""
    text = bytes.fromhex(bound).decode()
    if pads:
        width = max(len(text), pc.max(pc.utf8_length(values)).as_py() or 0)
        values, text = pc.utf8_rpad(values, width, padding=" "), text.ljust(width)
    return arrow_signs(values, pa.scalar(text, values.type))
