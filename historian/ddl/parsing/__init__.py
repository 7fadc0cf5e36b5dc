"""The text of a statement becomes what the statement says.

What the statement does to tables that are there does not belong here (:mod:`historian.ddl.resolving`).
"""

from historian.ddl.parsing.actions import (
    Action,
    AddColumn,
    AddKey,
    AlterColumn,
    ChangeColumn,
    ChangesRows,
    ConvertCharset,
    DropColumn,
    DropKey,
    MergedTables,
    MergeEngine,
    Position,
    RenameColumn,
    RenameKey,
    RenameTo,
    TableOptions,
    Unsupported,
)
from historian.ddl.parsing.charsets import (
    binary_collation,
    built_in_collation,
    charset_of,
    collation_name,
    decoded,
    default_collation,
    is_mysql_8,
    keeps_bytes,
    literal_bytes,
    maximum_bytes,
    normal_charset,
    normal_collation,
)
from historian.ddl.parsing.columns import parse_default
from historian.ddl.parsing.context import StatementContext
from historian.ddl.parsing.cursor import Cursor, ParseError
from historian.ddl.parsing.definitions import CharsetClause, ColumnSpec, DefaultSpec, KeySpec, TypeSpec
from historian.ddl.parsing.lexer import END, LexError, Tokens, tokenize
from historian.ddl.parsing.parser import parse
from historian.ddl.parsing.script import ScriptError, ScriptStatement, read_script
from historian.ddl.parsing.statements import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateSequence,
    CreateTable,
    DropDatabase,
    DropTables,
    NoTable,
    RenameTables,
    Statement,
    TruncateTable,
)
from historian.ddl.parsing.touched_tables import ddl_tables, dml_tables
from historian.ddl.parsing.triage import FIRST_TOKENS
from historian.ddl.parsing.types import parse_type
from historian.ddl.parsing.wrappers import unwrapped, without_comments

__all__ = [
    "END",
    "FIRST_TOKENS",
    "Action",
    "AddColumn",
    "AddKey",
    "AlterColumn",
    "AlterDatabase",
    "AlterTable",
    "ChangeColumn",
    "ChangesRows",
    "CharsetClause",
    "ColumnSpec",
    "ConvertCharset",
    "CreateDatabase",
    "CreateSequence",
    "CreateTable",
    "Cursor",
    "DefaultSpec",
    "DropColumn",
    "DropDatabase",
    "DropKey",
    "DropTables",
    "KeySpec",
    "LexError",
    "MergeEngine",
    "MergedTables",
    "NoTable",
    "ParseError",
    "Position",
    "RenameColumn",
    "RenameKey",
    "RenameTables",
    "RenameTo",
    "ScriptError",
    "ScriptStatement",
    "Statement",
    "StatementContext",
    "TableOptions",
    "Tokens",
    "TruncateTable",
    "TypeSpec",
    "Unsupported",
    "binary_collation",
    "built_in_collation",
    "charset_of",
    "collation_name",
    "ddl_tables",
    "decoded",
    "default_collation",
    "dml_tables",
    "is_mysql_8",
    "keeps_bytes",
    "literal_bytes",
    "maximum_bytes",
    "normal_charset",
    "normal_collation",
    "parse",
    "parse_default",
    "parse_type",
    "read_script",
    "tokenize",
    "unwrapped",
    "without_comments",
]
