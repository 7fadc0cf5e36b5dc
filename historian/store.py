"""The history store: timeline, plans, quarantines and the lease of one or more connectors, in a SQL database.

SQLite by default. Several processes may use a store at once; every method is one short transaction and may be retried.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import sqlalchemy as sa

from historian import codec
from historian.errors import LeaseHeld, StoreError
from historian.plans import Plan, Quarantine
from historian.positions import LogPosition
from historian.schema import TableName
from historian.timeline import TimelineEntry

__all__ = ["STORE_FORMAT", "Store"]

STORE_FORMAT = 1
"""Version of the tables below; a store of another one is refused by name."""

_LEASE_S = 30.0
_BUSY_S = 30.0

_META = sa.MetaData()
_FORMAT = sa.Table("historian_format", _META, sa.Column("format", sa.Integer, primary_key=True))
_CONNECTOR = sa.Table(
    "historian_connector",
    _META,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("identity", sa.String(36), nullable=False),
    sa.Column("resolved", sa.Text),
    sa.Column("holder", sa.String(400)),
    sa.Column("expires_s", sa.Float),
)
_ENTRY = sa.Table(
    "historian_timeline",
    _META,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("entry", sa.Text(2**24), nullable=False),
)
_PLAN = sa.Table(
    "historian_plan",
    _META,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("plan", sa.Text(2**24), nullable=False),
)
_QUARANTINE = sa.Table(
    "historian_quarantine",
    _META,
    sa.Column("table_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(400), primary_key=True),
    sa.Column("quarantine", sa.Text(2**24), nullable=False),
)
_STREAM = sa.Table(
    "historian_stream",
    _META,
    sa.Column("name", sa.String(200), primary_key=True),
    sa.Column("schema", sa.Text(2**24), nullable=False),
)


class Store:
    """An open store of one connector. Make it with :meth:`open`."""

    def __init__(self, engine: sa.Engine, url: str) -> None:
        self._engine = engine
        self._url = url

    @classmethod
    def open(cls, url: str) -> Store:
        """Opens the store at an SQLAlchemy *url*, made where it is not there; ``sqlite://`` keeps it in memory.

        Raises:
            StoreError: it cannot be opened, or is of another format.
        """
        try:
            parsed = sa.make_url(url)
            memory = parsed.get_backend_name() == "sqlite" and not parsed.database
            if parsed.get_backend_name() == "sqlite" and parsed.database:
                Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
            settings: dict[str, Any] = {"poolclass": sa.StaticPool} if memory else {}
            if parsed.get_backend_name() == "sqlite":
                settings["connect_args"] = {"timeout": _BUSY_S, "check_same_thread": False}
            engine = sa.create_engine(parsed, **settings)
            if parsed.get_backend_name() == "sqlite":
                sa.event.listen(engine, "connect", _sqlite_settings)
            store = cls(engine, parsed.render_as_string(hide_password=True))
            store._prepare()
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise StoreError(
                "the history store cannot be opened",
                where=sa.make_url(url).render_as_string(hide_password=True) if "://" in url else url,
                found=str(error).splitlines()[0],
                next_step="check history.store: its path, its rights, and that its driver is installed",
            ) from error
        return store

    def close(self) -> None:
        """Closes connections."""
        self._engine.dispose()

    def connector(self, name: str) -> str:
        """The identity of the connector *name*, made at its first start. A store serves one connector.

        Raises:
            StoreError: the store is another connector's.
        """
        with self._engine.begin() as db:
            row = db.execute(sa.select(_CONNECTOR.c.name, _CONNECTOR.c.identity)).first()
            if row is None:
                identity = str(uuid.uuid4())
                db.execute(_CONNECTOR.insert().values(name=name, identity=identity))
                return identity
        if row.name != name:
            raise StoreError(
                "the store is another connector's",
                where=self._url,
                expected=f"connector {name}",
                found=f"connector {row.name}",
                next_step="give each connector a store of its own in history.store",
            )
        return str(row.identity)

    @contextmanager
    def lease(self, name: str) -> Iterator[None]:
        """Holds the connector's lease inside the ``with`` block and renews it in the background.

        A holder on this host whose process is gone loses it at once, any other after 30 seconds without a renewal.

        Raises:
            LeaseHeld: another run holds it.
        """
        holder = _holder()
        self._acquire(name, holder)
        done = Event()
        renewal = Thread(target=self._renew, args=(name, holder, done), name="historian-lease", daemon=True)
        renewal.start()
        try:
            yield
        finally:
            done.set()
            renewal.join()
            self._where_held(name, holder, {"holder": None, "expires_s": None})

    def record(self, entries: Sequence[TimelineEntry], resolved: LogPosition) -> None:
        """Appends *entries* and notes that the log is read up to *resolved*, in one transaction. Safe to repeat.

        Raises:
            StoreError: a number holds another entry, or a number is left out.
        """
        with self._engine.begin() as db:
            last = db.scalar(sa.select(sa.func.max(_ENTRY.c.number))) or 0
            for entry in entries:
                last = self._append(db, _ENTRY, entry.number, codec.dump(TimelineEntry, entry), last, "timeline entry")
            db.execute(_CONNECTOR.update().values(resolved=codec.dump(LogPosition, resolved)))

    def entries(self, after: int = 0) -> tuple[TimelineEntry, ...]:
        """The timeline behind entry *after*, in order."""
        wanted = sa.select(_ENTRY.c.entry).where(_ENTRY.c.number > after).order_by(_ENTRY.c.number)
        with self._engine.connect() as db:
            return tuple(codec.load(TimelineEntry, text) for text in db.scalars(wanted))

    def resolved(self) -> LogPosition | None:
        """Up to where the log has been read; None before the first :meth:`record`."""
        with self._engine.connect() as db:
            text = db.scalar(sa.select(_CONNECTOR.c.resolved))
        return None if text is None else codec.load(LogPosition, text)

    def append_plan(self, plan: Plan) -> None:
        """Stores *plan* once and for all. Safe to repeat.

        Raises:
            StoreError: its number holds another plan, or the number before is missing.
        """
        with self._engine.begin() as db:
            last = db.scalar(sa.select(sa.func.max(_PLAN.c.number)))
            self._append(
                db, _PLAN, plan.number, codec.dump(Plan, plan), plan.number - 1 if last is None else last, "plan"
            )

    def plan(self, number: int) -> Plan | None:
        """The plan of that number, or None."""
        with self._engine.connect() as db:
            text = db.scalar(sa.select(_PLAN.c.plan).where(_PLAN.c.number == number))
        return None if text is None else codec.load(Plan, text)

    def plans(self, after: int = 0) -> tuple[Plan, ...]:
        """The plans behind plan *after*, in order."""
        wanted = sa.select(_PLAN.c.plan).where(_PLAN.c.number > after).order_by(_PLAN.c.number)
        with self._engine.connect() as db:
            return tuple(codec.load(Plan, text) for text in db.scalars(wanted))

    def last_plan(self) -> Plan | None:
        """The plan with the highest number, or None."""
        with self._engine.connect() as db:
            text = db.scalar(sa.select(_PLAN.c.plan).order_by(_PLAN.c.number.desc()).limit(1))
        return None if text is None else codec.load(Plan, text)

    def forget_plans(self, before: int) -> None:
        """Deletes plans with a number below *before*; the last one stays, since its end is where the next begins."""
        with self._engine.begin() as db:
            last = db.scalar(sa.select(sa.func.max(_PLAN.c.number))) or 0
            db.execute(_PLAN.delete().where(_PLAN.c.number < min(before, last)))

    def quarantine(self, table_id: int, name: TableName, quarantine: Quarantine) -> None:
        """Notes that a table stopped; the first reason stays. ``table_id`` 0: a table whose schema was never known."""
        with self._engine.begin() as db:
            same = (_QUARANTINE.c.table_id == table_id) & (_QUARANTINE.c.name == str(name))
            if db.execute(sa.select(_QUARANTINE.c.name).where(same)).first() is None:
                text = codec.dump(Quarantine, quarantine)
                db.execute(_QUARANTINE.insert().values(table_id=table_id, name=str(name), quarantine=text))

    def quarantines(self) -> dict[int, Quarantine]:
        """Stopped tables that have an id, by it."""
        return {table_id: quarantine for table_id, _, quarantine in self.stopped_tables() if table_id}

    def stopped_tables(self) -> tuple[tuple[int, str, Quarantine], ...]:
        """Every stopped table: id (0 where its schema was never known), name, and why."""
        with self._engine.connect() as db:
            wanted = sa.select(_QUARANTINE.c.table_id, _QUARANTINE.c.name, _QUARANTINE.c.quarantine)
            rows = db.execute(wanted.order_by(_QUARANTINE.c.name, _QUARANTINE.c.table_id)).all()
        return tuple((table_id, name, codec.load(Quarantine, text)) for table_id, name, text in rows)

    def heal(self, table_id: int, name: TableName) -> None:
        """Lets a stopped table go on with the next plan."""
        with self._engine.begin() as db:
            same = (_QUARANTINE.c.table_id == table_id) & (_QUARANTINE.c.name == str(name))
            db.execute(_QUARANTINE.delete().where(same))

    def remember_stream(self, name: str, schema: str) -> None:
        """Notes the schema of a typed stream; the first one stays."""
        with self._engine.begin() as db:
            if db.execute(sa.select(_STREAM.c.name).where(_STREAM.c.name == name)).first() is None:
                db.execute(_STREAM.insert().values(name=name, schema=schema))

    def stream(self, name: str) -> str | None:
        """The schema remembered for a typed stream, or None."""
        with self._engine.connect() as db:
            return db.scalar(sa.select(_STREAM.c.schema).where(_STREAM.c.name == name))

    def restore(self, name: str, connector: str, timeline: Sequence[TimelineEntry], plans: Sequence[Plan]) -> None:
        """Fills an empty store with what a sink held of the connector.

        Raises:
            StoreError: the store is not empty.
        """
        with self._engine.begin() as db:
            for table in (_ENTRY, _PLAN):
                if db.execute(sa.select(table.c.number).limit(1)).first() is not None:
                    raise StoreError("a store that is not empty cannot be restored", where=self._url)
            resolved = plans[-1].end if plans else timeline[0].position if timeline else None
            db.execute(_CONNECTOR.delete())
            db.execute(
                _CONNECTOR.insert().values(
                    name=name,
                    identity=connector,
                    resolved=None if resolved is None else codec.dump(LogPosition, resolved),
                )
            )
            for entry in timeline:
                db.execute(_ENTRY.insert().values(number=entry.number, entry=codec.dump(TimelineEntry, entry)))
            for plan in plans:
                db.execute(_PLAN.insert().values(number=plan.number, plan=codec.dump(Plan, plan)))
        for plan in plans:
            for planned in plan.tables:
                names = [v.snapshot.name for v in planned.versions if v.snapshot is not None]
                if planned.quarantine is not None and names:
                    self.quarantine(planned.table_id, names[-1], planned.quarantine)

    def _prepare(self) -> None:
        with self._engine.begin() as db:
            _META.create_all(db)
            found = db.scalar(sa.select(_FORMAT.c.format))
            if found is None:
                db.execute(_FORMAT.insert().values(format=STORE_FORMAT))
            elif found != STORE_FORMAT:
                raise StoreError(
                    "the history store is of another format",
                    where=self._url,
                    expected=STORE_FORMAT,
                    found=found,
                    next_step="use the release that made it, or start with a new store",
                )

    def _append(self, db: sa.Connection, table: sa.Table, number: int, text: str, last: int, what: str) -> int:
        if number <= last:
            column = table.c[1]
            known = db.scalar(sa.select(column).where(table.c.number == number))
            if known != text:
                raise StoreError(
                    f"another {what} of that number is stored",
                    where=f"{self._url}, {number}",
                    expected=known,
                    found=text,
                )
            return last
        if number != last + 1:
            raise StoreError(f"a {what} would leave a hole", where=self._url, expected=last + 1, found=number)
        db.execute(table.insert().values({"number": number, table.c[1].name: text}))
        return number

    def _acquire(self, name: str, holder: str) -> None:
        now = time.time()
        free = sa.or_(_CONNECTOR.c.holder.is_(None), _CONNECTOR.c.expires_s < now)
        with self._engine.begin() as db:
            known = db.scalar(sa.select(_CONNECTOR.c.holder).where(_CONNECTOR.c.name == name))
            if known is not None and _is_dead(known):
                free = sa.or_(free, _CONNECTOR.c.holder == known)
            taken = db.execute(
                _CONNECTOR.update()
                .where(_CONNECTOR.c.name == name, free)
                .values(holder=holder, expires_s=now + _LEASE_S)
            )
        if taken.rowcount != 1:
            raise LeaseHeld(
                "another run of this connector is alive",
                where=name,
                found=known,
                next_step="end that run first, or give this connector another name, store and targets",
            )

    def _renew(self, name: str, holder: str, done: Event) -> None:
        while not done.wait(_LEASE_S / 3):
            self._where_held(name, holder, {"expires_s": time.time() + _LEASE_S})

    def _where_held(self, name: str, holder: str, values: dict[str, Any]) -> None:
        with self._engine.begin() as db:
            mine = (_CONNECTOR.c.name == name) & (_CONNECTOR.c.holder == holder)
            db.execute(_CONNECTOR.update().where(mine).values(values))


def _sqlite_settings(connection: Any, _: object) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _holder() -> str:
    return f"{socket.gethostname()} {_boot()} pid {os.getpid()} {_started(os.getpid())} {uuid.uuid4().hex[:8]}"


def _boot() -> str:
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else "-"


def _started(pid: int) -> str:
    """When the process began, in clock ticks since boot: a later process of the same number has another."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "-"


def _is_dead(holder: str) -> bool:
    """Whether the holder's process is known to be gone: only this host can tell."""
    host, boot, _, pid, started, _ = holder.split()
    if host != socket.gethostname() or boot == "-":
        return False
    return boot != _boot() or _started(int(pid)) != started
