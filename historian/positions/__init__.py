"""Positions and places in a source's log. GTID sets and offsets are only partially ordered, so there is ``covers()`` and no ``<``.

What stands at a place does not belong here: see :mod:`historian.history` and :mod:`historian.plans`.

Open to other rooms: ``places``, ``moments``.
"""

from historian.positions.file import FilePosition
from historian.positions.gtid import GtidSet
from historian.positions.log import (
    KAFKA,
    Gtids,
    LogPosition,
    PreparedXa,
    TemporaryTable,
    WhatWasRead,
    missing_from,
    parse_gtids,
    parse_position,
    parse_read,
)
from historian.positions.mariadb import MariadbGtids
from historian.positions.offsets import TopicOffsets

__all__ = [
    "KAFKA",
    "FilePosition",
    "GtidSet",
    "Gtids",
    "LogPosition",
    "MariadbGtids",
    "PreparedXa",
    "TemporaryTable",
    "TopicOffsets",
    "WhatWasRead",
    "missing_from",
    "parse_gtids",
    "parse_position",
    "parse_read",
]
