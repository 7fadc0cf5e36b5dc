"""Small files of targets become fewer ones between two plans, by the run that writes the targets.

So nothing of ours is ever being written meanwhile, and a commit says that no row changed. Streams and change feeds skip it,
the chain of plans and consistent cuts pass over it. Where rows have an identity or marks beside their files (row tracking,
change data feed, deletion vectors), Delta's own OPTIMIZE does it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from historian.errors import ChainBroken
from sinks.contract.locations import TableLocation, TableLocations
from sinks.delta import faults
from sinks.delta.log.commits import Commit, DataFile, HeldFile
from sinks.delta.log.side_by_side import own_session, side_by_side
from sinks.delta.log.table_view import KEEPS_ROWS, TableView
from sinks.delta.log.target import Target, session_settings
from sinks.delta.log.tasks import run_tasks
from sinks.delta.rewrite import held_rows
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.small_files import Rewrite, crowded, joined_by_size, joined_in_order, mirror_file_bytes
from sinks.delta.settings import Compaction, DeltaSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Compactor", "compacted", "joined"]

_LOOKS = 8
"""So many targets are looked at between two plans at most, so that many tables take turns."""

_log = logging.getLogger(__name__)


class Compactor:
    """Looks after the files of a lake's targets, some of them between two plans."""

    def __init__(self, spark: SparkSession, settings: DeltaSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._seen: dict[str, int] = {}
        self._locations: TableLocations = {}
        self._owners: Mapping[str, Sequence[TableLocation]] = {}

    def tidy(self, targets: Mapping[str, Target], locations: TableLocations, plan: int) -> None:
        """Compacts those of *targets* that have grown by enough commits since the last look; after *plan* was written."""
        if locations is not self._locations:
            self._locations, self._owners = locations, _owners(locations)
        due: dict[str, tuple[Target, Compaction]] = {}
        # Of the tables that the lake knows most may have nothing new: only targets that were written here are looked at.
        for directory, target in targets.items():
            grown = target.view.version - self._seen.get(directory, 0) if target.exists else 0
            for location in self._owners.get(directory, ()) if grown > 0 else ():
                compaction = self._settings.for_table(location.came_as).compaction
                if compaction is not None and grown >= compaction.files // 4:
                    due[directory] = target, compaction
        begin = plan * _LOOKS % len(due) if len(due) > _LOOKS else 0
        names = sorted(due)
        now = (names[begin:] + names[:begin])[:_LOOKS]
        side_by_side(lambda directory: compacted(self._spark, *due[directory]), now)
        self._seen |= {directory: due[directory][0].view.version for directory in now}


def _owners(locations: TableLocations) -> dict[str, list[TableLocation]]:
    """Directory to the tables that are written there: several where shards are one table."""
    owners: dict[str, list[TableLocation]] = {}
    for location in locations.values():
        if not (location.stopped or location.is_replaced):
            for directory in location.directories:
                owners.setdefault(directory, []).append(location)
    return owners


def compacted(spark: SparkSession, target: Target, compaction: Compaction) -> bool:
    """Joins the target's small files, where they are many; whether any were. A commit of someone else's comes first."""
    view = target.view
    held = view.held_files()
    if target.kind == "mirror":
        compaction = replace(compaction, target_bytes=min(mirror_file_bytes(held), compaction.target_bytes))
    schema = view.schema().arrow()
    found = _found(target.kind, held, [schema.field(name) for name in view.clustering()], compaction)
    if not found:
        return False
    chosen = {file.path for each in found for file in each.files}
    if any(view.property(name) == "true" for name in KEEPS_ROWS) or any(
        file.has_deletions for each in found for file in each.files
    ):
        _optimize(spark, target, max(file.size_bytes for each in found for file in each.files) + 1, compaction)
        return True
    files = _written(spark, view.path, schema, found, compaction.target_bytes)
    faults.reached("compaction_written", target.path)
    done = target.rearrange(sorted(chosen), files)
    faults.reached("compaction_committed", target.path)
    return done


def joined(view: TableView, compaction: Compaction) -> Commit | None:
    """The commit that joins the small files of a table without an order; made here. None where there are few."""
    found = joined_by_size(view.held_files(), compaction)
    if not found:
        return None
    schema, files = view.schema().arrow(), [[file.path for file in each.files] for each in found]
    written = [_rewritten(view.path, schema, paths, (), compaction.target_bytes) for paths in files]
    return Commit(removed=list(chain(*files)), files=list(chain(*map(_files, written))), same_rows=True)


def _found(
    kind: str, held: Sequence[HeldFile], clustering: Sequence[pa.Field], compaction: Compaction
) -> list[Rewrite]:
    if kind == "changelog":
        return joined_in_order(held, "offset", compaction)
    if kind == "history":
        return joined_by_size(held, compaction, apart=_has_open_rows)
    sort_by = tuple(field.name for field in clustering)
    found = joined_by_size(held, compaction, sort_by=sort_by)
    return found or (crowded(held, clustering) if clustering else [])


def _has_open_rows(file: HeldFile) -> bool:
    """A history's commits read files that can have some, and no others."""
    return bool(json.loads(file.statistics).get("nullCount", {}).get("to_offset", 1))


def _written(
    spark: SparkSession, directory: str, schema: pa.Schema, found: Sequence[Rewrite], file_bytes: int
) -> list[DataFile]:
    calls = [
        partial(_rewritten, directory, schema, [file.path for file in each.files], each.sort_by, file_bytes)
        for each in found
    ]
    here = sum(each.size_bytes for each in found) <= held_rows.SMALL_BYTES
    answers = [call() for call in calls] if here else run_tasks(spark, calls)
    return list(chain(*map(_files, answers)))


def _files(answer: bytes) -> list[DataFile]:
    return [DataFile(**file) for file in json.loads(answer)]


def _rewritten(
    directory: str, schema: pa.Schema, paths: Sequence[str], sort_by: Sequence[str], file_bytes: int
) -> bytes:
    writer = FileWriter(directory, schema, file_bytes)
    if sort_by:
        rows = pa.concat_tables([held_rows.read(path, schema) for path in paths])
        writer.write_table(rows.sort_by([(name, "ascending") for name in sort_by]))
    else:
        for path in paths:
            for rows in held_rows.groups(path, schema, {}):
                writer.write_table(rows)
    return json.dumps([asdict(file) for file in writer.close()]).encode()


def _optimize(spark: SparkSession, target: Target, below_bytes: int, compaction: Compaction) -> None:
    from delta.tables import DeltaTable

    limits = {
        "spark.databricks.delta.optimize.minFileSize": str(below_bytes),
        "spark.databricks.delta.optimize.maxFileSize": str(max(below_bytes, compaction.target_bytes)),
    }
    spark = own_session(spark)
    with session_settings(spark, limits):
        DeltaTable.forPath(spark, target.path).optimize().executeCompaction()
    faults.reached("compaction_optimized", target.path)
    try:
        target.refresh()
    except ChainBroken as error:
        _log.warning("%s: the next plan stops it", error)
