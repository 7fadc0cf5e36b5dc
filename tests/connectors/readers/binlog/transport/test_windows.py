"""Windows that nobody may write to, as those of a kept scan are: whatever takes windows reads them as it reads fresh ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.readers.base import Bound
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.transport import unpacking
from connectors.readers.binlog.transport.stream import WindowStream
from connectors.readers.binlog.transport.window import Window
from connectors.readers.binlog.xa import prepared
from connectors.tracking.prepared_transactions import attached
from connectors.tracking.ranges import cut_ranges
from databases.servers import Server
from historian.plans.plans import PlannedTable, RolledBack
from logs.binlog_lab import run, scanned
from logs.decoder_lab import capture, log_end, planned

XA = (
    "XA START 'x'",
    "INSERT INTO locked.t VALUES (20, 'prepared')",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA COMMIT 'x'",
)
# MariaDB logs what is rolled back where a statement that cannot be rolled back stands in the transaction.
ROLLED_BACK = (
    "BEGIN",
    "INSERT INTO locked.t VALUES (10, 'kept')",
    "SAVEPOINT s",
    "CREATE TEMPORARY TABLE locked.tt (x INT)",  # MySQL takes it outside of transactions only
    "INSERT INTO locked.t VALUES (11, 'undone')",
    "ROLLBACK TO s",
    "INSERT INTO locked.t VALUES (12, 'kept')",
    "COMMIT",
)
PLAIN = (
    "BEGIN",
    "INSERT INTO locked.t VALUES (1, REPEAT('a', 400)), (2, NULL)",
    "UPDATE locked.t SET v = 'b' WHERE id = 2",
    "DELETE FROM locked.t WHERE id = 1",
    "COMMIT",
)


def _locked(window: Window) -> Window:
    parts = {name: getattr(window, name).view() for name in ("buffer", "starts", "ends", "offsets")}
    for part in parts.values():
        part.flags.writeable = False
    return replace(window, **parts)


class _LockedStream:
    """A stream whose windows nobody may write to."""

    def __init__(self, stream: WindowStream) -> None:
        self._stream = stream

    def windows(self, *, end: int | None = None) -> Iterator[Window]:
        return map(_locked, self._stream.windows(end=end))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LockedReader(BinlogFilesReader):
    def _stream(self, file: str, offset: int) -> Any:
        return _LockedStream(super()._stream(file, offset))


def _found(reader: BinlogFilesReader, tables: Sequence[PlannedTable]) -> list[Any]:
    with closing(reader):
        start = reader.start()
        items = scanned(reader, start)
        ranges = cut_ranges(start, [item for item in items if isinstance(item, Bound)], 1 << 30)
        ranges = attached(ranges, [item for item in items if isinstance(item, RolledBack)], ())
        rows = [(chunk.table_id, chunk.rows) for part in ranges for chunk in reader.read(part, tables)]
        return [items, ranges, rows]


@pytest.mark.parametrize("name", ["mysql9", "mysql57", "mariadb105", "mariadb118"])
def test_windows_that_nobody_may_write_to_give_the_same(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: Server = request.getfixturevalue(name)
    is_mariadb = server.flavor == "mariadb"
    run(server, "DROP DATABASE IF EXISTS locked", "CREATE DATABASE locked", "FLUSH BINARY LOGS")
    file, _ = log_end(server)
    rolled_back = [each for each in ROLLED_BACK if is_mariadb or "TEMPORARY" not in each]
    run(server, "CREATE TABLE locked.t (id INT PRIMARY KEY, v TEXT)", *PLAIN, *rolled_back)
    run(server, *XA)
    packing = "GLOBAL log_bin_compress" if is_mariadb else "SESSION binlog_transaction_compression"
    if name != "mysql57":
        run(
            server,
            f"SET {packing} = ON",
            "INSERT INTO locked.t VALUES (30, REPEAT('packed', 99))",
            f"SET {packing} = OFF",
        )
    tables = planned(capture(server, "locked", "t"))
    run(server, "DROP DATABASE locked", "FLUSH BINARY LOGS")
    (path,) = (each for each in server.binlog_files() if each.name == file)

    fresh = _found(BinlogFilesReader([path]), tables)
    for module in (unpacking, prepared):
        monkeypatch.setattr(module, "unpacked", _locked_behind(module.unpacked))
    locked = _found(_LockedReader([path]), tables)

    assert fresh == locked
    assert sum(rows.num_rows for _, rows in fresh[2]) == (8 if name == "mysql57" else 9)
    assert any(part.rolled_back for part in fresh[1]) == is_mariadb


def _locked_behind(unpacked: Callable[..., Iterator[Window]]) -> Callable[..., Iterator[Window]]:
    return lambda *given, **words: map(_locked, unpacked(*given, **words))
