"""MariaDB positions: the last GTID of each replication domain (https://mariadb.com/kb/en/gtid/)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.errors import PositionError

__all__ = ["MariadbGtids"]

_GTID = re.compile(r"(\d+)-(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class MariadbGtids:
    """Per domain the server and sequence number of its last transaction; prints as ``0-5-812,1-5-3``.

    Sequence numbers ascend within a domain (``gtid_strict_mode``), so a position stands for everything up to it there.
    """

    last: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> MariadbGtids:
        """Parses ``domain-server-sequence`` triples, comma separated; the empty text is the start of the log.

        >>> MariadbGtids.parse("1-5-3, 0-5-812")
        MariadbGtids(last=((0, 5, 812), (1, 5, 3)))
        """
        last: dict[int, tuple[int, int, int]] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            match = _GTID.fullmatch(part)
            if match is None or int(match[1]) in last:
                raise PositionError(
                    "not a MariaDB GTID position",
                    where=text,
                    expected="DOMAIN-SERVER-SEQUENCE, each domain once",
                    found=part,
                )
            last[int(match[1])] = (int(match[1]), int(match[2]), int(match[3]))
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
        domain, _, sequence = gtid.split("-")
        return self.sequence(int(domain)) >= int(sequence)

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
