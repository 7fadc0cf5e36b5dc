"""Positions and places in a source's log. GTID sets are only partially ordered, so there is ``covers()`` and no ``<``.

What stands at a place does not belong here: see :mod:`historian.history` and :mod:`historian.plans`.

Open to other rooms: ``places``.
"""

from historian.positions.file import FilePosition
from historian.positions.gtid import GtidSet
from historian.positions.log import (
    Gtids,
    LogPosition,
    PreparedXa,
    TemporaryTable,
    missing_from,
    parse_gtids,
    parse_position,
)
from historian.positions.mariadb import MariadbGtids

__all__ = [
    "FilePosition",
    "GtidSet",
    "Gtids",
    "LogPosition",
    "MariadbGtids",
    "PreparedXa",
    "TemporaryTable",
    "missing_from",
    "parse_gtids",
    "parse_position",
]
