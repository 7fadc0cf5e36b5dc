"""Which files of a table are worth writing anew as fewer ones; pure.

Files are joined where the others weigh as much as the largest of them. So a row is written anew no more often than
the table doubles, however long it grows by small files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa

from sinks.delta.log.commits import HeldFile
from sinks.delta.log.pruning import bounds_in
from sinks.delta.rewrite.files import MIRROR_FILE_BYTES
from sinks.delta.settings import Compaction

__all__ = ["Rewrite", "crowded", "joined_by_size", "joined_in_order", "mirror_file_bytes"]

SORTED_BYTES = 64 << 20
"""So much, as it is in files, is sorted in memory."""

_DEPTH = 4
"""So many files of a clustered table may hold a key before they are sorted into each other."""


_FILES = 64
"""So many files of a mirror are enough: each holds more where it grows."""


def mirror_file_bytes(held: Sequence[HeldFile]) -> int:
    """Where a file of a mirror that holds these ends."""
    return max(MIRROR_FILE_BYTES, sum(file.size_bytes for file in held) // _FILES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Files to write anew, in order; *sort_by*: columns by which their rows are sorted, () where they stay in order."""

    files: tuple[HeldFile, ...]
    sort_by: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of the files together."""
        return sum(file.size_bytes for file in self.files)


def joined_in_order(held: Sequence[HeldFile], column: str, compaction: Compaction) -> list[Rewrite]:
    """Neighbours to join in a table whose rows stand in the order of an integer *column*, and stay so; [] where few are."""
    spans = {file.path: bounds_in(_statistics(file), column, pa.int64()) for file in held}
    if any(span is None for span in spans.values()):
        return []
    ordered = sorted(held, key=lambda file: spans[file.path] or (0, 0))
    runs = [list(run) for small, run in groupby(ordered, lambda f: f.size_bytes * 2 < compaction.target_bytes) if small]
    rewrites: list[Rewrite] = []
    for files in _enough(map(_suffix, runs), compaction):
        laps = any((spans[a.path] or (0, 0))[1] >= (spans[b.path] or (0, 0))[0] for a, b in pairwise(files))
        limit_bytes = min(compaction.target_bytes, SORTED_BYTES) if laps else compaction.target_bytes
        rewrites += [Rewrite(files=part, sort_by=(column,) if laps else ()) for part in _cut(files, limit_bytes)]
    return rewrites


def joined_by_size(
    held: Iterable[HeldFile],
    compaction: Compaction,
    *,
    apart: Callable[[HeldFile], Any] = lambda file: None,  # noqa: ARG005 all of a kind
    sort_by: tuple[str, ...] = (),
) -> list[Rewrite]:
    """Files to join in a table whose rows have no order, or that of *sort_by* in each file; [] where few are.

    Args:
        apart: files of which it says other things are not joined.
    """
    kinds: dict[Any, list[HeldFile]] = {}
    for file in sorted(held, key=lambda file: -file.size_bytes):
        if file.size_bytes * 2 < compaction.target_bytes:
            kinds.setdefault(apart(file), []).append(file)
    limit_bytes = min(compaction.target_bytes, SORTED_BYTES) if sort_by else compaction.target_bytes
    return [
        Rewrite(files=part, sort_by=sort_by)
        for files in _enough(map(_suffix, kinds.values()), compaction)
        for part in _cut(files[::-1], limit_bytes)
    ]


def crowded(held: Sequence[HeldFile], key: Sequence[pa.Field]) -> list[Rewrite]:
    """The files that can all hold one key, where these are too many, and more than about any other key.

    Sorted into each other they hold each key once, and no other key stands in more files than before.
    """
    first = key[0]
    spans = [
        (span, file) for file in held if (span := bounds_in(_statistics(file), first.name, first.type)) is not None
    ]
    deepest: list[HeldFile] = []
    begun: list[tuple[Any, HeldFile]] = []
    for (low, high), file in sorted(spans, key=lambda span: span[0][0]):
        begun = [(end, other) for end, other in begun if end >= low]
        begun.append((high, file))
        if len(begun) > max(_DEPTH, len(deepest)):
            deepest = [other for _, other in begun]
    taken: list[HeldFile] = []
    size_bytes = 0
    for file in sorted(deepest, key=lambda file: file.size_bytes):
        size_bytes += file.size_bytes
        if size_bytes > SORTED_BYTES:
            break
        taken.append(file)
    return [Rewrite(files=tuple(taken), sort_by=tuple(field.name for field in key))] if len(taken) > 1 else []


def _enough(joins: Iterable[Sequence[HeldFile]], compaction: Compaction) -> list[Sequence[HeldFile]]:
    found = [files for files in joins if len(files) > 1]
    return found if sum(map(len, found)) >= compaction.files else []


def _suffix(files: Sequence[HeldFile]) -> Sequence[HeldFile]:
    """The longest end of *files* in which the largest weighs no more than the others."""
    largest = total = begin = 0
    for at in range(len(files) - 1, -1, -1):
        largest, total = max(largest, files[at].size_bytes), total + files[at].size_bytes
        if largest * 2 <= total:
            begin = len(files) - at
    return files[len(files) - begin :]


def _cut(files: Sequence[HeldFile], limit_bytes: int) -> Iterator[tuple[HeldFile, ...]]:
    """Parts of *files*, in order, of at most that size; one file alone stays as it is."""
    part: list[HeldFile] = []
    size_bytes = 0
    for file in files:
        if part and size_bytes + file.size_bytes > limit_bytes:
            if len(part) > 1:
                yield tuple(part)
            part, size_bytes = [], 0
        part.append(file)
        size_bytes += file.size_bytes
    if len(part) > 1:
        yield tuple(part)


def _statistics(file: HeldFile) -> dict[str, Any]:
    statistics: dict[str, Any] = json.loads(file.statistics, parse_float=Decimal)
    return statistics
