"""Windows of a log from one place on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from connectors.readers.binlog.events.layout import FormatDescription
from connectors.readers.binlog.transport.window import Window
from historian.positions import Gtids, LogPosition

__all__ = ["Log", "WindowStream"]


class WindowStream(Protocol):
    """Windows of a log from one place on; closed by whoever asked for it."""

    @property
    def offset(self) -> int:
        """Behind the last event that was found, in the file that it stands in."""

    @property
    def formats(self) -> Mapping[str, FormatDescription]:
        """What each file's first event says, as soon as its first window is there."""

    def windows(self, *, end: int | None = None) -> Iterator[Window]:
        """The windows; with *end* up to that offset of the first file."""

    def close(self) -> None:
        """Gives files and connections back."""


class Log(Protocol):
    """What looks transactions up in a log knows of its reader."""

    def start(self) -> LogPosition:
        """The earliest position that can be read from."""

    def _server(self) -> str:
        """Identity of the server that offsets are of; "" for files."""

    def _files(self) -> Sequence[str]:
        """Names of the log's files, oldest first."""

    def _gtids_before(self, file: str) -> Gtids:
        """GTIDs of all transactions before *file*."""

    def _at(self, file: str, offset: int, gtids: Gtids | str) -> LogPosition:
        """A position in the log."""

    def _stream(self, file: str, offset: int) -> WindowStream:
        """The log from that place on."""
