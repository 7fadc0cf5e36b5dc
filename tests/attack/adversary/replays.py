"""Reading again: ``tail`` from a place in the middle, or from the beginning, against what the connector read at its time."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from contextlib import closing
from dataclasses import replace

from adversary.lakes import FileLake, Known
from connectors.config import HistoryConfig, PipelineConfig
from connectors.tail.follow import Tail
from connectors.tail.json_lines import ndjson_rows
from historian.errors import PositionExpired

__all__ = ["replay_findings"]

_Rows = dict[str, list[str]]


def replay_findings(lake: FileLake, known: Known, rng: random.Random) -> list[str]:
    """What ``tail`` shows otherwise than the plans that the connector made, table by table, in order."""
    if not lake.plans or any(plan.start.pending or plan.end.pending for plan in lake.plans):
        return []
    first = rng.randrange(len(lake.plans))
    with lake.tracker() as tracker:
        forgotten = any(tracker.store.plan(plan.number) is None for plan in lake.plans[first:])
        begin = lake.plans[first].start
        mark = tracker.reader.mark(begin.file)
        if mark is None or (mark.server != begin.server and not begin.gtids):
            return []  # what was read there has been purged since, or no other server can say where it is
        wanted: _Rows = defaultdict(list)
        for plan in lake.plans[first:]:
            snapshots = {(t.table_id, v.version): v.snapshot for t in plan.tables for v in t.versions}
            for planned in plan.ranges:
                for chunk in tracker.reader.read(planned, plan.tables, as_text=True):
                    snapshot = snapshots[chunk.table_id, chunk.version]
                    if snapshot is not None:
                        wanted[str(snapshot.name)].extend(map(_row, ndjson_rows(chunk, snapshot)))
    recorded = rng.random() < 0.5
    config = lake.config if recorded else replace(lake.config, history=HistoryConfig(store="sqlite://"))
    try:
        found = _tailed(config, None if first == 0 else str(begin))
    except PositionExpired:
        if forgotten:
            return []  # it says that it cannot know
        raise
    stopped = {name for _, name, _ in known.stopped}
    lines = []
    for name in sorted({*wanted, *found} - stopped):
        # Several tables can have had a name; rows stand together by table then.
        if sorted(wanted.get(name, [])) != sorted(found.get(name, [])):
            what = "with" if recorded else "without"
            lines.append(
                f"tail: {name} from {begin}, {what} what is recorded: the connector read {wanted.get(name, [])[:4]}, "
                f"tail shows {found.get(name, [])[:4]} ({len(wanted.get(name, []))} rows, {len(found.get(name, []))})"
            )
    return lines


def _tailed(config: PipelineConfig, begin: str | None) -> _Rows:
    found: _Rows = defaultdict(list)
    with closing(Tail(config, begin=begin)) as tail:
        for shown in tail.shown():
            for chunk, snapshot in shown.chunks:
                found[str(snapshot.name)].extend(map(_row, ndjson_rows(chunk, snapshot)))
    return found


def _row(text: str) -> str:
    row = json.loads(text)
    return json.dumps([row["op"], row["data"]])
