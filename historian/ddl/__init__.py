"""DDL text to edits: triage, parser and resolver, made by hand for MySQL and MariaDB."""

from historian.ddl.captured_types import UnknownColumnType, parse_column_type, parse_default_text, parse_display_width
from historian.ddl.context import StatementContext
from historian.ddl.resolve import SYSTEM_DATABASES, Resolution, resolve
from historian.ddl.script import ScriptError, ScriptStatement, read_script
from historian.ddl.table_edits import edits_between

__all__ = [
    "SYSTEM_DATABASES",
    "Resolution",
    "ScriptError",
    "ScriptStatement",
    "StatementContext",
    "UnknownColumnType",
    "edits_between",
    "parse_column_type",
    "parse_default_text",
    "parse_display_width",
    "read_script",
    "resolve",
]
