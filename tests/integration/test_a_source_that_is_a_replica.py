"""A MariaDB source that is a replica itself: what its replication threads apply counts for snapshots, and threads that rest do not."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from connectors.backfill import snapshots
from connectors.backfill.snapshots import snapshot_behind
from connectors.config import CopyLimits
from databases.replication import follow, wait_for
from databases.servers import Server
from databases.xa import prepare_xa, snapshot_end
from logs.binlog_lab import address
from replicas.copying_oracle import CopyingOracle
from workload.beside import beside

_ROWS = 600
_WORDS = 4000


@dataclass(frozen=True)
class _Chain:
    first: Server
    source: Server

    def catch_up(self) -> None:
        ((gtids,),) = self.first.sql("SELECT @@GLOBAL.gtid_binlog_pos")
        wait_for(self.source, gtids)


@pytest.fixture(params=[0, 2], ids=["one thread", "parallel threads"])
def chain(request: pytest.FixtureRequest, fresh_server: Callable[..., Server]) -> _Chain:
    found = _Chain(fresh_server("mariadb118"), fresh_server("mariadb118", f"slave_parallel_threads={request.param}"))
    follow(found.source, found.first)
    found.first.sql("CREATE DATABASE c")
    found.first.sql("CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
    return found


def test_threads_that_have_nothing_to_apply_commit_nothing(chain: _Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transaction is prepared behind the position: it is waited for as long as some thread may be committing it."""
    monkeypatch.setattr(snapshots, "_COMMITTING_TIMEOUT_S", 3)
    chain.catch_up()
    end = snapshot_end(chain.source)
    prepare_xa(chain.first, "INSERT INTO c.t VALUES (1, 1)")
    chain.catch_up()
    assert 1 == len(chain.source.sql("XA RECOVER"))
    with snapshot_behind(address(chain.source), "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
        assert end.at == snapshot.whole
        rows.execute("SELECT COUNT(*) FROM c.t")
        assert ((0,),) == tuple(rows.fetchall())
    chain.first.sql("XA COMMIT 'x'")
    chain.catch_up()
    behind = snapshot_end(chain.source)
    with snapshot_behind(address(chain.source), "mariadb", behind) as snapshot, snapshot.connection.cursor() as rows:
        rows.execute("SELECT COUNT(*) FROM c.t")
        assert ((1,),) == tuple(rows.fetchall())


def test_an_xa_commit_that_a_replication_thread_applies_is_waited_for(chain: _Chain) -> None:
    """It is in the replica's own log before it is visible there: rows leave a full-text index, which takes long."""
    chain.first.sql("CREATE TABLE c.words (id INT PRIMARY KEY, w VARCHAR(20), FULLTEXT KEY (w))")
    with closing(chain.first.connect()) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.words VALUES (%s, %s)", [(i, f"word{i}") for i in range(_WORDS)])
    prepare_xa(chain.first, "DELETE FROM c.words")
    chain.catch_up()
    begun = snapshot_end(chain.source)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(chain.first.sql, "XA COMMIT 'x'")
        while (end := snapshot_end(chain.source)) == begun:
            pass
        with snapshot_behind(address(chain.source), "mariadb", end) as snapshot, snapshot.connection.cursor() as rows:
            rows.execute("SELECT COUNT(*) FROM c.words")
            assert ((0,),) == tuple(rows.fetchall())
        committing.result()


@pytest.mark.soak
def test_a_copy_of_a_replica_is_what_it_holds_while_it_applies_xa_transactions(chain: _Chain, tmp_path: Path) -> None:
    with closing(chain.first.connect()) as connection, connection.cursor() as cursor:
        cursor.executemany("INSERT INTO c.t VALUES (%s, 0)", [(i * 3,) for i in range(_ROWS)])
    chain.catch_up()

    def write(ended: threading.Event) -> None:
        with closing(chain.first.connect()) as connection, connection.cursor() as cursor:
            for turn in itertools.count():
                at = turn * 7919 % _ROWS * 3
                cursor.execute("UPDATE c.t SET v = v + 1 WHERE id BETWEEN %s AND %s", (at, at + 30))
                cursor.execute("DELETE FROM c.t WHERE id = %s", (at + 33,))
                prepare_xa(chain.first, f"REPLACE INTO c.t VALUES ({at + 1}, {turn}), ({at // 2 + 2}, {turn})")
                cursor.execute("INSERT IGNORE INTO c.t VALUES (%s, -1)", (3 * _ROWS + turn,))
                chain.first.sql("XA COMMIT 'x'" if turn % 4 else "XA ROLLBACK 'x'")
                if ended.wait(0.02):
                    return

    oracle = CopyingOracle(chain.source, tmp_path, CopyLimits(chunk_rows=40, connections=2), "c")
    with beside(write):
        for _ in range(300):
            oracle.run(plans=1)
            if oracle.is_done():
                break
    assert oracle.is_done()
    chain.catch_up()
    oracle.run()
    assert {} == oracle.stopped
    assert {} == oracle.differences("c")
