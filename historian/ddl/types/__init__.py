"""Column types and defaults, from statements and from ``information_schema``, and back to its words.

Arrow's types and values do not belong here (:mod:`historian.values`).
"""

from historian.ddl.types.captured_types import (
    UnknownColumnType,
    parse_column_type,
    parse_default_text,
    parse_display_width,
)
from historian.ddl.types.column_types import (
    Charset,
    charset_clause,
    column_type,
    converted_type,
    display_width,
    most_bytes,
    resized_type,
    resolves_default_charset,
)
from historian.ddl.types.defaults import default_text, implied_value, initial_value, now_text
from historian.ddl.types.information_schema import ServerForm, server_form, table_form, tables_form

__all__ = [
    "Charset",
    "ServerForm",
    "UnknownColumnType",
    "charset_clause",
    "column_type",
    "converted_type",
    "default_text",
    "display_width",
    "implied_value",
    "initial_value",
    "most_bytes",
    "now_text",
    "parse_column_type",
    "parse_default_text",
    "parse_display_width",
    "resized_type",
    "resolves_default_charset",
    "server_form",
    "table_form",
    "tables_form",
]
