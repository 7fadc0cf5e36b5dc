"""What the builder of a chunk does with the memory that kernels wrote."""

from __future__ import annotations

import random

import numpy as np
import pytest

from connectors.readers.binlog.rows.builder import _any_bits


@pytest.mark.parametrize("rows", [1, 1023, 1024, 1025, 5000])
@pytest.mark.parametrize("stride", [1, 2, 13])
def test_a_null_is_found_in_whichever_row_it_stands(rows: int, stride: int) -> None:
    generator = random.Random(rows + stride)
    bitmaps = np.zeros((rows, stride), np.uint8)
    assert _any_bits(bitmaps).tolist() == [0] * stride
    expected = [0] * stride
    for row in {0, rows - 1, generator.randrange(rows)}:
        byte, bit = generator.randrange(stride), 1 << generator.randrange(8)
        bitmaps[row, byte] |= bit
        expected[byte] |= bit
        assert _any_bits(bitmaps).tolist() == expected
