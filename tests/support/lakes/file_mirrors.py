"""Mirrors of a lab's plans as a Delta sink writes them, but for Delta: their files and schemas, without Spark and without a log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from historian.changelog.operations import physical_name
from historian.errors import TableStopped
from lakes.sink_lab import Lab
from sinks.contract.chunks import Chunks
from sinks.contract.locations import TableLocations
from sinks.contract.parts import Part, Step, count_rows, parts_of
from sinks.contract.tables import stopped_locations
from sinks.delta import DeltaSettings
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile, HeldFile
from sinks.delta.rewrite.files import DELETES, FRESH, PARTIAL, STOPPED, UNSEEN, UPSERTS, FileWriter, Work, write_files
from sinks.delta.rewrite.held_rows import read
from sinks.delta.rewrite.staged import NetFiles
from sinks.delta.schema.decisions import evolved, evolved_locations
from sinks.delta.schema.schema_evolution import DELETED
from sinks.delta.schema.stops import check
from sinks.delta.targets.mirror import prepare_mirror, write_mirror
from sinks.shaping.chunks import ShapedChunks
from sinks.shaping.plans import Shaper
from sinks.shards.chunks import grouped_chunks
from sinks.shards.plans import grouped_plan

__all__ = ["FileMirrors"]

_ID = "delta.columnMapping.id"
_SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


class _Table:
    """A Delta table, in the place of :class:`sinks.delta.log.target.Target` and of its view."""

    def __init__(self, path: Path, *, feed: bool) -> None:
        path.mkdir(parents=True)
        self._feed = feed
        self.path = str(path)
        self.held = 0
        self.by_spark = False
        self._schema: DeltaSchema | None = None
        self._files: dict[str, DataFile] = {}
        self._last_id = 0

    @property
    def view(self) -> _Table:
        return self

    @property
    def exists(self) -> bool:
        return self._schema is not None

    def schema(self) -> DeltaSchema:
        assert self._schema is not None
        return replace(self._schema, last_id=self._last_id)

    def property(self, _: str) -> None:
        return None

    def has_change_feed(self) -> bool:
        return self._feed

    def is_empty(self) -> bool:
        return not self._files

    def held_files(self) -> list[HeldFile]:
        return [
            HeldFile(path=f.path, size_bytes=f.size_bytes, statistics=f.statistics, has_deletions=False)
            for f in self._files.values()
        ]

    def create(self, schema: DeltaSchema, _domains: Mapping[str, str], _cluster: Sequence[int] = ()) -> None:
        self._take(schema)

    def commit(self, version: int, commit: Commit) -> None:
        assert version > self.held
        self.held = version
        assert not (self._feed and self._files and commit.clear and commit.files), "Kernel refuses that"
        if commit.schema is not None:
            self._take(commit.schema)
        for path in [*self._files] if commit.clear else commit.removed:
            del self._files[path]
        self._files |= {file.path: file for file in commit.files}

    def clear(self, version: int, shard: Sequence[tuple[int, str]]) -> None:
        """The rows with those values in the columns of those ids go, as by a statement of Spark's."""
        self.commit(version, Commit())
        shape = self.schema().arrow()
        for path in [*self._files]:
            rows = read(path, shape)
            keep = [any(row[physical_name(c)] != value for c, value in shard) for row in rows.to_pylist()]
            del self._files[path]
            writer = FileWriter(self.path, shape)
            writer.write_table(rows.filter(pa.array(keep, pa.bool_())))
            self._files |= {file.path: file for file in writer.close()}

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, in any order."""
        shape = self.schema().arrow()
        return [tuple(row.values()) for path in self._files for row in read(path, shape).to_pylist()]

    def _take(self, schema: DeltaSchema) -> None:
        """As Delta takes it: names that it tells apart, ids that stay, and higher ones for what is new."""
        held = {} if self._schema is None else {f.physical: f.metadata[_ID] for f in self._schema.fields}
        ids = {f.physical: f.metadata[_ID] for f in schema.fields}
        assert len({f.name.lower() for f in schema.fields}) == len(set(ids.values())) == len(schema.fields)
        assert all(held[name] == number for name, number in ids.items() if name in held)
        assert all(self._last_id < number < 2**31 for name, number in ids.items() if name not in held)
        self._last_id = max(self._last_id, *ids.values())
        self._schema = schema


class FileMirrors:
    """The mirrors of all tables of a lab, and why tables stopped.

    Args:
        settings: without expressions, which only Spark can follow.
        feed: whether mirrors have a change data feed; then rows can only come into empty ones.
    """

    def __init__(self, settings: DeltaSettings, path: Path, *, feed: bool = False) -> None:
        self._feed = feed
        self.locations: TableLocations = {}
        self.tables: dict[str, _Table] = {}
        self.stopped: dict[str, str] = {}
        self._settings = settings
        self._path = path

    def take(self, lab: Lab) -> None:
        """Ends the lab's plan and takes it."""
        plan = lab.cut()
        locations = evolved_locations(self.locations, plan, self._settings)
        assert locations == evolved_locations(locations, plan, self._settings), "asked again it is the same"
        grouped = grouped_plan(self.locations, plan, self._settings.for_table)
        assert grouped == grouped_plan(locations, plan, self._settings.for_table), "asked again it is the same"
        self.stopped |= {locations[table_id].name: reason for table_id, reason in grouped.stops.items()}
        self.locations, plan = stopped_locations(locations, grouped.stops, plan.number), grouped.plan
        seen = Shaper(None, self._settings.rules_of).seen(plan, locations)
        written = {
            (table.table_id, version.version): version.snapshot
            for table in plan.tables
            for version in table.versions
            if version.snapshot is not None
        }
        with lab.delivered(plan) as chunks, _quiet():
            taken = grouped_chunks(chunks, grouped.routes, grouped.shards, grouped.hidden)
            shaped = ShapedChunks(taken, seen.shapes, written, (), None)
            rows, _, partial = count_rows(shaped)
            for part in parts_of(seen.plan, locations, rows, partial):
                if part.location.name not in self.stopped:
                    try:
                        self._write(part, shaped)
                    except TableStopped as error:
                        self.stopped[part.location.name] = str(error)

    def shown(self, directory: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns, and the rows in a fixed order; without times of deletes, which a lab takes from its chunks."""
        table = self.tables[directory]
        names = table.schema().names()
        rows = table.rows()
        if names[-1] == DELETED[-1]:
            names, rows = names[:-1], [row[:-1] for row in rows]
        return names, sorted(rows, key=repr)

    def _write(self, part: Part, chunks: Chunks) -> None:
        check(part)
        settings, directory = self._settings.for_table(part.location.came_as), part.location.mirror
        soft = settings.mirror_deletes == "soft"
        shown = evolved(part, soft=soft)
        if not directory:
            return
        if directory not in self.tables:
            self.tables[directory] = _Table(self._path / directory, feed=self._feed)
        target: Any = self.tables[directory]
        schema = prepare_mirror(shown.mirrored, target, settings)
        if schema is None:
            return
        sequences = sorted(part.chunks)
        offsets = accumulate((part.chunks[sequence] for sequence in sequences[:-1]), initial=0)
        work = Work(
            table_id=part.location.table_id,
            segment=part.segment,
            written=shown.images,
            labels=shown.labels,
            blanks=shown.blanks,
            carried=shown.part.carried,
            changelog=None,
            changelog_directory="",
            offsets=dict(zip(sequences, offsets, strict=False)),
            system_time_us=0,
            target=shown.mirrored.last,
            mirror=schema.arrow(),
            mirror_directory=target.path,
            soft=soft,
            history=None,
            partial=part.partial,
            moves=bool(part.location.key),
            sorted=settings.cluster,
        )
        files = write_files(chunks, [work] if part.rows and work.target is not None else [])

        def of(kind: str) -> list[DataFile]:
            return [found.file for found in files if found.kind == kind]

        for stopped in of(STOPPED):
            raise TableStopped(stopped.statistics)
        net = NetFiles(
            whole=[*of(UPSERTS), *of(FRESH)],
            partial=of(PARTIAL),
            unseen=of(UNSEEN),
            gone=of(DELETES),
            fresh_rows=sum(file.rows for file in of(FRESH)) if shown.appends_are_new else 0,
        )
        if part.cleared:
            target.clear(part.transaction(Step.ROWS), part.cleared)
            return
        write_mirror(_SPARK, shown.mirrored, target, schema, net, soft=soft)


@contextmanager
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
