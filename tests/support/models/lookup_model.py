"""Brute-force lookup: made-up logs of several kinds, prefixes as plain sets of transactions, whole catalogs after each entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from historian.errors import PositionAhead, PositionExpired, PositionUnknown, UnknownTable
from historian.history.timeline import Gap, TimelineEntry
from historian.names import TableName
from historian.positions import GtidSet, LogPosition, MariadbGtids
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.snapshots import Catalog
from models.questions import touched_ids
from models.timelines import A, B, create, random_edits

__all__ = ["KINDS", "Question", "World", "random_world"]

C = "cccccccc-71ca-11e1-9e33-c80aa9429562"
KINDS = {
    "one server": (A,),
    "several servers": (A, B, C),
    "tags": (A, f"{A}:backup", f"{A}:z_1", B),
    "domains": ("0", "1", "7"),
}
"""Sources of transactions: MySQL's UUIDs with and without tag, MariaDB's domains."""

Transaction = tuple[str, int]
Prefix = frozenset[Transaction]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked: the prefix, and where a row's own event stands behind it."""

    prefix: Prefix
    own: Transaction | None = None
    ordinal: int | None = None


@dataclass(slots=True)
class World:
    """A log as it ran, and the timeline that a tracker made of it.

    Attributes:
        places: of each entry the transaction that it stands in, or for a capture the prefix from which it holds.
        executed: of each bound between transactions that was read.
        gaps: prefixes between which nothing was read.
    """

    mariadb: bool
    entries: list[TimelineEntry] = field(default_factory=list)
    places: list[Transaction | Prefix] = field(default_factory=list)
    executed: list[Prefix] = field(default_factory=list)
    gaps: list[tuple[Prefix, Prefix]] = field(default_factory=list)
    servers: dict[Transaction, int] = field(default_factory=dict)

    def gtid(self, transaction: Transaction) -> str:
        source, number = transaction
        return f"{source}-{self.servers.get(transaction, 9)}-{number}" if self.mariadb else f"{source}:{number}"

    def position(self, prefix: Prefix, *, server: str = "", file: str = "", offset: int = 0) -> LogPosition:
        """The prefix as a position; its file says nothing where it is of another server than the entries'."""
        last: dict[str, int] = {}
        for source, number in prefix:
            last[source] = max(last.get(source, 0), number)
        if self.mariadb:
            triples = sorted((int(d), self.servers.get((d, n), 9), n) for d, n in last.items())
            gtids = str(MariadbGtids(tuple(triples)))
        else:
            by_source: dict[str, list[tuple[int, int]]] = {}
            for source, number in prefix:
                by_source.setdefault(source, []).append((number, number))
            gtids = str(GtidSet.of(by_source))
        return LogPosition(
            flavor="mariadb" if self.mariadb else "mysql", gtids=gtids, file=file, offset=offset, server=server
        )

    def recorded_gaps(self) -> list[Gap]:
        return [Gap(start=self.position(start), end=self.position(end), reason="purged") for start, end in self.gaps]

    def answer(self, name: TableName, question: Question) -> object:
        """The snapshot, or the class of the error."""
        refused = self._refused(question)
        if refused is not None:
            return refused
        steps = touched_ids(self.entries)
        held = [self._holds(question, at) for at in range(len(self.entries))]
        touching = [at for at in range(len(steps)) if self._touches(steps, at, name)]
        last = next((at for at in reversed(touching) if held[at]), None)
        if last is None:
            return PositionExpired if touching else UnknownTable
        catalog = steps[last][0]
        if name in catalog.unknown:
            return PositionUnknown
        if name not in catalog.tables:
            return UnknownTable
        table_id = catalog.tables[name].table_id
        begin = max(at for at in range(last + 1) if table_id in steps[at][2])
        needed = [at for at in range(begin, last + 1) if table_id in steps[at][1]]
        return catalog.tables[name] if all(held[at] for at in needed) else PositionUnknown

    def _refused(self, question: Question) -> type[Exception] | None:
        prefix, own = question.prefix, question.own
        if not prefix >= self.executed[0]:
            return PositionExpired
        if not self.executed[-1] >= prefix or (own is not None and own not in self.executed[-1]):
            return PositionAhead
        for start, end in self.gaps:
            before = start >= prefix and (own is None or own in start)
            if not before and not prefix >= end:
                return PositionUnknown
        return None

    def _holds(self, question: Question, at: int) -> bool:
        place, stood = self.places[at], self.entries[at].place
        if isinstance(place, frozenset) or stood is None:
            assert isinstance(place, frozenset)
            return question.prefix >= place
        if place == question.own:
            return question.ordinal is None or stood.ordinal < question.ordinal
        return place in question.prefix

    def _touches(self, steps: list[tuple[Catalog, set[int], set[int]]], at: int, name: TableName) -> bool:
        before = steps[at - 1][0] if at else Catalog()
        after, edited, _ = steps[at]
        ids = {catalog.tables[name].table_id for catalog in (before, after) if name in catalog.tables}
        return bool(ids & edited) or (name in before.unknown) != (name in after.unknown)


def random_world(random: Random, kind: str, transactions: int) -> World:
    """A log of that kind: numbers with holes, failovers to servers with other files, captures in between, and gaps."""
    world = World(mariadb=kind == "domains")
    sources = KINDS[kind]
    numbers = {source: random.choice((1, 1, 3)) for source in sources}
    begun = {(source, n) for source in sources for n in range(1, numbers[source] + 1)}
    if not world.mariadb:
        begun -= {random.choice(sorted(begun))} if len(begun) > 1 and random.random() < 0.3 else set()
    reached: Prefix = frozenset(begun)
    catalog = Catalog()
    server, offset = 1, 100

    def record(place: Place | None, where: Transaction | Prefix, before: Prefix, *edits: object) -> None:
        nonlocal catalog
        entry = TimelineEntry(
            number=len(world.entries) + 1,
            place=place,
            position=world.position(before, server=f"server {server}", file=f"s{server}-bin.000001", offset=offset),
            edits=edits,  # type: ignore[arg-type]
            statement="" if place is None else f"statement {len(world.entries) + 1}",
            database="shop",
            event_time_us=0,
            server=f"server {server}",
        )
        world.entries.append(entry)
        world.places.append(where)
        catalog = apply_all(entry.edits, catalog)

    record(None, reached, reached, create(1, "t0", "a", "b", key=(1,)))
    world.executed.append(reached)
    for _ in range(transactions):
        if random.random() < 0.1:  # a failover, to a server whose files are smaller, or larger
            server, offset = server + 1, random.choice((4, 100_000))
        if random.random() < 0.1 and catalog.tables:
            record(None, reached, reached, *random_edits(random, catalog))
        gap = random.random() < 0.06
        before = reached
        for _ in range(random.randint(1, 3) if gap else 1):
            source = random.choice(sources)
            numbers[source] += random.choice((1, 1, 1, 2))
            transaction = (source, numbers[source])
            world.servers[transaction] = server
            fresh = {transaction}
            if world.mariadb:  # a position stands for all numbers up to it
                fresh = {(source, n) for n in range(1, numbers[source] + 1)}
            reached |= fresh
        if gap:
            world.gaps.append((before, reached))
        else:
            ordinals = sorted(random.sample(range(1, 8), random.choice((0, 1, 1, 1, 2, 3))))
            for ordinal in ordinals:
                place = Place(
                    gtid=world.gtid(transaction),
                    file=f"s{server}-bin.000001",
                    offset=offset + 10 * ordinal,
                    ordinal=ordinal,
                )
                record(place, transaction, before, *random_edits(random, catalog))
        offset += 100
        world.executed.append(reached)
    return world
