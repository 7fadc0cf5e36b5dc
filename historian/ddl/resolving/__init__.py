"""A statement meets a catalog and becomes edits.

The grammar does not belong here (:mod:`historian.ddl.parsing`).
"""

from historian.ddl.resolving.analyzed_tables import analyzed_name, analyzed_table
from historian.ddl.resolving.keys import takes_part
from historian.ddl.resolving.resolution import SYSTEM_DATABASES, Resolution
from historian.ddl.resolving.statement import resolve
from historian.ddl.resolving.table_edits import edits_between
from historian.ddl.resolving.temporary_tables import TemporaryTables
from historian.ddl.resolving.unnamed_tables import function_name, triggers_name

__all__ = [
    "SYSTEM_DATABASES",
    "Resolution",
    "TemporaryTables",
    "analyzed_name",
    "analyzed_table",
    "edits_between",
    "function_name",
    "resolve",
    "takes_part",
    "triggers_name",
]
