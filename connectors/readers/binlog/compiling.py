"""The reader's kernels that Python calls, and which of them have no compiled code yet."""

from __future__ import annotations

from typing import Any

from connectors.readers.binlog.kernels.log import finding, gtids, scanning, unpacking, xa
from connectors.readers.binlog.kernels.machine import checksums, folding
from connectors.readers.binlog.kernels.results import encoding
from connectors.readers.binlog.kernels.rows import walk
from connectors.readers.binlog.kernels.text import double_byte, single_byte
from connectors.readers.binlog.kernels.text import json as text_json
from connectors.readers.machine.compiling import is_compiled

__all__ = ["KERNELS", "about_s", "missing_kernels"]

KERNELS: tuple[Any, ...] = (
    walk.walk,
    encoding.encode,
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
    text_json.json_text,
    single_byte.high_bytes,
    single_byte.single_byte_text,
    double_byte.double_byte_text,
)
"""They take numbers and addresses only."""


_SECONDS = {walk.walk: 15.0, text_json.json_text: 5.0, scanning.scan: 5.0, encoding.encode: 3.5, unpacking.measure: 1.0}


def missing_kernels() -> tuple[Any, ...]:
    """Those of :data:`KERNELS` that have no compiled code on this machine."""
    return tuple(kernel for kernel in KERNELS if not is_compiled(kernel))


def about_s(kernel: Any) -> float:
    """In about how many seconds a core of 2024 compiles it."""
    return _SECONDS.get(kernel, 0.2)
