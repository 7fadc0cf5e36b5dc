"""DDL text to edits: triage, parser and resolver, made by hand for MySQL and MariaDB."""

from historian.ddl.captured_types import parse_column_type, parse_default_text
from historian.ddl.context import StatementContext
from historian.ddl.resolve import SYSTEM_DATABASES, Resolution, resolve

__all__ = ["SYSTEM_DATABASES", "Resolution", "StatementContext", "parse_column_type", "parse_default_text", "resolve"]
