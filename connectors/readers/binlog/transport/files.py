"""Binlog files on disk: their order, their first events, and windows of what stands in them.

The file format is a magic of four bytes, then events that follow each other. The first one describes all others
(https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication_binlog_event.html).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TypeVar

from connectors.readers.binlog.events.error_location import error_location
from connectors.readers.binlog.events.layout import (
    FLAG_IN_USE,
    HEADER_BYTES,
    MAGIC,
    EventType,
    FormatDescription,
    event_name,
    format_description,
    gtids_before,
    header,
)
from connectors.readers.binlog.kernels.log.finding import AT, BAD_POSITION, BAD_SIZE, find_in_file
from connectors.readers.binlog.transport.read_buffer import CHECKSUM_BYTES, WINDOW_BYTES, ReadBuffer, check_sum
from connectors.readers.binlog.transport.window import Window
from historian.errors import LogCorrupt, LogPurged, SourceError
from historian.positions import FilePosition, GtidSet, MariadbGtids

__all__ = ["FileHead", "FileStream", "LogFile", "list_files", "read_head"]

FIRST_EVENT = len(MAGIC)
_ENCRYPTED_MAGIC = b"\xfdbin"
_MAX_HEAD_EVENT_BYTES = 64 << 20
_FLAGS_AT = 17
_NUMBERED = re.compile(r"\.[0-9]+$")
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One file of a log: its name in positions, where it lies, and its number."""

    name: str
    path: Path
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHead:
    """What a file's first events say.

    Attributes:
        gtids: of all transactions before the file; None where it does not say (a MariaDB file without GTID_LIST).
        first_event: offset behind FORMAT_DESCRIPTION.
    """

    format: FormatDescription
    gtids: GtidSet | MariadbGtids | None
    first_event: int


def list_files(paths: Iterable[Path]) -> tuple[LogFile, ...]:
    """The binlog files among *paths*, and in those that are directories, in the log's order.

    In a directory only files with the magic bytes and a number at the end of their name count, so an index file or data
    beside them do no harm. A damaged file that is called like those counts too, and so does a file named by itself.
    Where one that is named by itself has no number, all have to be named so: they count in the order given, and each has the
    number of its place: ``copy.000001``, called after the first of them.

    Raises:
        SourceError: none is there, two have the same number, or a path cannot be read.
        LogCorrupt: a path that is no binlog.
    """
    found: dict[int, LogFile] = {}
    wanted = [Path(path) for path in paths]
    for path in wanted:
        if not path.exists():
            raise SourceError("a binlog file cannot be read", where=str(path), found="no such file or directory")
    if not all(path.is_dir() or _NUMBERED.search(path.name) for path in wanted):
        return _in_given_order(wanted)
    for path in wanted:
        for candidate in _files_in(path) if path.is_dir() else [path]:
            file = LogFile(name=candidate.name, path=candidate, number=FilePosition(candidate.name, 0).number)
            other = found.setdefault(file.number, file)
            if other.path.resolve() != candidate.resolve():
                raise SourceError(
                    "two binlog files have the same number",
                    where=str(candidate),
                    expected="one log",
                    found=str(other.path),
                )
    if not found:
        raise SourceError(
            "no binlog file is there",
            where=", ".join(map(str, wanted)) or "no path",
            expected="files like binlog.000001 that begin with the bytes fe 62 69 6e",
        )
    return tuple(found[number] for number in sorted(found))


def _in_given_order(paths: Sequence[Path]) -> tuple[LogFile, ...]:
    directory = next((path for path in paths if path.is_dir()), None)
    if directory is not None:
        raise SourceError(
            "a directory stands beside a binlog file without a number, which has no place in its order",
            where=str(directory),
            expected="files alone, in the log's order",
        )
    files = tuple(
        LogFile(name=f"{paths[0].name}.{number:06d}", path=path, number=number) for number, path in enumerate(paths, 1)
    )
    begun_s = [read_head(file).format.made_s for file in files] if len(files) > 1 else []
    for number in range(1, len(begun_s)):
        if begun_s[number] < begun_s[number - 1]:
            raise SourceError(
                "binlog files without numbers are not in the log's order",
                where=str(paths[number]),
                expected=f"a file begun at {begun_s[number - 1]} (seconds since 1970) or later, when {paths[number - 1]} was",
                found=begun_s[number],
                next_step="name the oldest file first",
            )
    return files


def _files_in(directory: Path) -> list[Path]:
    """The log's files in *directory*. An empty one is about to be written: its server has just begun it."""
    numbered = [path for path in sorted(directory.iterdir()) if path.suffix[1:].isdigit() and path.is_file()]
    names = {path.stem for path in numbered if _looks_like_log(path)}
    return [path for path in numbered if path.stem in names and path.stat().st_size]


def _looks_like_log(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) in (MAGIC, _ENCRYPTED_MAGIC)


def read_head(file: LogFile) -> FileHead:
    """Reads the events at the front of *file* that describe it.

    Raises:
        LogCorrupt: no binlog, or one that ends before its first event does.
        SourceError: encrypted, or from a server that is too old.
    """
    try:
        stream = file.path.open("rb")
    except OSError as error:
        raise SourceError("a binlog file cannot be read", where=str(file.path), found=error.strerror) from error
    with stream:
        magic = stream.read(len(MAGIC))
        if magic == _ENCRYPTED_MAGIC:
            raise _encrypted(str(file.path))
        if magic != MAGIC:
            raise LogCorrupt(
                "not a binlog file",
                where=f"{file.path}, offset 0",
                expected=MAGIC.hex(" "),
                found=magic.hex(" ") or "nothing",
            )
        at = FIRST_EVENT
        event = _next_event(stream.read, file, at)
        if event is None or event[4] != EventType.FORMAT_DESCRIPTION:
            raise LogCorrupt(
                "a binlog file without a description of its format",
                where=f"{file.path}, offset {at}",
                expected="a whole FORMAT_DESCRIPTION event",
                found="the end of the file" if event is None else f"a {event_name(event[4])} event",
            )
        described = _read(format_description, event, file, at)
        # This event has a checksum whether the others have one or not: it is what says so. The server sums it as it is
        # once the file is closed, when it is no longer in use.
        closed = event[:_FLAGS_AT] + bytes([event[_FLAGS_AT] & ~FLAG_IN_USE]) + event[_FLAGS_AT + 1 :]
        check_sum(closed, f"{file.name}:{at}")
        at = first = at + len(event)
        gtids: GtidSet | MariadbGtids | None = None
        for _ in range(3):
            event = _next_event(stream.read, file, at)
            if event is None:
                break
            if described.checksum:
                check_sum(event, f"{file.name}:{at}")
            body = event[:-CHECKSUM_BYTES] if described.checksum else event
            if event[4] == EventType.START_ENCRYPTION:
                raise _encrypted(str(file.path))
            if event[4] in (EventType.PREVIOUS_GTIDS, EventType.GTID_LIST):
                gtids = _read(partial(gtids_before, flavor=described.flavor), body, file, at)
                break
            at += len(event)
        return FileHead(format=described, gtids=gtids, first_event=first)


def _read(parse: Callable[[bytes], _Parsed], event: bytes, file: LogFile, at: int) -> _Parsed:
    with error_location(lambda: (event_name(event[4]), f"{file.name}:{at}")):
        return parse(event)


def _encrypted(where: str) -> SourceError:
    return SourceError(
        "the binlog file is encrypted",
        where=where,
        expected="a plain binlog",
        next_step="read it from the live server, or SET GLOBAL binlog_encryption = OFF (MariaDB: encrypt_binlog)",
    )


def _next_event(read: object, file: LogFile, at: int) -> bytes | None:
    """The whole event that comes next; None where the file ends before it does."""
    assert callable(read)  # noqa: S101 - narrows the type
    first: bytes = read(HEADER_BYTES)
    if len(first) < HEADER_BYTES:
        return None
    size = header(first).size_bytes
    if not HEADER_BYTES <= size <= _MAX_HEAD_EVENT_BYTES:
        raise _bad_size(file.name, at, size)
    event: bytes = first + read(size - HEADER_BYTES)
    return event if len(event) == size else None


def _bad_size(file: str, offset: int, size: int) -> LogCorrupt:
    return LogCorrupt(
        "an event has an impossible size", where=f"{file}:{offset}", expected=f"at least {HEADER_BYTES}", found=size
    )


class FileStream:
    """Windows of *files* from offset *start* of the first one to the end of the last.

    FORMAT_DESCRIPTION is in none of them.
    """

    def __init__(self, files: Sequence[LogFile], start: int) -> None:
        self.formats: dict[str, FormatDescription] = {}
        self.offset = start
        self._files = files

    def close(self) -> None:
        """Does nothing: no file stays open behind :meth:`windows`."""

    def windows(self, *, end: int | None = None) -> Iterator[Window]:
        """The windows; with *end* up to that offset of the first file.

        Where the server is still writing the last file (or died over it), an event cut off at its end is left for
        later.

        Raises:
            LogCorrupt: cut off inside an event, a wrong checksum, or bytes that are no events.
            LogPurged: the start lies behind the file's end.
        """
        before: LogFile | None = None
        for file in self._files if end is None else self._files[:1]:
            if before is not None:
                self.offset = FIRST_EVENT
                if file.number != before.number + 1:
                    raise LogPurged(
                        "a binlog file is missing",
                        where=str(before.path.parent),
                        expected=f"number {before.number + 1} after {before.name}",
                        found=file.name,
                        next_step="copy all files of the log",
                    )
            yield from self._windows_of(file, end)
            before = file

    def _windows_of(self, file: LogFile, end: int | None) -> Iterator[Window]:
        head = read_head(file)
        self.formats[file.name] = head.format
        begin = max(self.offset, head.first_event)
        read_buffer = ReadBuffer(file.name, begin)
        read_buffer.checksum_bytes = CHECKSUM_BYTES if head.format.checksum else 0
        read_buffer.server_version = head.format.version
        with file.path.open("rb", buffering=0) as stream:
            size = stream.seek(0, 2)
            if size < self.offset:
                raise LogPurged(
                    "the binlog file ends before the position",
                    where=str(file.path),
                    expected=f"{self.offset} bytes or more",
                    found=size,
                )
            stream.seek(begin)
            more = True
            while more and (end is None or read_buffer.offset < end):
                # No memory is made for an event that the file cannot hold, whose size is damaged.
                if read_buffer.missing_bytes <= WINDOW_BYTES or read_buffer.missing_bytes <= _rest_bytes(stream):
                    count = stream.readinto(read_buffer.room()) or 0
                else:
                    count = 0
                read_buffer.fill += count
                more = bool(count)
                while True:
                    _find(read_buffer)
                    enough = end is not None and read_buffer.offset >= end
                    if more and not enough and not read_buffer.is_full():
                        break
                    window = read_buffer.window(end=end)
                    self.offset = read_buffer.given
                    if window is None:
                        break
                    yield window
        in_use = head.format.in_use and file is self._files[-1]
        if read_buffer.missing_bytes and (end is None or read_buffer.offset < end) and not in_use:
            raise LogCorrupt(
                "the binlog file ends inside an event",
                where=f"{file.name}:{read_buffer.offset}",
                expected=f"{read_buffer.missing_bytes} bytes more",
                found=f"the end of the file at {size}",
                next_step="copy the whole file from the server",
            )


def _rest_bytes(stream: FileIO) -> int:
    """How many bytes the file has behind where it is read."""
    at = stream.tell()
    end = stream.seek(0, 2)
    stream.seek(at)
    return end - at


def _find(read_buffer: ReadBuffer) -> None:
    code = find_in_file(*read_buffer.arguments())
    if code not in (BAD_SIZE, BAD_POSITION):
        return
    at = int(read_buffer.state[AT])
    found = header(read_buffer.buffer[at : at + HEADER_BYTES].tobytes())
    if code == BAD_SIZE:
        raise _bad_size(read_buffer.file, read_buffer.offset, found.size_bytes)
    raise LogCorrupt(
        f"a {event_name(found.type)} event does not say its own place",
        where=f"{read_buffer.file}:{read_buffer.offset}",
        expected=f"{(read_buffer.offset + found.size_bytes) & 0xFFFFFFFF} as the next event's offset",
        found=found.next_offset,
        next_step="start at the first byte of an event; a relay log is no binlog",
    )
