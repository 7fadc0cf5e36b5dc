"""Random DML and DDL on real servers, tracked and decoded without Spark: every row is the one that its writer noted."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from databases.server_builds import BUILDS
from databases.servers import Server
from models.plain_mirror import PlainMirror
from replicas.follower import Follower
from workload.checks import assert_as_noted, noted_values
from workload.folding import assert_notes_fold_to_final
from workload.notes import FinalTable, Recorded
from workload.run import Workload
from workload.seeds import seeds

STOPS = 4
BETWEEN = ("mysql8", "mariadb1011")
"""Servers between the oldest and the newest one of their flavor; with Spark the workload runs on them in CI too."""


@pytest.mark.parametrize("seed", seeds([1]))
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.soak] * (n in BETWEEN)) for n in BUILDS])
def test_rows_are_as_noted_live_and_late(
    name: str, seed: int, fresh_server: Callable[..., Server], tmp_path: Path
) -> None:
    """One follower reads beside the writers, one when all is done; both stop and start again on the way."""
    server = fresh_server(name)
    print(f"seed {seed} on {server.name} {server.version}")
    live, late = (Follower(server, _made(tmp_path / part)) for part in ("live", "late"))
    recorded = _recorded_beside(server, seed, live)
    assert recorded.change_count >= 20_000
    assert recorded.ddl_count >= 40
    assert_notes_fold_to_final(recorded)

    for _ in range(STOPS):
        late.run(plans=3, limit_bytes=60_000)
    late.run(limit_bytes=700_000)
    for follower in (live, late):
        assert follower.starts > 3
        assert_as_noted(recorded, follower.rows)
        _assert_mirror_equals(recorded, follower.mirror)


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def _recorded_beside(server: Server, seed: int, follower: Follower) -> Recorded:
    """Runs the workload with the follower beside it, which the writers wait for before each quarter."""
    turn = threading.Condition()
    over = False

    def pace(share: float) -> None:
        with turn:
            if not turn.wait_for(lambda: over or share <= (follower.starts + 1) / STOPS, timeout=300):
                raise TimeoutError("the follower did not come along")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(Workload(server, seed, pace=pace).run)
        try:
            while not writing.done():
                follower.run(plans=5)
                with turn:
                    turn.notify_all()
                wait([writing], timeout=0.3)
        finally:
            with turn:
                over = True
                turn.notify_all()
        follower.run()
        return writing.result()


def _assert_mirror_equals(recorded: Recorded, mirror: PlainMirror) -> None:
    """The rows that plans and chunks fold to are those that the server holds, old rows' defaults included."""
    snapshots = mirror.snapshots()
    assert set(snapshots) == set(recorded.final)
    for name, final in recorded.final.items():
        rows = mirror.rows(name)
        columns = [noted_values(rows.column(c.name), c.type) for c in snapshots[name].columns]
        names = [column.name for column in snapshots[name].columns]
        folded = Counter(zip(*columns, strict=True))
        held = _held(final, names)
        assert folded == held, f"{name}: only folded {list(folded - held)[:3]}, only held {list(held - folded)[:3]}"


def _held(final: FinalTable, names: list[str]) -> Counter[tuple[object, ...]]:
    assert all(list(row) == names for row in final.rows)
    return Counter(tuple(row.values()) for row in final.rows)
