"""The lease: one run at a time, a dead owner replaced at once, a silent one when its time is over."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from historian.errors import LeaseHeld, StoreError
from historian.store import Lease, Owner, Store
from historian.store.engine import Transactions

HERE = Owner.here()
ELSEWHERE = replace(HERE, host="db2/abc", pid=1)


class Clock:
    """Wall-clock time that stands still until it is told to move."""

    def __init__(self) -> None:
        self.now_s = 1_000_000.0

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("historian.store.lease.time", clock)
    return clock


@pytest.fixture
def transactions(tmp_path: Path) -> Iterator[Transactions]:
    url = f"sqlite:///{tmp_path}/s.db"
    Store.open(url).close()
    with closing(Transactions(url)) as opened:
        yield opened


def lease(transactions: Transactions, owner: Owner = HERE, seconds: float = 60) -> Lease:
    return Lease(transactions, "shop", owner, seconds)


def test_a_lease_gives_way_to_the_one_that_follows_it_and_to_no_other(transactions: Transactions, clock: Clock) -> None:
    first = lease(transactions)
    first.acquire()
    second = Lease(transactions, "shop", HERE, 60, follows=first)
    second.acquire()

    first.release()
    second.renew()
    with pytest.raises(LeaseHeld):
        lease(transactions).acquire()
    with pytest.raises(LeaseHeld):
        first.renew()
    with pytest.raises(LeaseHeld):
        Lease(transactions, "shop", HERE, 60, follows=first).acquire()


def test_a_live_owner_keeps_others_out_and_is_named(transactions: Transactions, clock: Clock) -> None:
    lease(transactions, HERE).acquire()

    with pytest.raises(LeaseHeld, match=f"process {HERE.pid} on .*wait 60 s") as caught:
        lease(transactions, ELSEWHERE).acquire()

    assert caught.value.retryable


def test_a_released_lease_is_free(transactions: Transactions, clock: Clock) -> None:
    first = lease(transactions, ELSEWHERE)
    first.acquire()
    first.release()

    lease(transactions).acquire()


def test_a_lease_that_could_not_be_given_back_is_taken_again_at_once(
    transactions: Transactions, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = lease(transactions)
    first.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(transactions, "write", _out_of_reach)
        with pytest.raises(StoreError):
            first.release()

    lease(transactions).acquire()
    with pytest.raises(LeaseHeld):
        lease(transactions).acquire()


def _out_of_reach(_: object) -> None:
    raise StoreError("the history store failed")


def test_leases_of_two_names_do_not_meet(transactions: Transactions, clock: Clock) -> None:
    lease(transactions).acquire()

    Lease(transactions, "bank", HERE, 60).acquire()


def test_a_silent_owner_elsewhere_is_replaced_when_its_lease_expires(transactions: Transactions, clock: Clock) -> None:
    first, second = lease(transactions, ELSEWHERE), lease(transactions)
    first.acquire()
    clock.now_s += 59.9
    with pytest.raises(LeaseHeld, match="wait 1 s"):
        second.acquire()

    clock.now_s += 0.1
    second.acquire()

    with pytest.raises(LeaseHeld, match="taken over"):
        first.renew()
    with pytest.raises(LeaseHeld, match="taken over"):
        first.check()
    first.release()
    second.renew()


def test_a_renewed_lease_lives_on(transactions: Transactions, clock: Clock) -> None:
    first = lease(transactions, ELSEWHERE)
    first.acquire()
    clock.now_s += 50
    first.renew()
    clock.now_s += 50

    with pytest.raises(LeaseHeld):
        lease(transactions).acquire()


def test_check_renews_a_lease_that_nobody_took(transactions: Transactions, clock: Clock) -> None:
    first = lease(transactions, ELSEWHERE)
    first.acquire()
    clock.now_s += 70
    first.check()

    with pytest.raises(LeaseHeld):
        lease(transactions).acquire()


@pytest.mark.parametrize(
    "owner",
    [
        replace(HERE, boot="another boot"),
        replace(HERE, started="1"),
        replace(HERE, pid=2**22 + 1),
    ],
    ids=["rebooted", "process id used again", "no such process"],
)
def test_an_owner_known_to_be_dead_is_replaced_at_once(transactions: Transactions, clock: Clock, owner: Owner) -> None:
    lease(transactions, owner).acquire()

    lease(transactions).acquire()

    assert owner.is_gone()


@pytest.mark.parametrize(
    "owner", [HERE, ELSEWHERE, replace(HERE, pid_namespace="pid:[1]", pid=2**22 + 1)], ids=["this", "host", "container"]
)
def test_an_owner_that_may_live_is_not_taken_for_dead(owner: Owner) -> None:
    assert not owner.is_gone()


HOLDER = """
import sys
from historian.store import Store
store = Store.open(sys.argv[1])
with store.lease("shop"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_run_on_this_host_is_replaced_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    root = Path(__file__).parents[3]
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": ""},
    )
    with holder, closing(Store.open(url)) as store:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        with pytest.raises(LeaseHeld, match=f"process {holder.pid}"), store.lease("shop"):
            pass
        holder.kill()
        holder.wait()

        with store.lease("shop") as held:
            held.check()


def test_the_lease_of_a_with_block_is_renewed_and_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renewed = threading.Event()
    renew = Lease.renew

    def noted(lease: Lease) -> None:
        renew(lease)
        renewed.set()

    monkeypatch.setattr(Lease, "renew", noted)
    with closing(Store.open(f"sqlite:///{tmp_path}/s.db")) as store:
        with store.lease("shop", seconds=0.1) as held:
            assert renewed.wait(30)
            held.check()
        with store.lease("shop"):
            pass


def test_a_renewal_that_fails_is_reported_and_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = threading.Event()

    def fails(_: Lease) -> None:
        failed.set()
        raise StoreError("the history store failed")

    monkeypatch.setattr(Lease, "renew", fails)
    with closing(Store.open(f"sqlite:///{tmp_path}/s.db")) as store, store.lease("shop", seconds=0.1):
        assert failed.wait(30)

    assert "the lease was not renewed: the history store failed" in caplog.text
