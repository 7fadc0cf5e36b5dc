"""Text columns by character set: what their bytes become."""

from __future__ import annotations

from connectors.readers.binlog.rows_arrow import Finish, plain, utf8
from historian.errors import ValueUnrepresentable

__all__ = ["text_finish"]

_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})


def text_finish(charset: str) -> Finish:
    """What makes UTF-8 of a column in that *charset*.

    Raises:
        ValueUnrepresentable: a charset that is not read yet.
    """
    if charset in _UTF8:
        return utf8
    if charset == "binary":
        return plain
    raise ValueUnrepresentable("a character set that is not read yet", where=charset)
