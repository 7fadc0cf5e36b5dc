"""Compiles the kernels of the readers, of encoded rows and of comparisons before they are needed: ``python -m connectors.compile``.

For a cluster whose executors start without compiled code. Run it once with NUMBA_CACHE_DIR set to an empty directory
(and NUMBA_CPU_NAME=generic where processors differ), ship that directory, and set both variables for the executors:

    NUMBA_CACHE_DIR=kernels python -m connectors.compile && (cd kernels && zip -qr ../kernels.zip .)
    spark-submit --archives kernels.zip#kernels --conf spark.executorEnv.NUMBA_CACHE_DIR=kernels ...
"""

from __future__ import annotations

import logging
import time
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from connectors.readers.binlog import compiling as binlog
from connectors.readers.kafka import compiling as kafka
from connectors.readers.machine.compiling import compile_kernel
from historian.changelog.fingerprints import Fingerprints
from historian.encoding import decode_rows, encode_risingwave, encode_rows, with_id
from historian.jit import is_kept_in

__all__ = ["KERNELS", "compile_kernels", "compiled_part"]

KERNELS = (*binlog.KERNELS, *kafka.KERNELS)
"""Of all readers."""

_OTHERS_S = 10.0
"""About as long take those of encoded rows and comparisons."""
_MOMENT = datetime(2024, 1, 1, tzinfo=timezone.utc)
_VALUES: tuple[tuple[pa.DataType, object], ...] = (
    (pa.int64(), 1),
    (pa.float64(), 1.5),
    (pa.decimal128(20, 2), Decimal("1.25")),
    (pa.bool_(), True),
    (pa.string(), "text"),
    (pa.binary(), b"bytes"),
    (pa.date32(), date(2024, 1, 1)),
    (pa.timestamp("us"), _MOMENT.replace(tzinfo=None)),
    (pa.timestamp("us", tz="UTC"), _MOMENT),
    (pa.struct([with_id(90, pa.field("a", pa.int64())), with_id(91, pa.field("b", pa.string()))]), {"a": 1, "b": "c"}),
    (pa.list_(pa.string()), ["a", None]),
    (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
)
"""A value of each kind that encoded rows have."""


def compiled_part(directory: Path) -> float:
    """Which part of :func:`compile_kernels` is done in a process that keeps code in *directory*: 0 to 1, by about how long each kernel takes."""
    times_s = {kernel: binlog.about_s(kernel) for kernel in KERNELS}
    done_s = sum(taken_s for kernel, taken_s in times_s.items() if is_kept_in(kernel, directory))
    return done_s / (sum(times_s.values()) + _OTHERS_S)


def compile_kernels() -> None:
    """Compiles or loads each kernel."""
    for kernel in KERNELS:
        compile_kernel(kernel)
    _encode_rows()
    _compare_rows()


def _compare_rows() -> None:
    """Adds rows to fingerprints, by which repairs and ``historian verify`` find those that differ."""
    columns = {str(kind): pa.array([None, value], kind) for kind, value in _VALUES if not pa.types.is_nested(kind)}
    Fingerprints(0).add(pa.table(columns))


def _encode_rows() -> None:
    """Writes and reads rows in both forms: the kernels of :mod:`historian.encoding` are compiled for arrays that they meet."""
    schema = pa.schema([with_id(number, pa.field(f"f{number}", kind)) for number, (kind, _) in enumerate(_VALUES)])
    columns = [pa.array([None, value], kind) for kind, value in _VALUES]
    rows = pa.RecordBatch.from_arrays(columns, schema=schema)
    first, second = encode_risingwave(rows), encode_rows(rows)
    for cells in (first, second, pa.concat_arrays([first, second])):
        decode_rows(cells, schema)


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    begin_s = time.monotonic()
    compile_kernels()
    logging.getLogger(__name__).warning("all kernels are ready after %.1f s", time.monotonic() - begin_s)
