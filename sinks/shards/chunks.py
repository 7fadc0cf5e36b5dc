"""Chunks of shards as those of the table that they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from historian.changelog.chunks import Chunk, chunk_row, chunks_of
from historian.changelog.operations import physical_name
from historian.changelog.projection import project
from historian.schema.snapshots import Snapshot
from sinks.contract.chunks import ChunkHead, Chunks
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.spark_chunks import SparkChunks

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Route", "grouped_chunk", "grouped_chunks"]

_Routes = Mapping[tuple[int, int, int], "Route"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What becomes of a shard's rows of one version.

    Attributes:
        table_id, version, segment: of the group.
        written: the shard's schema, with the ids of the group's columns.
        target: the group's schema, in which columns that the shard lacks say what its rows hold there.
        columns: id of each column of the shard to the group's.
    """

    table_id: int
    version: int
    segment: int
    written: Snapshot
    target: Snapshot
    columns: Mapping[int, int]

    @property
    def names(self) -> Mapping[str, str]:
        """Names of columns in chunks of the shard to those in chunks of the group."""
        return {physical_name(own): physical_name(held) for own, held in self.columns.items()}


def grouped_chunks(
    chunks: Chunks, routes: _Routes, shards: Mapping[int, tuple[int, str]], hidden: Collection[int]
) -> Chunks:
    """*chunks* with those of shards as their group's.

    Args:
        routes: by table id, version and segment.
        shards: table id to the group's, and to the shard's name.
        hidden: ids of tables of which nothing is to be seen.
    """
    if not (shards or hidden):
        return chunks
    if isinstance(chunks, SparkChunks):
        return SparkChunks(chunks.frame.mapInArrow(_grouping(routes, shards, frozenset(hidden)), chunks.frame.schema))
    assert isinstance(chunks, LocalChunks)  # noqa: S101 there are these two
    return chunks.seen_as(
        lambda head: None if head.table_id in hidden else _head(head, routes, shards),
        lambda chunk: _chunk(chunk, routes, shards),
    )


def grouped_chunk(chunk: Chunk, route: Route) -> Chunk:
    """A shard's *chunk* as the group's."""
    names = route.names
    rows = chunk.rows.rename_columns([names.get(name, name) for name in chunk.rows.schema.names])
    held = chunk.rows.schema.metadata or {}
    metadata = {}
    if b"nulled" in held:
        metadata["nulled"] = _renamed(held[b"nulled"].decode(), names)
    if b"dead_letters" in held:
        letters = [[row, names.get(name, name), *told] for row, name, *told in json.loads(held[b"dead_letters"])]
        metadata["dead_letters"] = json.dumps(letters)
    projected = project(rows, route.written, route.target)
    return replace(
        chunk,
        table_id=route.table_id,
        version=route.version,
        segment=route.segment,
        rows=projected.replace_schema_metadata(metadata or None),
    )


def _chunk(chunk: Chunk, routes: _Routes, shards: Mapping[int, tuple[int, str]]) -> Chunk:
    if chunk.table_id not in shards:
        return chunk
    if chunk.stopped:
        group, name = shards[chunk.table_id]
        return replace(chunk, table_id=group, stopped=_stopped(name, chunk.stopped))
    return grouped_chunk(chunk, routes[chunk.table_id, chunk.version, chunk.segment])


def _head(head: ChunkHead, routes: _Routes, shards: Mapping[int, tuple[int, str]]) -> ChunkHead:
    if head.table_id not in shards:
        return head
    group, name = shards[head.table_id]
    if head.stopped:
        return replace(head, table_id=group, stopped=_stopped(name, head.stopped))
    route = routes[head.table_id, head.version, head.segment]
    letters = [{**one, "column": route.columns[one["column"]]} for one in json.loads(head.dead_letters or "[]")]
    return replace(
        head,
        table_id=group,
        version=route.version,
        segment=route.segment,
        nulled=_renamed(head.nulled, route.names) if head.nulled else "",
        missing=tuple(route.columns[number] for number in head.missing),
        dead_letters=json.dumps(letters) if letters else "",
    )


def _stopped(name: str, reason: str) -> str:
    return f"shard {name}: {reason}"


def _renamed(nulled: str, names: Mapping[str, str]) -> str:
    return json.dumps({names.get(name, name): count for name, count in json.loads(nulled).items()})


def _grouping(
    routes: _Routes, shards: Mapping[int, tuple[int, str]], hidden: frozenset[int]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in (chunk for batch in batches for chunk in chunks_of(batch)):
            if chunk.table_id not in hidden:
                yield chunk_row(_chunk(chunk, routes, shards))

    return run
