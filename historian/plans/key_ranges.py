"""Ranges of a table's keys in the server's own order: what a chunk of a backfill holds."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOT_BY_RANGES", "Key", "KeyRange", "KeyValue"]

NOT_BY_RANGES = "rows of the table are not told apart by ranges of its key"
"""Begins the reason of a stop behind which a table is compared as a whole."""

KeyValue = int | str
"""A key column's value, exact and fit for JSON, by the column's type:

- integers, BIT, YEAR: the number; ENUM: the index of its label, 0 for the error value;
- CHAR, VARCHAR, BINARY, VARBINARY: the stored bytes as hexadecimal digits, of text in the column's character set. Two texts that a
  server keeps apart may read as the same characters (``sjis``), bytes never do;
- DECIMAL, DATE, TIME, DATETIME, TIMESTAMP (in UTC), UUID, INET4, INET6: the server's own text.
"""

Key = tuple[KeyValue, ...]
"""Values of all columns of a key, in key order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRange:
    """Keys behind ``after`` up to and with ``upto``; None: unbounded on that side.

    What lies between two keys is for the server to say: it compares by collations. Parts of plans, so the stored form never changes.

    >>> KeyRange(after=(1, "61"))
    KeyRange(after=(1, '61'), upto=None)
    """

    after: Key | None = None
    upto: Key | None = None
