"""Positions of a source's log. GTID sets are only partially ordered, so there is ``covers()`` and no ``<``."""

from historian.positions.file import FilePosition
from historian.positions.gtid import GtidSet
from historian.positions.log import Gtids, LogPosition, missing_from, parse_gtids
from historian.positions.mariadb import MariadbGtids
from historian.positions.prepared import PreparedXa
from historian.positions.written import parse_position

__all__ = [
    "FilePosition",
    "GtidSet",
    "Gtids",
    "LogPosition",
    "MariadbGtids",
    "PreparedXa",
    "missing_from",
    "parse_gtids",
    "parse_position",
]
