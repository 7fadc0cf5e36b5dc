"""The lease by which one run of a connector at a time owns it, and what tells that an owner is dead."""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from historian import codec
from historian.errors import LeaseHeld, StoreError
from historian.store.engine import Transactions
from historian.store.tables import leases

__all__ = ["Lease", "Owner", "held_lease", "holder"]


_ended: set[str] = set()
"""Tokens of leases of this process that ended, and that the store has still: it was out of reach when they were to be given back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that holds a lease; ``started`` (clock ticks since boot) tells it from a later one of the same id."""

    host: str
    boot: str
    pid_namespace: str
    pid: int
    started: str

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        pid = os.getpid()
        return cls(
            host=f"{socket.gethostname()}/{_read('/etc/machine-id')}",
            boot=_read("/proc/sys/kernel/random/boot_id"),
            pid_namespace=_link("/proc/self/ns/pid"),
            pid=pid,
            started=_started(pid),
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition('/')[0]}"

    def is_gone(self) -> bool:
        """Whether that process is known to have ended; False where this host cannot tell."""
        here = Owner.here()
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return True
        if self.pid_namespace != here.pid_namespace:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return _started(self.pid) != self.started


class Lease:
    """A held lease. Renewed in the background; :meth:`check` tells when it was lost all the same.

    *follows*: a held one whose place it takes, so that nobody else can come in between.
    """

    def __init__(
        self, transactions: Transactions, name: str, owner: Owner, seconds: float, follows: Lease | None = None
    ) -> None:
        self._transactions = transactions
        self._name = name
        self._owner = owner
        self._seconds = seconds
        self._token = uuid.uuid4().hex
        self._follows = "" if follows is None else follows._token  # noqa: SLF001 of another one of this class
        self._expires_s = 0.0

    def acquire(self) -> None:
        """Takes the lease. Raises :class:`LeaseHeld` while another one has it that has not ended, as far as is known."""
        self._transactions.write(self._take)

    def renew(self) -> None:
        """Prolongs the lease. Raises :class:`LeaseHeld` where it has gone to another owner."""
        expires_s = time.time() + self._seconds

        def work(connection: Connection) -> bool:
            mine = update(leases).where(leases.c.name == self._name, leases.c.token == self._token)
            return connection.execute(mine.values(expires_s=expires_s)).rowcount == 1

        if not self._transactions.write(work):
            raise LeaseHeld("the lease was taken over by another run", where=self._name, next_step="stop this run")
        self._expires_s = expires_s

    def release(self) -> None:
        """Gives the lease back, if it is still held. Where that fails, the next one of this process takes its place."""
        _ended.add(self._token)
        mine = delete(leases).where(leases.c.name == self._name, leases.c.token == self._token)
        self._transactions.write(lambda connection: connection.execute(mine).rowcount)
        _ended.discard(self._token)

    def check(self) -> None:
        """Raises :class:`LeaseHeld` where the lease is no longer certain to be held."""
        if time.time() >= self._expires_s:
            self.renew()

    def _take(self, connection: Connection) -> None:
        now_s = time.time()
        row = connection.execute(select(leases).where(leases.c.name == self._name)).one_or_none()
        values = {
            "owner": codec.dump(Owner, self._owner),
            "token": self._token,
            "expires_s": now_s + self._seconds,
        }
        if row is None:
            connection.execute(insert(leases).values(name=self._name, **values))
        else:
            holder = codec.load(Owner, row.owner)
            is_left = row.token in _ended or row.token == self._follows
            if row.expires_s > now_s and not is_left and not holder.is_gone():
                raise _held(self._name, holder, row.expires_s - now_s)
            theirs = update(leases).where(leases.c.name == self._name, leases.c.token == row.token)
            if connection.execute(theirs.values(**values)).rowcount != 1:
                raise _held(self._name, holder, self._seconds)
        self._expires_s = now_s + self._seconds


@contextmanager
def held_lease(lease: Lease, every_s: float, report: Callable[[Exception], None]) -> Iterator[Lease]:
    """Acquires *lease*, renews it every *every_s* seconds in a thread, and gives it back at the end.

    A renewal that fails is handed to *report*; :meth:`Lease.check` decides whether the lease is lost.
    """
    lease.acquire()
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(every_s):
            try:
                lease.renew()
            except (LeaseHeld, StoreError) as error:
                report(error)

    thread = threading.Thread(target=renew, name="historian lease", daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        ended.set()
        thread.join()
        lease.release()


def _held(name: str, holder: Owner, left_s: float) -> LeaseHeld:
    return LeaseHeld(
        "another run of this connector is alive",
        where=name,
        found=holder,
        next_step=f"stop it, or wait {max(1, round(left_s))} s for its lease to expire",
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:  # another system than Linux, or a container without it
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:  # another system than Linux
        return ""


def _started(pid: int) -> str:
    """Field 22 of proc(5)'s stat, "" for a zombie or where there is no such file."""
    fields = _read_bytes(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return "" if len(fields) < 20 or fields[0] == b"Z" else fields[19].decode()


def _read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:  # the process ended, or another system than Linux
        return b""


def holder(connection: Connection, name: str) -> Owner | None:
    """Who holds the lease of the connector *name*; None where nobody does who is alive, as far as is known."""
    row = connection.execute(select(leases).where(leases.c.name == name)).one_or_none()
    if row is None or time.time() >= row.expires_s:
        return None
    owner = codec.load(Owner, row.owner)
    return None if owner.is_gone() else owner
