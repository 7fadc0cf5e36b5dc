"""DDL text to edits, made by hand for MySQL and MariaDB.

Histories of several statements do not belong here (:mod:`historian.history`).
"""

from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.script import ScriptError, ScriptStatement, read_script
from historian.ddl.resolving.resolution import SYSTEM_DATABASES, Resolution
from historian.ddl.resolving.statement import resolve
from historian.ddl.resolving.table_edits import edits_between
from historian.ddl.types.captured_types import (
    UnknownColumnType,
    parse_column_type,
    parse_default_text,
    parse_display_width,
)

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
