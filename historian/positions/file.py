"""File and offset: where a byte of one server's binlog stands."""

from __future__ import annotations

from dataclasses import dataclass

from historian.errors import PositionError

__all__ = ["FilePosition"]


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A binlog file's name and a byte offset in it; prints as ``binlog.000003:4711``.

    Comparable only on one server; file numbers compare as numbers, since they pass 999999.
    """

    file: str
    offset: int

    @classmethod
    def parse(cls, text: str) -> FilePosition:
        """Parses ``file:offset``.

        >>> FilePosition.parse("binlog.000003:4711")
        FilePosition(file='binlog.000003', offset=4711)
        """
        file, colon, offset = text.strip().rpartition(":")
        if not colon or not file or not (offset.isascii() and offset.isdigit()):
            raise PositionError("not a file position", where=text, expected="FILE:OFFSET, like binlog.000003:4711")
        return cls(file, int(offset))

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    @property
    def base(self) -> str:
        """The file's name without its number: the server's ``log_bin_basename``."""
        return self.file.rpartition(".")[0]

    @property
    def number(self) -> int:
        """The number at the end of the file's name."""
        digits = self.file.rpartition(".")[2]
        if not (digits.isascii() and digits.isdigit()):
            raise PositionError(
                "a binlog file's name does not end in a number", where=self.file, expected="a name like binlog.000001"
            )
        return int(digits)

    def covers(self, other: FilePosition) -> bool:
        """Whether everything up to *other* lies at or before this position; both are of one server.

        Raises:
            PositionError: the files are of two logs, told by their base names.

        >>> FilePosition("b.1000000", 4).covers(FilePosition("b.999999", 800))
        True
        """
        mine, theirs = (self.number, self.offset), (other.number, other.offset)
        if self.base != other.base:
            raise PositionError(
                "positions in files of two different logs cannot be compared",
                where=str(self),
                expected=f"a file {other.base}.*",
            )
        return mine >= theirs
