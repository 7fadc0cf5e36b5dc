"""Temporary tables by session: what statements in the log open, rename and drop.

No mark in a statement's event tells by itself. The servers mark each statement on a temporary table. But within a procedure that
has used one also those behind it, on real tables (MySQL 5.7 to 9.7, MariaDB 10.5 to 11.8). MariaDB does not mark RENAME TABLE.
Where statements on temporary tables are logged at all, the CREATE of the table is, and the DROP at the session's end.
"""

from __future__ import annotations

from collections.abc import Iterable

from historian.ddl.parsing.actions import RenameTo
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor, ParseError
from historian.ddl.parsing.lexer import END, LexError, Tokens, tokenize
from historian.ddl.parsing.parser import parse
from historian.ddl.parsing.statements import AlterTable, RenameTables
from historian.ddl.parsing.touched_tables import ddl_tables
from historian.ddl.parsing.triage import FIRST_TOKENS, triage
from historian.ddl.parsing.wrappers import unwrapped
from historian.names import TableName
from historian.positions import TemporaryTable

__all__ = ["TemporaryTables"]

_MOST_DOUBTS = 64
"""A procedure that truncates a table each night adds one a night: of sessions long gone they are worth nothing."""
_KINDS = frozenset(("TABLE", "TABLES", "SEQUENCE"))


class TemporaryTables:
    """Which temporary tables sessions have open, as far as the log has told."""

    def __init__(self, held: Iterable[TemporaryTable] = ()) -> None:
        self._held = dict.fromkeys(held)

    @property
    def held(self) -> tuple[TemporaryTable, ...]:
        """What :class:`TemporaryTables` of a later moment begins with."""
        return tuple(self._held)

    def of(self, session: int) -> frozenset[TableName]:
        """Names that mean temporary tables to the session."""
        if not self._held:
            return frozenset()
        return frozenset(each.name for each in self._held if each.session == session and not each.doubtful)

    def clear(self) -> None:
        """The server was started anew: sessions and their tables are gone."""
        self._held.clear()

    def follow(self, sql: str, context: StatementContext) -> tuple[TableName, ...]:
        """Takes note of a statement.

        Returns names of real tables to which was done what was meant for temporary ones: their DROP shows it now.
        """
        if not context.uses_temporary and not (self._held and context.flavor == "mariadb"):
            return ()
        try:
            tokens = tokenize(sql, context, limit=FIRST_TOKENS)
            kind, verb = triage(tokens)
            if kind == "wrapper":
                inner = unwrapped(sql, context)
                return () if inner is None else self.follow(inner.sql, context)
            if verb == ("RENAME", "TABLE"):
                self._renamed(sql, context)
            elif not context.uses_temporary:
                return ()
            elif verb[0] in ("ALTER", "TRUNCATE") or verb[1] == "INDEX":
                self._altered(sql, tokens, context, verb)
            elif "TEMPORARY" in tokens.keys[:4]:
                return self._opened_or_dropped(tokenize(sql, context), context)
        except (LexError, ParseError):
            pass  # the statement is read by others too, who say so
        return ()

    def _opened_or_dropped(self, tokens: Tokens, context: StatementContext) -> tuple[TableName, ...]:
        cursor = Cursor(tokens, context)
        creates = cursor.key == "CREATE"
        while cursor.key not in _KINDS and cursor.key != END:
            cursor.at += 1
        cursor.at += 1
        cursor.accept("IF", "NOT", "EXISTS")
        cursor.accept("IF", "EXISTS")
        names = [cursor.table_name()]
        while not creates and cursor.accept(","):
            names.append(cursor.table_name())
        if creates and context.error_code:
            return ()
        doubted = []
        for name in names:
            was_open = self._forget(context.session, name)
            was_doubtful = self._forget(context.session, name, doubtful=True)
            if creates:
                self._note(context.session, name)
            elif was_doubtful and not was_open:
                doubted.append(name)
        return tuple(doubted)

    def _altered(self, sql: str, tokens: Tokens, context: StatementContext, verb: tuple[str, str]) -> None:
        (name,) = ddl_tables(tokens, context, verb)[:1] or (None,)
        if name is None:
            return
        if name not in self.of(context.session):
            self._note(context.session, name, doubtful=True)
        elif verb == ("ALTER", "TABLE"):
            statement = parse(tokenize(sql, context), context, verb)
            actions = statement.actions if isinstance(statement, AlterTable) else ()
            for action in actions:
                if isinstance(action, RenameTo):
                    self._forget(context.session, name)
                    self._note(context.session, action.table)

    def _renamed(self, sql: str, context: StatementContext) -> None:
        if context.flavor != "mariadb":
            return  # MySQL renames the real table, whatever hides it
        statement = parse(tokenize(sql, context), context, ("RENAME", "TABLE"))
        for old, new in statement.pairs if isinstance(statement, RenameTables) else ():
            if self._forget(context.session, old):
                self._note(context.session, new)

    def _note(self, session: int, name: TableName, *, doubtful: bool = False) -> None:
        self._held[TemporaryTable(session=session, name=name, doubtful=doubtful)] = None
        doubts = [each for each in self._held if each.doubtful]
        for each in doubts[:-_MOST_DOUBTS]:
            del self._held[each]

    def _forget(self, session: int, name: TableName, *, doubtful: bool = False) -> bool:
        found = TemporaryTable(session=session, name=name, doubtful=doubtful)
        if found not in self._held:
            return False
        del self._held[found]
        return True
