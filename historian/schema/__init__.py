"""Schemas of tables as values, the edits that change them, and how two of them compare.

When a schema was in force does not belong here (:mod:`historian.history`), nor do rows and values.
"""

from historian.schema.comparison import differences
from historian.schema.diff import Difference
from historian.schema.edits import (
    AddColumn,
    AddUniqueKey,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    DropDatabase,
    DropTable,
    DropUniqueKey,
    Edit,
    ForgetTable,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetDatabase,
    SetOtherKeys,
    SetPrimaryKey,
    SetTableCharset,
    TruncateTable,
    apply,
    apply_all,
)
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.generated_columns import under_ids, with_sources
from historian.schema.merge_tables import is_merge, merge_reason, merged_tables
from historian.schema.snapshots import (
    GEOMETRIES,
    NO_TABLES,
    SEQUENCE,
    TRIGGER,
    VIEW,
    Catalog,
    Column,
    ColumnType,
    Database,
    Snapshot,
    UniqueKey,
)
from historian.schema.type_compatibility import is_compatible, resembles, retyped

__all__ = [
    "GEOMETRIES",
    "NO_TABLES",
    "SEQUENCE",
    "TRIGGER",
    "VIEW",
    "AddColumn",
    "AddUniqueKey",
    "Catalog",
    "ChangeAttributes",
    "ChangeType",
    "Column",
    "ColumnType",
    "CreateTable",
    "Database",
    "Difference",
    "DropColumn",
    "DropDatabase",
    "DropTable",
    "DropUniqueKey",
    "Edit",
    "ForgetTable",
    "MoveColumn",
    "RenameColumn",
    "RenameTable",
    "ResumeTable",
    "SetDatabase",
    "SetOtherKeys",
    "SetPrimaryKey",
    "SetTableCharset",
    "SkipLog",
    "Snapshot",
    "TruncateTable",
    "UniqueKey",
    "apply",
    "apply_all",
    "differences",
    "is_compatible",
    "is_merge",
    "merge_reason",
    "merged_tables",
    "resembles",
    "retyped",
    "under_ids",
    "with_sources",
]
