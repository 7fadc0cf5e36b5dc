"""Plans: what a micro-batch reads and under which schemas, and what users decide of types, edits and shards.

Reading and writing by a plan do not belong here.
"""

from historian.plans.evolution import EVOLVE, PRESETS, RULES, STOPS, EvolutionSettings, action_for
from historian.plans.key_order import Signs, arrow_signs, compared_here, has_plain_order, time_us
from historian.plans.key_ranges import NOT_BY_RANGES, Key, KeyRange, KeyValue
from historian.plans.passages import Passages, version_at
from historian.plans.plans import (
    LogRange,
    PartitionRange,
    Passage,
    Plan,
    PlannedRange,
    PlannedTable,
    PlannedVersion,
    PreparedRows,
    PreparedTable,
    Quarantine,
    RolledBack,
    TableCopy,
    version_in,
)
from historian.plans.quadrants import ReconciledRows, RowFate, following, reconcile
from historian.plans.row_values import RowValues, has_plain_values, held_values, rows_with, stored_keys
from historian.plans.segments import brings, numbers, planned_tables, resumed_table, retracts, stopped_table
from historian.plans.shards import Into, IntoSettings, evolution_problems, group_problems
from historian.plans.source_marks import ServerPass, SourceMark, SourceMarks
from historian.plans.type_options import (
    NO_TYPE_OPTIONS,
    TYPE_OPTIONS,
    TypeOptions,
    TypeRule,
    planned_type_options,
    type_options_of,
)

__all__ = [
    "EVOLVE",
    "NOT_BY_RANGES",
    "NO_TYPE_OPTIONS",
    "PRESETS",
    "RULES",
    "STOPS",
    "TYPE_OPTIONS",
    "EvolutionSettings",
    "Into",
    "IntoSettings",
    "Key",
    "KeyRange",
    "KeyValue",
    "LogRange",
    "PartitionRange",
    "Passage",
    "Passages",
    "Plan",
    "PlannedRange",
    "PlannedTable",
    "PlannedVersion",
    "PreparedRows",
    "PreparedTable",
    "Quarantine",
    "ReconciledRows",
    "RolledBack",
    "RowFate",
    "RowValues",
    "ServerPass",
    "Signs",
    "SourceMark",
    "SourceMarks",
    "TableCopy",
    "TypeOptions",
    "TypeRule",
    "action_for",
    "arrow_signs",
    "brings",
    "compared_here",
    "evolution_problems",
    "following",
    "group_problems",
    "has_plain_order",
    "has_plain_values",
    "held_values",
    "numbers",
    "planned_tables",
    "planned_type_options",
    "reconcile",
    "resumed_table",
    "retracts",
    "rows_with",
    "stopped_table",
    "stored_keys",
    "time_us",
    "type_options_of",
    "version_at",
    "version_in",
]
