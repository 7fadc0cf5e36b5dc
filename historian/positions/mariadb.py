"""MariaDB positions: the last GTID of each replication domain (https://mariadb.com/kb/en/gtid/)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.errors import PositionError

__all__ = ["MariadbGtids"]

_NUMBER = r"[ \t\n\v\f\r]*\+?0*([0-9]{1,20})"
_GTID = re.compile("-".join([_NUMBER] * 3))
_MAX = (2**32 - 1, 2**32 - 1, 2**64 - 1)


@dataclass(frozen=True, slots=True)
class MariadbGtids:
    """Per domain the server and sequence number of its last transaction; prints as ``0-5-812,1-5-3``.

    Sequence numbers ascend within a domain (``gtid_strict_mode``), so a position stands for everything up to it there.
    """

    last: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> MariadbGtids:
        """Parses what the server takes for ``gtid_slave_pos``; the empty text is the start of the log.

        White space may stand before a number, and nowhere else; each domain comes once.

        >>> MariadbGtids.parse("1-5-3, 0-5-812")
        MariadbGtids(last=((0, 5, 812), (1, 5, 3)))

        Raises:
            PositionError: with the part of the text that cannot be read.
        """
        last: dict[int, tuple[int, int, int]] = {}
        for part in text.split(",") if text else ():
            match = _GTID.fullmatch(part)
            gtid = None if match is None else (int(match[1]), int(match[2]), int(match[3]))
            if gtid is None or gtid[0] in last or any(n > most for n, most in zip(gtid, _MAX, strict=True)):
                raise PositionError(
                    "not a MariaDB GTID position",
                    where=text,
                    expected="DOMAIN-SERVER-SEQUENCE, each domain once",
                    found=part,
                )
            last[gtid[0]] = gtid
        return cls(tuple(last[domain] for domain in sorted(last)))

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{sequence}" for domain, server, sequence in self.last)

    def __bool__(self) -> bool:
        return bool(self.last)

    def sequence(self, domain: int) -> int:
        """The last sequence number of *domain*; 0 where it has none."""
        return next((sequence for d, _, sequence in self.last if d == domain), 0)

    def contains_gtid(self, gtid: str) -> bool:
        """Whether the transaction ``domain-server-sequence`` lies at or before this position."""
        try:
            domain, _, sequence = map(int, gtid.split("-"))
        except ValueError:
            raise PositionError("not a GTID", where=gtid, expected="DOMAIN-SERVER-SEQUENCE") from None
        return self.sequence(domain) >= sequence

    def covers(self, other: MariadbGtids) -> bool:
        """Whether every domain of *other* stands at or before this position's."""
        return all(self.sequence(domain) >= sequence for domain, _, sequence in other.last)

    def union(self, other: MariadbGtids) -> MariadbGtids:
        """The later GTID of each domain."""
        latest = {gtid[0]: gtid for gtid in self.last}
        for gtid in other.last:
            if gtid[2] > self.sequence(gtid[0]):
                latest[gtid[0]] = gtid
        return MariadbGtids(tuple(latest[domain] for domain in sorted(latest)))

    def subtract(self, other: MariadbGtids) -> MariadbGtids:
        """The last GTID of each domain in which this position lies beyond *other*; empty where *other* covers it."""
        return MariadbGtids(tuple(gtid for gtid in self.last if gtid[2] > other.sequence(gtid[0])))
