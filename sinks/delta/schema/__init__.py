"""How the schemas of targets follow a table's snapshots, and what stops them.

Delta's own types do not belong here (:mod:`sinks.delta.log.columns`).
"""

from sinks.delta.schema.decisions import EvolvedPart, evolved, evolved_locations
from sinks.delta.schema.schema_evolution import DELETED, changelog_schema, history_schema, mirror_schema
from sinks.delta.schema.stops import check, check_whole

__all__ = [
    "DELETED",
    "EvolvedPart",
    "changelog_schema",
    "check",
    "check_whole",
    "evolved",
    "evolved_locations",
    "history_schema",
    "mirror_schema",
]
