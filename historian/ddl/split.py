"""A script of statements, cut at its semicolons."""

from __future__ import annotations

from historian.ddl.context import StatementContext
from historian.ddl.lexer import END, tokenize

__all__ = ["split_statements"]


def split_statements(script: str, context: StatementContext | None = None) -> tuple[str, ...]:
    r"""The statements of *script* in order, without their semicolons; those in quotes and comments cut nothing.

    Raises:
        LexError: it ends inside a quote or comment.

    >>> split_statements("CREATE TABLE a (b TEXT DEFAULT ';') ; -- c;\\nDROP TABLE a;")
    ("CREATE TABLE a (b TEXT DEFAULT ';')", '-- c;\\nDROP TABLE a')
    """
    tokens = tokenize(script, context or StatementContext())
    statements: list[str] = []
    begin, words = 0, 0
    for key, (start, end) in zip(tokens.keys, tokens.spans, strict=True):
        if key not in (";", END):
            words += 1
            continue
        if words:
            statements.append(script[begin:start].strip())
        begin, words = end, 0
    return tuple(statements)
