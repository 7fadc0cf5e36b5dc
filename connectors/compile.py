"""Compiles the binlog reader's kernels before they are needed: ``python -m connectors.compile``.

For a cluster whose executors start without compiled code: run it once with NUMBA_CACHE_DIR set to an empty directory
(and NUMBA_CPU_NAME=generic where processors differ), ship that directory, and set both variables for the executors:

    NUMBA_CACHE_DIR=kernels python -m connectors.compile && (cd kernels && zip -qr ../kernels.zip .)
    spark-submit --archives kernels.zip#kernels --conf spark.executorEnv.NUMBA_CACHE_DIR=kernels ...
"""

from __future__ import annotations

import logging
import time
from typing import Any

from numba import types

from connectors.readers.binlog.kernels import (
    checksums,
    double_byte,
    finding,
    folding,
    gtids,
    json,
    scanning,
    single_byte,
    unpacking,
    walk,
    xa,
)

__all__ = ["KERNELS", "compile_kernels"]

KERNELS: tuple[Any, ...] = (
    walk.walk,
    scanning.scan,
    finding.find_in_packets,
    finding.find_in_file,
    checksums.first_wrong_folded if folding.CAN_FOLD else checksums.first_wrong_checksum,
    unpacking.first_packed,
    unpacking.measure,
    unpacking.collect,
    unpacking.splice,
    unpacking.whole_events,
    xa.next_end,
    xa.next_xa,
    gtids.mysql_gtid,
    json.json_text,
    single_byte.single_byte_text,
    double_byte.double_byte_text,
)
"""Those that Python calls; they take numbers and addresses only."""


def compile_kernels() -> None:
    """Compiles or loads each kernel."""
    for kernel in KERNELS:
        kernel.compile((types.int64,) * kernel.py_func.__code__.co_argcount)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    begin_s = time.monotonic()
    compile_kernels()
    logging.getLogger(__name__).warning("%d kernels are ready after %.1f s", len(KERNELS), time.monotonic() - begin_s)
