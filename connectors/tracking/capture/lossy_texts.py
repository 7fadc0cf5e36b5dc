"""Labels and defaults that ``information_schema`` does not print as they are; the server tells them by value.

Servers print a question mark for a character that UTF-8 writes in four bytes, and MariaDB one for bytes that are no UTF-8. MySQL
prints a default of bytes up to its first zero byte. Measured on MySQL 5.7, 8.0, 9.7 and MariaDB 10.5, 10.11, 11.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from historian.charsets.client_text import read_as_one, stored_label
from historian.names import TableName, quoted
from historian.schema.comparison import as_printed
from historian.schema.snapshots import BYTE_TYPES, Catalog, Column, Snapshot

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

__all__ = ["with_exact_texts"]

_CHARSETS = frozenset(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"))
"""Those that have characters of four bytes in UTF-8."""
_NO_ANSWER = frozenset((1054, 1064, 1142, 1143, 1146, 1364, 1969, 3024))
"""Errors of a table that is gone or may not be read, of a server without recursive queries, and of a question that takes too long."""
_LIMIT_S = 2


def with_exact_texts(cursor: Cursor, catalog: Catalog, *, flavor: str) -> Catalog:
    """*catalog* with each label and default as the server holds it.

    A table with a label that the server does not tell goes to ``unknown``. A default that it does not tell becomes an
    expression: nobody reads a value from it.

    Args:
        cursor: of a connection to the server, which answers in tuples.
    """
    questions = _Questions(cursor, flavor)
    tables, unknown = dict(catalog.tables), dict(catalog.unknown)
    for name, snapshot in catalog.tables.items():
        try:
            tables[name] = _exact(questions, snapshot)
        except _Untold as error:
            del tables[name]
            unknown[name] = str(error)
    return replace(catalog, tables=tables, unknown=unknown)


class _Untold(Exception):
    """A label that the server does not tell."""


def _has_lossy_labels(column: Column, flavor: str) -> bool:
    return _is_lossy(column, flavor) and any("?" in label for label in column.type.labels)


def _has_lossy_default(column: Column, flavor: str) -> bool:
    if column.default is None or column.default_is_expression:
        return False
    if column.type.name in BYTE_TYPES:
        return flavor == "mysql" or b"?" in bytes.fromhex(column.default.removeprefix("0x"))
    # MariaDB 11 prints bytes that are no text as a number, which is no label.
    is_number = column.type.charset == "binary" and column.default not in column.type.labels
    return _is_lossy(column, flavor) and ("?" in column.default or is_number)


def _is_lossy(column: Column, flavor: str) -> bool:
    return column.type.charset in _CHARSETS or (flavor == "mariadb" and column.type.charset == "binary")


def _exact(questions: _Questions, snapshot: Snapshot) -> Snapshot:
    columns = []
    for column in snapshot.columns:
        if _has_lossy_labels(column, questions.flavor):
            labels = tuple(questions.labels(snapshot.name, column))
            if same := read_as_one(labels):
                raise _Untold(
                    f"the server does not tell a label of column {column.name} from another one that reads {same}"
                )
            column = replace(column, type=replace(column.type, labels=labels))  # noqa: PLW2901
        if _has_lossy_default(column, questions.flavor):
            default = questions.default(snapshot.name, column)
            column = replace(column, default=default or "", default_is_expression=default is None)  # noqa: PLW2901
        columns.append(column)
    return replace(snapshot, columns=tuple(columns))


class _Questions:
    """What the server says of a column's own texts, in hexadecimal digits."""

    def __init__(self, cursor: Cursor, flavor: str) -> None:
        self._cursor = cursor
        self.flavor = flavor

    def default(self, table: TableName, column: Column) -> str | None:
        """The default, as :attr:`Column.default` has it; None where it is not told."""
        is_bytes = column.type.name in BYTE_TYPES
        name = f"t.{quoted(column.name)}"
        value = f"DEFAULT({name})" if is_bytes else _unlossy(column, f"DEFAULT({name})")
        # Without a row MariaDB tells the defaults of columns alone that can be NULL.
        answers = self._ask(f"SELECT HEX({value}) FROM (SELECT 1) AS one LEFT JOIN {table.quoted} AS t ON FALSE")  # noqa: S608 - names are quoted
        answers = answers or self._ask(f"SELECT HEX({value}) FROM {table.quoted} AS t LIMIT 1")  # noqa: S608 - as above
        if not answers:
            return None
        return f"0x{answers[0]}" if is_bytes else _told(column, answers[0])

    def labels(self, table: TableName, column: Column) -> Iterator[str]:
        """The labels in their order.

        Raises:
            _Untold: one is printed with a question mark, and the server does not tell it.
        """
        made: list[str] | None = None
        for at, printed in enumerate(column.type.labels):
            if "?" not in printed:
                yield printed
                continue
            if made is None:
                made = self._made(table, column)
            found = next((text for text in made[at : at + 1] if _fits(column, text, printed)), None)
            if found is None:
                ordinal = 1 << at if column.type.name == "set" else at + 1
                found = next(
                    (text for text in self._held(table, column, ordinal) if _fits(column, text, printed)), None
                )
            if found is None:
                raise _Untold(
                    f"the server does not tell a label of column {column.name}: it prints {printed!r}, where a question "
                    "mark can stand for any character of four bytes in UTF-8, and no row holds the label"
                )
            yield found

    def _made(self, table: TableName, column: Column) -> list[str]:
        """All labels, made of their ordinals without a row, where the server has recursive queries that keep a type."""
        name = f"t.{quoted(column.name)}"
        ordinal = "1 << i" if column.type.name == "set" else "i + 1"
        first = f"SELECT 0, {name} FROM (SELECT 1) AS one LEFT JOIN {table.quoted} AS t ON FALSE"  # noqa: S608 - names are quoted
        others = f"SELECT i + 1, {ordinal} FROM labels WHERE i < {len(column.type.labels)}"  # noqa: S608 - numbers
        told = self._ask(
            f"WITH RECURSIVE labels (i, label) AS ({first} UNION ALL {others}) "  # noqa: S608 - as above
            f"SELECT HEX({_unlossy(column, 'label')}) FROM labels WHERE i > 0 ORDER BY i"
        )
        return [_told(column, each) for each in told]

    def _held(self, table: TableName, column: Column, ordinal: int) -> list[str]:
        """The label as a row holds it; [] where none is found in time."""
        name = quoted(column.name)
        told = self._ask(
            f"SELECT HEX({_unlossy(column, name)}) FROM {table.quoted} WHERE {name} + 0 = {ordinal} LIMIT 1"  # noqa: S608 - as above
        )
        return [_told(column, each) for each in told]

    def _ask(self, question: str) -> list[str]:
        """The texts of an answer of one column; [] where the server has none."""
        import pymysql

        if self.flavor == "mariadb":
            question = f"SET STATEMENT max_statement_time = {_LIMIT_S} FOR {question}"
        else:
            question = question.replace("SELECT", f"SELECT /*+ MAX_EXECUTION_TIME({_LIMIT_S * 1000}) */", 1)
        try:
            self._cursor.execute(question)
        except pymysql.err.MySQLError as error:
            if error.args and error.args[0] in _NO_ANSWER:
                return []
            raise
        return [str(text) for (text,) in self._cursor.fetchall() if text is not None]


def _unlossy(column: Column, value: str) -> str:
    """What has all bytes or characters of a *value* of the column."""
    return value if column.type.charset == "binary" else f"CONVERT({value} USING utf8mb4)"


def _told(column: Column, digits: str) -> str:
    return stored_label(
        bytes.fromhex(digits), column.type.charset if column.type.charset == "binary" else "utf8mb4", ""
    )


def _fits(column: Column, text: str, printed: str) -> bool:
    """Whether a server prints *text* so; one without such queries answers with the ordinal."""
    return as_printed(text, column.type.charset) == as_printed(printed, column.type.charset)
