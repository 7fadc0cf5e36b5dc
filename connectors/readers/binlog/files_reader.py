"""The reader of binlog files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.events.layout import FormatDescription, event_name
from connectors.readers.binlog.log_reader import FIRST_EVENT, BinlogReader, Windows, foreign_range
from connectors.readers.binlog.transport.stream import WindowStream
from historian.errors import LogCorrupt, LogPurged
from historian.plans.plans import LogRange, PlannedTable
from historian.positions import Gtids, LogPosition, PreparedXa, parse_gtids

if TYPE_CHECKING:
    from connectors.readers.binlog.scan.scanner import Scanner
    from connectors.readers.binlog.transport.files import FileHead, LogFile

__all__ = ["BinlogFilesReader"]


class BinlogFilesReader(BinlogReader):
    """Reads binlog files: of a directory, or named one by one. They are looked up anew at each call.

    Args:
        paths: directories and files.
        lower_case_table_names: of the server that wrote them, which the files do not say.
    """

    def __init__(self, paths: Iterable[str | Path], *, lower_case_table_names: int = 0) -> None:
        super().__init__()
        self.paths = tuple(Path(path) for path in paths)
        self.lower_case_table_names = lower_case_table_names
        self._heads: dict[str, FileHead] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), lower_case_table_names=self.lower_case_table_names), (self.paths,)

    @property
    def flavor(self) -> str:  # type: ignore[override]
        """Of the server that wrote the newest file."""
        return self._head(self._log_files()[-1]).format.flavor

    def _log_files(self) -> tuple[LogFile, ...]:
        from connectors.readers.binlog.transport.files import list_files

        return list_files(self.paths)

    def _head(self, file: LogFile) -> FileHead:
        from connectors.readers.binlog.transport.files import read_head

        if file.name not in self._heads:
            self._heads[file.name] = read_head(file)
        return self._heads[file.name]

    def _named(self, name: str) -> LogFile:
        files = self._log_files()
        for file in files:
            if file.name == name:
                return file
        raise LogPurged(
            "a binlog file is missing",
            where=", ".join(map(str, self.paths)),
            expected=name,
            found=f"{files[0].name} to {files[-1].name}",
            next_step="copy all files of the log",
        )

    def _format(self, file: str) -> FormatDescription:
        return self._head(self._named(file)).format

    def _server(self) -> str:
        return ""

    def _files(self) -> Sequence[str]:
        return [file.name for file in self._log_files()]

    def _sizes(self, file: str) -> Sequence[int]:
        sizes = {each.name: each.path.stat().st_size for each in self._log_files()}
        return list(sizes.values())[list(sizes).index(file) :] if file in sizes else []

    def _gtids_before(self, file: str) -> Gtids:
        head, flavor = self._head(self._named(file)), self.flavor
        if head.format.flavor != flavor:
            from connectors.readers.binlog.scan.unsupported_events import other_kind

            raise other_kind(file, flavor, head.format)
        return parse_gtids("", flavor) if head.gtids is None else head.gtids

    def _stream(self, file: str, offset: int) -> WindowStream:
        from connectors.readers.binlog.transport.files import FileStream

        files = self._log_files()
        number = self._named(file).number
        return FileStream([each for each in files if each.number >= number], offset)

    def _executed(self, wanted: Gtids) -> Gtids:  # noqa: ARG002 - files do not lag
        return self.end().gtid_set

    def _lower_case_table_names(self) -> int:
        return self.lower_case_table_names

    def _check_end(self, scanner: Scanner) -> None:
        from connectors.readers.binlog.transport.files import read_head

        if not scanner.in_transaction:
            return
        place = scanner.position
        if not read_head(self._named(place.file)).format.in_use:
            raise LogCorrupt(
                "the last binlog file ends inside a transaction",
                where=f"{place.file}:{place.offset}",
                expected="the transaction's end",
                found=f"the end of the file at {scanner.fed_to}, behind a {event_name(scanner.last_event)} event",
                next_step="copy the whole file from the server",
            )

    def _elsewhere(
        self,
        planned: LogRange,
        tables: Sequence[PlannedTable],  # noqa: ARG002 - files are of no server
    ) -> tuple[Windows, Sequence[PlannedTable]]:
        raise foreign_range(f"{planned.file}:{planned.start}", planned.server, "of files")

    def _stream_behind(self, xa: PreparedXa) -> WindowStream:
        raise foreign_range(str(xa), xa.server, "of files")

    def end(self) -> LogPosition:
        """The end of the last whole transaction in the newest file."""
        from connectors.readers.binlog.scan.scanner import Scanner

        last = self._files()[-1]
        scanner = Scanner(self._at(last, FIRST_EVENT, self._gtids_before(last)), count_only=True)
        scanner.pass_over(self._stream(last, FIRST_EVENT))
        return scanner.position

    def close(self) -> None:
        """Does nothing; no file stays open between calls."""
