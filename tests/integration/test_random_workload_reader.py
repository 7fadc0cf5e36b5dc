"""Random DML and DDL on real servers, tracked and decoded without Spark: every row is the one that its writer noted."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from binlog_lab import address, live_reader
from connectors.capture import capture_catalog
from connectors.tracker import Tracker
from historian.chunks import Chunk
from historian.plans import Plan
from historian.schema import Catalog
from historian.store import Store
from plain_mirror import PlainMirror
from server_builds import BUILDS
from servers import Server
from workload.checks import DecodedRow, assert_as_noted, decoded_rows, noted_values
from workload.folding import assert_notes_fold_to_final
from workload.notes import FinalTable, Recorded
from workload.run import Workload
from workload.seeds import seeds

STOPS = 4


class Follower:
    """A connector without sinks: keeps what it has read, may be stopped after any plan and go on from its store."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.server = server
        self.url = f"sqlite:///{directory}/store.db"
        self.number = 0
        self.rows: list[DecodedRow] = []
        self.mirror = PlainMirror()
        self.starts = 0

    def run(self, *, plans: int | None = None, limit_bytes: int | None = None) -> int:
        """Takes plans until the log's end, or that many; returns how many there were. Each call is a new start."""
        self.starts += 1
        before = self.number
        with self._tracker() as tracker:
            while plans is None or self.number < before + plans:
                plan = tracker.plan_after(self.number, limit_bytes=limit_bytes)
                if plan is None:
                    break
                self._take(plan, tracker)
        return self.number - before

    def _take(self, plan: Plan, tracker: Tracker) -> None:
        chunks: list[Chunk] = []
        for planned in plan.ranges:
            chunks += tracker.reader.read(planned, plan.tables, sequence=len(chunks))
        self.number = plan.number
        self.rows += decoded_rows(chunks, plan.tables)
        self.mirror.apply(plan, chunks)

    @contextlib.contextmanager
    def _tracker(self) -> Iterator[Tracker]:
        store = Store.open(self.url)
        tracker = Tracker(
            reader=live_reader(self.server),
            store=store,
            connector=store.connector("follower"),
            captured=lambda _: True,
            revision="",
            capture=self._capture,
            range_bytes=200_000,
        )
        try:
            yield tracker
        finally:
            tracker.close()

    def _capture(self, next_table_id: int, next_column_id: int) -> Catalog:
        with contextlib.closing(address(self.server).connect()) as connection:
            return capture_catalog(connection, next_table_id, next_column_id)


@pytest.mark.parametrize("seed", seeds([1]))
@pytest.mark.parametrize("name", list(BUILDS))
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
