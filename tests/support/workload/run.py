"""Runs a random workload on a real server: several connections write, and define, at once; all is noted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable

import pymysql

from databases.servers import Server
from historian.names import TableName
from workload.ddl import CONVERSIONS, KINDS, REWRITING, WIDENINGS, Kind
from workload.definer import Definer, Work
from workload.dml import Writer
from workload.notes import FinalTable, Look, NotedTransaction, Recorded, walk_lineages
from workload.order import gtids_behind, log_end
from workload.registry import Tables
from workload.session import Session
from workload.shapes import Shape, quoted, shape_of

__all__ = ["Workload", "record"]

# A lock that another connection holds, or a table that has just been dropped or renamed: the transaction is given up.
GIVEN_UP = {1205, 1213, 1146, 1412}
DDL_TRIES = 20
FIRST_OF_CLIENT = 2000
"""Numbers of errors from here on to 2999 are those of a connection."""


def record(server: Server, seed: int, **options: object) -> Recorded:
    """Runs a whole workload and returns its notes; see :class:`Workload` for the options."""
    return Workload(server, seed, **options).run()  # type: ignore[arg-type]  # checked there


class Workload:
    """A seeded workload. Choices follow the seed; how connections interleave is the server's.

    Args:
        server: any; nobody else may write to it meanwhile.
        seed: of all choices.
        changes, ddls: how many row changes and DDL statements at least.
        writers: connections that write at once; each runs DDL too, when its turn comes.
        databases: two that the workload creates.
        looks: how often all tables are looked at on the way, while nobody writes.
        widenings: whether columns get wider types.
        conversions: whether columns get types that the server makes other values for.
        rewrites: whether statements change rows without row events. Then the notes lack what these do, and what the server refuses
            is given up.
        pace: called with the share of the work done, by any writer, outside transactions; may block, and may raise.
    """

    def __init__(
        self,
        server: Server,
        seed: int,
        *,
        changes: int = 20_000,
        ddls: int = 56,
        writers: int = 4,
        databases: tuple[str, str] = ("shop", "archive"),
        looks: int = 0,
        widenings: bool = True,
        conversions: bool = False,
        rewrites: bool = False,
        pace: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.server = server
        self.seed = seed
        self.changes = changes
        self.ddls = ddls
        self.writers = writers
        self.looks = looks
        self.pace = pace
        others = tuple(kind for kind in KINDS if widenings or kind not in WIDENINGS)
        self._kinds_of_ddl = (*others, *(CONVERSIONS if conversions else ()), *(REWRITING if rewrites else ()))
        self._rewrites = rewrites
        self._start = log_end(server)
        # 5.7 has no RENAME COLUMN, and with GTIDs no CREATE TABLE ... SELECT.
        old = server.version.startswith("5.")
        self.tables = Tables(can_rename_column=not old)
        self.definer = Definer(self.tables, random.Random(f"{seed}-ddl"), databases, create_select=not old)
        self._kinds = self._schedule()
        self._noted: list[NotedTransaction] = []
        self._looks: list[Look] = []
        self._done = 0
        self._discarded: Counter[str] = Counter()
        self._defining = threading.Lock()
        self._counting = threading.Lock()
        self._failure: BaseException | None = None

    def run(self) -> Recorded:
        """Creates the tables, writes until both numbers are reached, returns the notes. Raises what a writer met."""
        session = Session(self.server)
        self.definer.create_databases(session)
        self.definer.create_all(session)
        session.close()
        threads = [threading.Thread(target=self._write, args=(number,)) for number in range(self.writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failure is not None:
            raise self._failure
        return self._recorded()

    # -- one writer --------------------------------------------------------------------------------------------------

    def _write(self, number: int) -> None:
        try:
            session = Session(self.server)
            writer = Writer(session, random.Random(f"{self.seed}-{number}"), number, self.writers)
            while self._failure is None and self._share() < 1:
                self.pace(self._share())
                if (self._look_due() or self._ddl_due()) and self._defining.acquire(blocking=False):
                    try:
                        if self._look_due():
                            self._look(session)
                        else:
                            self._define(session)
                    finally:
                        self._defining.release()
                else:
                    self._transaction(session, writer)
            session.close()
        except BaseException as error:  # noqa: BLE001 raised again by run(), in the caller's thread
            self._failure = self._failure or error

    def _share(self) -> float:
        return min(1.0, self._done / self.changes, len(self.definer.noted) / self.ddls)

    def _ddl_due(self) -> bool:
        return len(self.definer.noted) / self.ddls <= self._done / self.changes

    def _look_due(self) -> bool:
        return self._share() * (self.looks + 1) > len(self._looks) + 1 and len(self._looks) < self.looks

    def _transaction(self, session: Session, writer: Writer) -> None:
        changes = []
        rng = writer.rng
        shapes: dict[TableName, Shape] = {}
        names = rng.sample(self.tables.names(), rng.choice((1, 1, 2, 3)))
        session.run("BEGIN")
        try:
            for _ in range(rng.randint(1, 5)):
                name = rng.choice(names)
                if name not in shapes:
                    shapes[name] = shape_of(session, name)
                saved = rng.random() < 0.08
                if saved:
                    session.run("SAVEPOINT here")
                made = writer.change(shapes[name])
                if saved and rng.random() < 0.7:
                    session.run("ROLLBACK TO SAVEPOINT here")
                else:
                    changes += made
        except pymysql.MySQLError as error:
            if error.args[0] not in GIVEN_UP and not self._may_refuse(error):
                raise
            session.run("ROLLBACK")
            self._discard(str(error.args[0]))
            return
        if rng.random() < 0.08:
            session.run("ROLLBACK")
            self._discard("rollback")
            return
        session.run("COMMIT")
        gtid = session.committed()
        if changes and not gtid:
            raise AssertionError(f"{len(changes)} changes were committed without a GTID")
        if gtid:
            with self._counting:
                self._noted.append(NotedTransaction(gtid=gtid, changes=tuple(changes)))
                self._done += len(changes)

    def _may_refuse(self, error: pymysql.MySQLError) -> bool:
        """Whether the server itself says it, of a statement that it need not take."""
        return self._rewrites and not FIRST_OF_CLIENT <= error.args[0] < 3000

    def _discard(self, why: str) -> None:
        with self._counting:
            self._discarded[why] += 1

    # -- DDL ---------------------------------------------------------------------------------------------------------

    def _schedule(self) -> list[Kind]:
        """Every kind once, then any, in random order; the first stands last."""
        rng = random.Random(f"{self.seed}-kinds")
        every = rng.sample(self._kinds_of_ddl, len(self._kinds_of_ddl))
        return [*rng.choices(self._kinds_of_ddl, k=self.ddls * 2), *every]

    def _define(self, session: Session) -> None:
        rng = self.definer.rng
        kind = self._kinds.pop() if self._kinds else rng.choice(self._kinds_of_ddl)
        names = self.tables.names()
        for name in rng.sample(names, len(names)):
            if self.tables.is_narrow(name) and not kind.narrow:
                continue
            work = Work(definer=self.definer, session=session, table=name, shape=shape_of(session, name), rng=rng)
            if kind.fits(work):
                self._until_it_runs(kind, work)
                break
        if rng.random() < 0.06:
            session.run("FLUSH BINARY LOGS")

    def _until_it_runs(self, kind: Kind, work: Work) -> None:
        before = len(self.definer.noted)
        for _ in range(DDL_TRIES):
            try:
                kind.run(work)
                return
            except pymysql.MySQLError as error:
                if error.args[0] not in {1205, 1213}:
                    if not self._may_refuse(error):
                        raise
                    self._discard(f"{kind.run.__name__} {error.args[0]}")
                    return
                self._discard(f"ddl {error.args[0]}")
                if len(self.definer.noted) > before:  # the first of two statements ran; the second is not owed
                    return
        raise AssertionError(f"{kind.run.__name__} found no moment in {DDL_TRIES} tries")

    def _look(self, session: Session) -> None:
        """Reads all tables while nobody can write to them; whoever wrote has committed before."""
        names = {name: f"{quoted(name.database)}.{quoted(name.table)}" for name in self.tables.names()}
        gtids = "@@GLOBAL.gtid_binlog_pos" if session.mariadb else "@@GLOBAL.gtid_executed"
        try:
            session.run("LOCK TABLES " + ", ".join(f"{sql} READ" for sql in names.values()))
            found = {name: tuple(session.rows(f"SELECT * FROM {sql}")) for name, sql in names.items()}
            self._looks.append(Look(gtids=str(session.one(f"SELECT {gtids}")).replace("\n", ""), tables=found))
        except pymysql.MySQLError as error:
            if error.args[0] not in {1205, 1213}:
                raise
            self._discard(f"look {error.args[0]}")
        finally:
            session.run("UNLOCK TABLES")

    # -- at the end --------------------------------------------------------------------------------------------------

    def _recorded(self) -> Recorded:
        noted = {one.gtid: one for one in (*self._noted, *self.definer.noted)}
        gtids = gtids_behind(self.server, self._start)
        if set(gtids) != set(noted):
            raise AssertionError(f"in the log only: {set(gtids) - set(noted)}; noted only: {set(noted) - set(gtids)}")
        transactions = tuple(noted[gtid] for gtid in gtids)
        session = Session(self.server)
        final: dict[TableName, FinalTable] = {}
        for name, lineage in walk_lineages(transactions)[-1][1].items():
            shape = shape_of(session, name)
            final[name] = FinalTable(
                lineage=lineage, key=shape.key, rows=tuple(session.rows(f"SELECT * FROM {shape.sql}"))
            )
        session.close()
        return Recorded(
            seed=self.seed,
            flavor=self.server.flavor,
            transactions=transactions,
            final=final,
            discarded=dict(self._discarded),
            looks=tuple(self._looks),
        )
