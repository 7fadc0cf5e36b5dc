"""Loops over the values of a column: hashes of 64 bits, eight bytes a step, mixed as MurmurHash3's finalizer does.

https://github.com/aappleby/smhasher/blob/master/src/MurmurHash3.cpp is the source of the mixing constants, which are in the public domain.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from historian.jit import compiled, content_stamp

__all__ = ["add_to_buckets", "mix_bytes", "mix_words"]

_kernel = partial(compiled, stamp=content_stamp(Path(__file__).parent), nogil=True)
_inlined = partial(_kernel, inlined=True)
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_NULL = np.uint64(0x9E3779B97F4A7C15)
_33, _29, _8 = np.uint64(33), np.uint64(29), np.uint64(8)


@_inlined
def _mixed(before, word):
    """*word* taken into what *before* is the hash of."""
    found = (before ^ word) * _FIRST
    found ^= found >> _33
    found *= _SECOND
    return found ^ (found >> _29)


@_kernel
def mix_words(hashes, words, valid):
    """Takes one word of each row into *hashes*; *valid*: which are there, empty where all are."""
    for i in range(len(hashes)):
        if len(valid) and not valid[i]:
            hashes[i] = _mixed(hashes[i] + _NULL, _NULL)
        else:
            hashes[i] = _mixed(hashes[i], words[i])


@_kernel
def mix_bytes(hashes, bounds, body, valid):
    """Takes ``body[bounds[i]:bounds[i + 1]]`` into the hash of row i, its length first."""
    for i in range(len(hashes)):
        if len(valid) and not valid[i]:
            hashes[i] = _mixed(hashes[i] + _NULL, _NULL)
            continue
        at, end = bounds[i], bounds[i + 1]
        found = _mixed(hashes[i], np.uint64(end - at))
        while end - at >= 8:
            word = np.uint64(0)
            for k in range(8):
                word |= np.uint64(body[at + k]) << np.uint64(8 * k)
            found = _mixed(found, word)
            at += 8
        if at < end:
            word = np.uint64(0)
            while end > at:
                end -= 1
                word = (word << _8) | np.uint64(body[end])
            found = _mixed(found, word)
        hashes[i] = found


@_kernel
def add_to_buckets(sums, counts, sizes, keys, hashes, lengths):
    """Adds each hash to the sum that its key's hash says, and counts it and its length there; ``len(sums)`` is a power of two."""
    mask = np.uint64(len(sums) - 1)
    for i in range(len(hashes)):
        bucket = keys[i] & mask
        sums[bucket] += hashes[i]
        counts[bucket] += 1
        sizes[bucket] += lengths[i]
