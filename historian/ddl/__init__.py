"""DDL text to edits."""

from historian.ddl.context import StatementContext

__all__ = ["StatementContext"]
