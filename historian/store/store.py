"""The store of one connector: identity, lease, timeline, plans, quarantines, stream schemas, counts."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from historian import codec
from historian.errors import HistorianError, StoreError
from historian.history.history import History
from historian.history.timeline import Gap, Horizon, TimelineEntry
from historian.names import TableName
from historian.plans.passages import Passages
from historian.plans.plans import Plan, PlanHead, Quarantine
from historian.plans.source_marks import SourceMarks
from historian.positions import LogPosition
from historian.schema.snapshots import Catalog
from historian.store.contents import head, loosened, references, unpack
from historian.store.copies import CopyProgress, copied_chunk, copy_progress
from historian.store.copy_orders import CopyOrders, cancel_copy, copy_orders, limit_copies, pause_copies
from historian.store.engine import Transactions
from historian.store.facets import Facets
from historian.store.facts import fact, set_fact
from historian.store.facts import horizon as held_horizon
from historian.store.forgetting import ForgetResult, forget, forget_purged
from historian.store.lease import Lease, Owner, held_lease, holder
from historian.store.migration import is_prepared, prepare
from historian.store.passages import held_passages
from historian.store.recording import (
    append_plan,
    forget_plans,
    forget_quarantine,
    known_type_options,
    record_entries,
    record_gap,
    record_quarantine,
    record_resolved,
)
from historian.store.source_marks import held_marks
from historian.store.tables import counts, gaps, plans, progress, quarantines, streams
from historian.store.timelines import append_entries, held_snapshots, last_number, read_timeline, restore_horizon

__all__ = ["Store"]

LEASE_S = 60.0
_log = logging.getLogger(__name__)


class Store(Facets):
    """Everything about one connector that must outlive a run. Open it with :meth:`open`; several processes may.

    Every method is one short transaction and may be called again after any failure: recording what is recorded already
    changes nothing, recording anything else in its place raises :class:`StoreError`.
    """

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(transactions)

    @classmethod
    def open(cls, url: str) -> Store:
        """The store at *url*, made where there is none; ``sqlite://`` alone is one in memory.

        Raises:
            ConfigError: no usable URL, or no driver for it.
            StoreError: no connection, or a store of a newer release.
        """
        transactions = Transactions(url)
        try:
            if not transactions.read(is_prepared):
                transactions.write(lambda connection: prepare(connection, transactions.where))
        except HistorianError:
            transactions.close()
            raise
        return cls(transactions)

    def close(self) -> None:
        """Closes connections."""
        self._transactions.close()

    def together(self) -> AbstractContextManager[None]:
        """For who asks for much: answers inside of the ``with`` are of one moment, where the store is an SQLite file. For one thread."""
        return self._transactions.together()

    def connector(self, name: str) -> str:
        """The identity of the connector *name*, made at the first call.

        Raises:
            StoreError: the store is another connector's.
        """
        if self._transactions.read(lambda connection: fact(connection, "connector")) is None:
            return self._transactions.write(lambda connection: self._identity(connection, name, str(uuid.uuid4())))
        return self._transactions.read(lambda connection: self._identity(connection, name, ""))

    def generation(self) -> str:
        """The identity of this very store; one made anew or rebuilt has another. Plan numbers hold in one store."""
        return self._transactions.read(lambda connection: fact(connection, "generation")) or ""

    def lease(
        self, name: str, *, seconds: float = LEASE_S, follows: Lease | None = None
    ) -> AbstractContextManager[Lease]:
        """Holds the lease of the connector *name* inside a ``with``, renewed in the background.

        An owner that is known to be dead is replaced at once, any other when its lease has expired. *follows* is a lease of this process, which
        is replaced without a moment in which nobody holds it.

        Raises:
            LeaseHeld: by whom, and for how long at most.
        """
        lease = Lease(self._transactions, name, Owner.here(), seconds, follows)
        return held_lease(lease, seconds / 3, lambda error: _log.warning("the lease was not renewed: %s", error))

    def holder(self, name: str) -> Owner | None:
        """The process that holds the lease of the connector *name*; None where none does that is alive, as far as is known."""
        return self._transactions.read(lambda connection: holder(connection, name))

    def record(
        self,
        entries: Iterable[TimelineEntry],
        resolved: LogPosition,
        gaps: Iterable[Gap] = (),
        *,
        after: int | None = None,
    ) -> None:
        """Appends timeline entries and gaps and notes how far the log has been read, all or nothing.

        An entry whose place is recorded already changes nothing; neither does a position that is covered already.

        Args:
            entries: in order.
            resolved: up to where the log has been read.
            gaps: found on the way.
            after: number of the last entry that the writer knows; nothing is recorded where the store has another one.

        Raises:
            HistoryMoved: another writer recorded behind *after*, or what was there is gone.
            EditConflict: an entry changes a table that is not there.
            StoreError: a number is taken by another entry or leaves a hole, or two readings of the log diverge.
        """
        new_entries, new_gaps = tuple(entries), tuple(gaps)

        def work(connection: Connection) -> None:
            record_entries(connection, new_entries, resolved, after, self._transactions.where)
            for gap in new_gaps:
                record_gap(connection, gap)

        self._transactions.write(work)

    def entries(self, after: int = 0) -> tuple[TimelineEntry, ...]:
        """Timeline entries behind the number *after*, in order."""
        timeline = self._transactions.read(lambda connection: read_timeline(connection, after))
        return tuple(map(timeline.entry, timeline.heads))

    def last_number(self) -> int:
        """Number of the last timeline entry; 0 where there is none."""
        return self._transactions.read(last_number)

    def gaps(self) -> tuple[Gap, ...]:
        """Stretches of the log that were not read, in the order in which they were found."""
        query = select(gaps.c.body).order_by(gaps.c.number)
        return tuple(codec.load(Gap, body) for body in self._bodies(query))

    def resolved(self) -> LogPosition | None:
        """Up to where the log has been read for statements; None before the first record."""
        body = self._transactions.read(lambda connection: fact(connection, "resolved"))
        return None if body is None else codec.load(LogPosition, body)

    def horizon(self) -> Horizon | None:
        """Before which versions were forgotten; None where none were."""
        return self._transactions.read(held_horizon)

    def history(self, empty: Catalog | None = None) -> History:
        """The history of all that is recorded; *empty* carries the server's defaults."""
        return self._transactions.read(lambda connection: self._read_history(connection, empty))

    def forget(self, before: LogPosition, held: Iterable[int] = ()) -> ForgetResult:
        """Forgets versions that went out of force before *before*, and plans that everyone has behind him.

        What the oldest plan needs that some target or stream has not, is kept. Safe beside a run, and to repeat.

        Args:
            before: the first position that is to have a schema.
            held: the last plan that each target holds; 0: none.

        Raises:
            PositionAhead: the log has not been read up to *before*.
            PositionUnknown: a statement cannot be compared with *before*.
        """
        targets = tuple(held)
        forgotten = self._transactions.write(
            lambda connection: forget(connection, self._read_history(connection), before, targets)
        )
        self._transactions.shrink()
        return forgotten

    def forget_purged_plans(self, start: LogPosition) -> int:
        """Deletes plans that every stream has behind it and that end at or before *start*, where the log begins now."""
        return self._transactions.write(lambda connection: forget_purged(connection, start))

    def note_progress(self, name: str, plan: int) -> None:
        """Notes that the stream *name* will not ask for plans up to *plan* again."""

        def work(connection: Connection) -> None:
            mine = progress.c.name == name
            held = connection.execute(select(progress.c.plan).where(mine)).scalar()
            if held is None:
                connection.execute(insert(progress).values(name=name, plan=plan))
            elif held < plan:
                connection.execute(update(progress).where(mine).values(plan=plan))

        self._transactions.write(work)

    def progress(self, name: str) -> int:
        """The last plan that :meth:`note_progress` noted of the stream *name*; 0 where it noted none."""
        query = select(progress.c.plan).where(progress.c.name == name)
        return int(self._transactions.read(lambda connection: connection.execute(query).scalar()) or 0)

    def forget_progress(self, name: str) -> None:
        """Forgets the stream *name*, which asks for no plan any more."""
        self._transactions.write(lambda connection: connection.execute(delete(progress).where(progress.c.name == name)))

    def _read_history(self, connection: Connection, empty: Catalog | None = None) -> History:
        history = History(empty, stored=read_timeline(connection), horizon=held_horizon(connection))
        for body in connection.execute(select(gaps.c.body).order_by(gaps.c.number)).scalars():
            history.add_gap(codec.load(Gap, body))
        resolved = fact(connection, "resolved")
        if resolved is not None:
            history.resolve(codec.load(LogPosition, resolved))
        return history

    def append_plan(
        self,
        plan: Plan,
        copied: Iterable[bytes] = (),
        marks: SourceMarks | None = None,
        *,
        entries: Iterable[TimelineEntry] = (),
        resolved: LogPosition | None = None,
        after: int | None = None,
    ) -> None:
        """Stores *plan* under its number, once and for all, which tables stop in it, and what its log told; all or nothing.

        Args:
            copied: the rows that it copies from the source, chunk by chunk, in place of those of plans that the pipeline has behind it. May
                be gone through again.
            marks: how far partitions have come in their source's log with it.
            entries, resolved, after: of its log, as of :meth:`record`.

        Raises:
            HistoryMoved: see :meth:`record`.
            StoreError: the number is taken by another plan, or leaves a hole.
        """
        new_entries = tuple(entries)

        def work(connection: Connection) -> None:
            if resolved is not None:
                record_entries(connection, new_entries, resolved, after, self._transactions.where)
            append_plan(connection, plan, copied, marks=marks)

        self._transactions.write(work)

    def source_marks(self, partitions: Collection[str]) -> SourceMarks:
        """How far *partitions* (``topic:partition``) have come in the log of their source, up to the last plan; those of which it is known."""
        return self._transactions.read(partial(held_marks, partitions=partitions))

    def passages(self) -> Passages:
        """Of topics: at which offsets partitions passed to versions, as plans so far have it."""
        return self._transactions.read(held_passages)

    def copies(self) -> dict[int, CopyProgress]:
        """How far tables are copied from the source, by table id; those that never were to be are left out."""
        return self._transactions.read(copy_progress)

    def copied_chunks(self, plan: int) -> Iterator[bytes]:
        """What :meth:`append_plan` stored with plan *plan*, one after the other; nothing where a later one came behind its end."""
        number = 0
        while (body := self._transactions.read(partial(copied_chunk, plan=plan, number=number))) is not None:
            yield body
            number += 1

    def pause_copies(self, *, paused: bool) -> None:
        """Lets the copies of all tables rest from the next plan on, or go on."""
        self._transactions.write(partial(pause_copies, paused=paused))

    def limit_copies(self, limits: Mapping[str, int | None], *, as_configured: Collection[str] = ()) -> None:
        """Sets limits of copies, None: no such limit, by the configuration's names; those *as_configured* are its own again."""
        self._transactions.write(partial(limit_copies, limits=limits, as_configured=as_configured))

    def cancel_copy(self, table_id: int) -> bool:
        """Lets the copy of a table end where it is, with the next plan. False: it is not under way."""
        return self._transactions.write(partial(cancel_copy, table_id=table_id))

    def copy_orders(self) -> CopyOrders:
        """What :meth:`pause_copies`, :meth:`limit_copies` and :meth:`cancel_copy` said, as far as it is not carried out."""
        return self._transactions.read(copy_orders)

    def type_options(self) -> dict[str, str]:
        """How values are carried in the plans that were stored, see :func:`historian.plans.type_options.planned_type_options`."""
        return self._transactions.read(known_type_options)

    def plan(self, number: int) -> Plan | None:
        """The plan of that number; None where it was not made yet, or is forgotten."""
        found = self._plans(plans.c.number == number)
        return found[0] if found else None

    def plans(self, after: int = 0) -> tuple[Plan, ...]:
        """Plans behind the number *after*, in order."""
        return self._plans(plans.c.number > after)

    def last_plan(self) -> Plan | None:
        """The newest plan; None where there is none."""
        found = self._plans(plans.c.number == select(func.max(plans.c.number)).scalar_subquery())
        return found[0] if found else None

    def plan_head(self, number: int | None = None) -> PlanHead | None:
        """The plan of that number, None: the newest, for who does not ask for its tables; None where there is none."""
        wanted = select(func.max(plans.c.number)).scalar_subquery() if number is None else number
        query = select(plans.c.body).where(plans.c.number == wanted)
        body = self._transactions.read(lambda connection: connection.execute(query).scalar())
        return None if body is None else head(loosened(body))

    def begin_behind(self, held: int) -> int:
        """The number that a stream begins behind, so that its next plan is the first stored one behind plan *held*.

        In a store that was rebuilt from a sink, plans without tables are missing: no sink got them.
        """
        query = select(func.min(plans.c.number)).where(plans.c.number > held)
        following = self._transactions.read(lambda connection: connection.execute(query).scalar())
        return held if following is None else int(following) - 1

    def forget_plans(self, before: int) -> int:
        """Deletes plans with numbers below *before*, the oldest one that a target or checkpoint needs; says how many.

        The newest plan stays in any case, since the next one follows it.
        """
        return self._transactions.write(lambda connection: forget_plans(connection, before))

    def quarantine(self, table_id: int, name: TableName, quarantine: Quarantine) -> None:
        """Notes that the table *name* stopped; the first reason stays. *table_id* 0: its schema was never known."""
        self._transactions.write(lambda connection: record_quarantine(connection, table_id, name, quarantine))

    def quarantines(self) -> dict[int, Quarantine]:
        """Stopped tables whose schema is known, by table id."""
        return {table_id: quarantine for table_id, _, quarantine in self.stopped() if table_id}

    def stopped(self) -> tuple[tuple[int, TableName, Quarantine], ...]:
        """All stopped tables, by name: table id (0: schema never known), name when it stopped, and why."""
        rows = self._transactions.read(lambda connection: connection.execute(select(quarantines)).all())
        found = (
            (row.table_id, TableName(row.database_name, row.table_name), codec.load(Quarantine, row.body))
            for row in rows
        )
        return tuple(sorted(found, key=lambda stop: (stop[1], stop[0])))

    def heal(
        self,
        stopped: Iterable[tuple[int, TableName]],
        entries: Iterable[TimelineEntry] = (),
        *,
        resolved: LogPosition | None = None,
        plans: Iterable[Plan] = (),
        copied: Iterable[bytes] = (),
    ) -> None:
        """Forgets that tables stopped, by id and name, with the entries and plans by which they go on; all or nothing.

        Args:
            stopped: as :meth:`stopped` gives them; a table with an id goes by that alone.
            entries, resolved: see :meth:`record`.
            plans, copied: see :meth:`append_plan`; a table that stops in one of them stops anew.
        """
        healed, new_entries, new_plans = tuple(stopped), tuple(entries), tuple(plans)

        def work(connection: Connection) -> None:
            for table_id, name in healed:
                forget_quarantine(connection, table_id, name)
            append_entries(connection, new_entries)
            if resolved is not None:
                record_resolved(connection, resolved)
            for plan in new_plans:
                append_plan(connection, plan, copied)

        self._transactions.write(work)

    def remember_stream(self, name: str, body: str) -> None:
        """Keeps the schema of the typed stream *name*. Raises :class:`StoreError` where it has another one."""

        def work(connection: Connection) -> None:
            held = connection.execute(select(streams.c.body).where(streams.c.name == name)).scalar()
            if held is None:
                connection.execute(insert(streams).values(name=name, body=body))
            elif held != body:
                raise StoreError(
                    "a stream of that name has another schema",
                    where=name,
                    expected=held,
                    found=body,
                    next_step="give the stream a name of its own",
                )

        self._transactions.write(work)

    def stream(self, name: str) -> str | None:
        """What :meth:`remember_stream` kept under *name*; None where nothing is."""
        query = select(streams.c.body).where(streams.c.name == name)
        return self._transactions.read(lambda connection: connection.execute(query).scalar())

    def remember_log(self, body: str) -> None:
        """Keeps what tells the log that was read from another one, in place of what was kept before."""
        self._transactions.write(lambda connection: set_fact(connection, "log", body))

    def log(self) -> str | None:
        """What :meth:`remember_log` kept last."""
        return self._transactions.read(lambda connection: fact(connection, "log"))

    def count_nulled(self, plan: int, nulled_counts: Mapping[tuple[int, int], int]) -> None:
        """Notes how many values became NULL in a plan that cannot be represented, by table id and column id. A plan run again replaces its counts."""

        def work(connection: Connection) -> None:
            connection.execute(delete(counts).where(counts.c.plan == plan))
            for (table_id, column_id), amount in nulled_counts.items():
                row = {"plan": plan, "table_id": table_id, "column_id": column_id, "amount": amount}
                connection.execute(insert(counts).values(**row))

        self._transactions.write(work)

    def restore(
        self,
        name: str,
        connector: str,
        entries: Iterable[TimelineEntry],
        plans: Iterable[Plan],
        *,
        horizon: Horizon | None = None,
    ) -> None:
        """Rebuilds a lost store from what a sink holds of the connector *name*, its identity included.

        The log is read again from the end of the last plan.

        Args:
            horizon: before which versions were forgotten; *entries* has what is left of them.

        Raises:
            StoreError: the store is not empty and holds something else.
        """
        held_entries, held_plans = tuple(entries), tuple(plans)

        def work(connection: Connection) -> None:
            self._identity(connection, name, connector, exactly=True)
            forgotten = 0 if horizon is None else horizon.number
            if horizon is not None:
                restore_horizon(connection, horizon, [e for e in held_entries if e.number <= forgotten])
            append_entries(connection, [entry for entry in held_entries if entry.number > forgotten])
            for plan in held_plans:
                append_plan(connection, plan, restoring=True)
            if held_plans or held_entries:
                record_resolved(connection, held_plans[-1].end if held_plans else held_entries[-1].position)

        self._transactions.write(work)

    def _identity(self, connection: Connection, name: str, connector: str, *, exactly: bool = False) -> str:
        held = fact(connection, "connector")
        if held is None:
            set_fact(connection, "connector", f"{connector} {name}")
            return connector
        held_connector, _, held_name = held.partition(" ")
        if held_name != name or (exactly and held_connector != connector):
            raise StoreError(
                "the store is another connector's",
                where=self._transactions.where,
                expected=f"{name} {connector}" if exactly else name,
                found=f"{held_name} {held_connector}" if exactly else held_name,
                next_step="give each connector a store of its own (history.store)",
            )
        return held_connector

    def _bodies(self, query: Select[Any]) -> Sequence[str]:
        return self._transactions.read(lambda connection: connection.execute(query).scalars().all())

    def _plans(self, condition: ColumnElement[bool]) -> tuple[Plan, ...]:
        def work(connection: Connection) -> tuple[Plan, ...]:
            query = select(plans.c.body).where(condition).order_by(plans.c.number)
            bodies = [loosened(body) for body in connection.execute(query).scalars()]
            found = held_snapshots(connection, {digest for body in bodies for digest in references(body)})
            return tuple(unpack(body, found) for body in bodies)

        return self._transactions.read(work)
