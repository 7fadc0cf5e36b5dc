"""What looks at a connector cost by the tables that change in it, and by those that do not.

A connector copied many tables, and its last plan changed a hundred of them. The same is asked of one that knows no others, side by side.
``idle_tables_status``: seconds of all that people and Prometheus ask again and again: `historian status` as text and as JSON, ``/status`` and ``/metrics``.
``idle_tables_memory``: resident memory at most of a process that looks so and holds the history as a run does, with the versions of what changes.
What looks at all tables grows with them, and is printed alone: ``historian status --all``, and with ``--page`` the page, of a run and with all tables.
Run: ``python benchmarks/status_many.py [--few 100] [--idle 100000] [--rounds 5] [--page]``. Prints what it does, and last one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from connectors.cli import status
from connectors.config import load_config
from connectors.monitoring.looking import HeldStore, Looks
from connectors.monitoring.retention import KeptLog
from connectors.monitoring.store_metrics import StoreMetrics
from connectors.monitoring.targets import TargetNotes
from connectors.page.page import MOST_LISTED, Page
from databases.stores import a_plan
from historian.plans.plans import PlannedTable, TableCopy
from historian.schema.edits import CreateTable
from historian.store import Store
from models.timelines import A, capture, position, snapshot
from sinks.contract.base import TargetStatus

COLUMNS = ("id", "note", "made", "state")
LABELS = 1000
LOG = "shop.yaml"


class Targets:
    """A sink of which only that is asked where its targets stand."""

    def __init__(self, tables: int) -> None:
        self._tables = tables

    def known(self) -> list[TargetStatus]:
        """Each holds the last plan."""
        return [
            TargetStatus(table=f"shop.t{i}", target=f"shop_t{i}", kind="changelog", plan=2, position="")
            for i in range(1, self._tables + 1)
        ]


def lay_down(directory: Path, few: int, tables: int) -> None:
    """A connector as a run leaves it, of which *few* tables changed with the last plan."""
    (directory / "log").mkdir(parents=True)
    (directory / LOG).write_text(
        f"name: shop\nsource: {{type: binlog-files, directory: {directory / 'log'}}}\nsinks: [{{type: delta, path: {directory / 'lake'}}}]\n"
        f"history: {{store: 'sqlite:///{directory / 'store.db'}'}}\n"
    )
    schemas = [
        snapshot(i, f"t{i}", *COLUMNS, first=1 + (i - 1) * len(COLUMNS), key=(1 + (i - 1) * len(COLUMNS),))
        for i in range(1, tables + 1)
    ]
    like = a_plan()
    whole = TableCopy(key=(1,), is_done=True, rows=10, estimate=10)
    planned = [
        PlannedTable(table_id=each.table_id, versions=(replace(like.tables[0].versions[0], snapshot=each),), copy=whole)
        for each in schemas
    ]
    with closing(Store.open(f"sqlite:///{directory / 'store.db'}")) as store:
        connector = store.connector("shop")
        store.record((capture(*(CreateTable(snapshot=each) for each in schemas)),), position(f"{A}:1-9", 9000))
        first = replace(like, connector=connector, version=1, tables=tuple(planned))
        store.append_plan(first)
        last = replace(first, number=2, previous=1, tables=tuple(replace(each, copy=None) for each in planned[:few]))
        store.append_plan(last)
        store.note_progress("", 2)
        TargetNotes(store, [Targets(tables)]).look()  # type: ignore[list-item]


def measured(directory: Path, few: int, rounds: int, *, with_page: bool) -> dict[str, Any]:
    """Of the connector there, in a process of its own: seconds of each kind of look, and the memory of all."""
    config = load_config(directory / LOG)
    held, kept_s = HeldStore(config), KeptLog.of(config)
    looks = Looks(config, held, kept_s)
    registry = CollectorRegistry()
    taken: dict[str, list[float]] = {}

    def status_of(*, as_json: bool) -> None:
        with redirect_stdout(StringIO()):
            status(directory / LOG, as_json=as_json)

    def metrics() -> None:
        metric = StoreMetrics(config, tables=LABELS, kept_s=kept_s, store=held)
        registry.register(metric)
        generate_latest(registry)
        registry.unregister(metric)

    def timed(name: str, ask: Callable[[], object]) -> None:
        begin = time.perf_counter()
        ask()
        taken.setdefault(name, []).append(time.perf_counter() - begin)

    with closing(held), closing(looks), closing(kept_s):
        for _ in range(rounds + 1):  # the first one imports
            timed("status", lambda: status_of(as_json=False))
            timed("status --json", lambda: status_of(as_json=True))
            timed("/status", lambda: json.dumps(looks.state()))
            timed("/metrics", metrics)
        looked_mb = _most_mb()
        with closing(Store.open(config.history.store)) as store:
            begin = time.perf_counter()
            history = store.history()
            versions = [history.versions_of(table_id) for table_id in range(1, few + 1)]
            captured = len(history.catalog.tables)  # as the comparison with the server at the log's end needs it
            history_s = time.perf_counter() - begin
            held_mb = _most_mb()
            assert few == len(versions) <= captured
            timed("status --all", lambda: json.dumps(looks.state(lists_all=True)))
            if with_page:
                timed("page of a run", lambda: Page(config, most=MOST_LISTED).html(store, looks.state(lists_all=True)))
                timed("page", lambda: Page(config).html(store, looks.state(lists_all=True)))
    seconds = {name: statistics.median(each[1:] or each) for name, each in taken.items()}
    return {
        "seconds": seconds,
        "looked_mb": looked_mb,
        "held_mb": held_mb,
        "all_mb": _most_mb(),
        "history_s": history_s,
    }


def _most_mb() -> float:
    # The system's other count begins with what the process was that started this one.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(peak) * 1024 / 1e6


def compared(name: str, ours: float, other: float, unit: str) -> dict[str, object]:
    """How much more the first is."""
    print(f"{name}: {ours:.3f} {unit} against {other:.3f} {unit}, {ours / other:.2f} times", flush=True)
    return {"name": name, "ours": round(ours, 4), "other": round(other, 4), "ratio": round(ours / other, 2)}


def main() -> None:
    """Measures and prints."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--few", type=int, default=100)
    options.add_argument("--idle", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--page", action="store_true")
    options.add_argument("--of", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.of is not None:
        print(json.dumps(measured(chosen.of, chosen.few, chosen.rounds, with_page=chosen.page)))
        return
    with tempfile.TemporaryDirectory(prefix="historian-bench-") as name:
        found = []
        for case, tables in (("among", chosen.idle), ("alone", chosen.few)):
            directory = Path(name, case)
            begin = time.perf_counter()
            lay_down(directory, chosen.few, tables)
            print(f"{tables} tables are known: {time.perf_counter() - begin:.1f} s", flush=True)
            command = [sys.executable, __file__, "--of", str(directory), "--few", str(chosen.few)]
            command += ["--rounds", str(chosen.rounds), *(["--page"] if chosen.page else [])]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found.append(json.loads(told.splitlines()[-1]))
    among, alone = found
    for kind, seconds in among["seconds"].items():
        print(f"  {kind}: {seconds * 1000:.1f} ms against {alone['seconds'][kind] * 1000:.1f} ms")
    for kind in ("looked_mb", "held_mb", "all_mb", "history_s"):
        print(f"  {kind}: {among[kind]:.2f} against {alone[kind]:.2f}")
    asked = ("status", "status --json", "/status", "/metrics")
    ours, other = (sum(each["seconds"][kind] for kind in asked) for each in found)
    results = [
        compared("idle_tables_status", ours, other, "s"),
        compared("idle_tables_memory", among["held_mb"], alone["held_mb"], "MB"),
    ]
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
