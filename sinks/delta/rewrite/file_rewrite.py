"""Which files of a mirror apply a net change, and where that is worked out: here, or by Spark's executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from historian.changelog.partial_folding import FROM, completed, missing_row
from sinks.delta.log.commits import DataFile, HeldFile
from sinks.delta.log.pruning import files_with
from sinks.delta.log.table_view import KEEPS_ROWS, TableView
from sinks.delta.log.tasks import run_tasks
from sinks.delta.rewrite import held_rows
from sinks.delta.rewrite.copy_on_write import CopyOnWrite, RewrittenFiles, found, joined, rewritten
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.small_files import mirror_file_bytes
from sinks.delta.rewrite.staged import NetFiles
from sinks.rows.shapes import two_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

__all__ = ["FileRewrite", "taken_up"]

_LOOSE_FILES = 8
"""More small files than this are written as one, whether they hold a row that changes or not."""

_FILE_BYTES = 128 << 20
"""A file of a mirror is that large at most."""

_STEP_BYTES = 32 << 20
"""Files of a net change up to this size, a few times more in memory, are applied at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRewrite:
    """*removed* files of a mirror are replaced by *files*; *passing*: files that were needed on the way."""

    removed: Sequence[str]
    files: Sequence[DataFile]
    passing: Sequence[DataFile] = ()


def taken_up(spark: SparkSession, view: TableView, rewrite: CopyOnWrite, net: NetFiles) -> FileRewrite | None:
    """The files that a mirror, not empty, has for others once it took up *net*; None where Spark must merge it.

    Raises:
        TableStopped: the mirror has no row that a partial one changes.
    """
    held = view.held_files()
    rewrite = replace(rewrite, file_bytes=min(mirror_file_bytes(held), _FILE_BYTES))
    if any(view.property(name) == "true" for name in KEEPS_ROWS):
        return None
    passing: Sequence[DataFile] = ()
    if net.partial:
        rows = pa.concat_tables([held_rows.whole(file.path) for file in net.partial])
        before = pa.table(
            {name: rows.column(f"{FROM}{name}").cast(rewrite.schema.field(name).type) for name in rewrite.key}
        )
        files = files_with(held, before)
        if any(file.has_deletions for file in files):
            return None
        passing = _completed(spark, rewrite, rows, before, files)
    done = FileRewrite(removed=(), files=())
    for step in _steps(net, passing):
        now = replace(
            rewrite,
            put=tuple(file.path for file in step.whole),
            gone=tuple(file.path for file in step.gone),
            # All files were written anew by then.
            filled={} if done.files else rewrite.filled,
            deleted_at_us=None if done.files else rewrite.deleted_at_us,
        )
        present = _present(held, done)
        touched = present if now.everywhere else files_with(present, now.keys())
        if any(file.has_deletions for file in touched):
            return None
        done = _both(done, _spliced(spark, now, present, touched, step))
    return replace(done, passing=(*done.passing, *passing))


def _steps(net: NetFiles, completed: Sequence[DataFile]) -> Iterator[NetFiles]:
    """*net* in parts that fit into memory, with the *completed* rows in the place of partial ones."""
    if completed or net.fresh_rows or sum(file.size_bytes for file in net.files) <= _STEP_BYTES:
        yield NetFiles(whole=[*completed, *net.whole], gone=net.gone, fresh_rows=net.fresh_rows)
        return
    for part in _groups_of(net.gone, _STEP_BYTES):
        yield NetFiles(whole=(), gone=part)
    for part in _groups_of(net.whole, _STEP_BYTES):
        yield NetFiles(whole=part)


def _groups_of(files: Sequence[DataFile], limit_bytes: int) -> Iterator[list[DataFile]]:
    """*files* in order, in groups of at least one that have about that size at most."""
    group: list[DataFile] = []
    for file in files:
        if group and sum(each.size_bytes for each in group) + file.size_bytes > limit_bytes:
            yield group
            group = []
        group.append(file)
    if group:
        yield group


def _present(held: Sequence[HeldFile], done: FileRewrite) -> list[HeldFile]:
    gone = set(done.removed)
    news = (
        HeldFile(path=f.path, size_bytes=f.size_bytes, statistics=f.statistics, has_deletions=False) for f in done.files
    )
    return [*(file for file in held if file.path not in gone), *news]


def _both(first: FileRewrite, then: FileRewrite) -> FileRewrite:
    """What *first* and *then* behind it come to: what the first made and the second replaced is no file of the mirror's."""
    replaced = set(then.removed)
    made = {file.path for file in first.files}
    return FileRewrite(
        removed=[*first.removed, *(path for path in then.removed if path not in made)],
        files=[*(file for file in first.files if file.path not in replaced), *then.files],
        passing=[*first.passing, *(file for file in first.files if file.path in replaced)],
    )


def _spliced(
    spark: SparkSession,
    rewrite: CopyOnWrite,
    held: Sequence[HeldFile],
    touched: Sequence[HeldFile],
    net: NetFiles,
) -> FileRewrite:
    put = net.whole
    net_bytes = sum(file.size_bytes for file in (*put, *net.gone))
    loose = _loose(held) if net_bytes <= held_rows.SMALL_BYTES else []
    small = {file.path for file in loose}
    whole = [file for file in touched if file.path not in small]
    answers = _calls(
        spark,
        partial(_spliced_bytes, rewrite),
        _groups(spark, whole, one=rewrite.counts),
        size_bytes=sum(file.size_bytes for file in whole) + net_bytes,
    )
    done = [RewrittenFiles.decoded(answer) for answer in answers]
    met = np.zeros(sum(file.rows for file in (*put, *net.gone)), bool)
    for part in done:
        met |= part.met
    removed = [path for part in done for path in part.removed]
    files = [file for part in done for file in part.files]
    among = {file.path for file in touched}
    joins = [file.path for file in loose if file.path in among or len(loose) > _LOOSE_FILES]
    count = sum(file.rows for file in put)
    if not joins and not met[:count].any():
        files += put
    elif joins or not met[:count].all():
        rest = _calls(spark, partial(_joined_bytes, rewrite, met), [joins], size_bytes=net_bytes)
        for answer in rest:
            last = RewrittenFiles.decoded(answer)
            removed += last.removed
            files += last.files
            met |= last.met
    _check_fresh(rewrite, met, sum(file.rows for file in net.whole), net.fresh_rows)
    if rewrite.counts and not met[count:].all():
        lost = held_rows.whole(net.gone[0].path).slice(int(np.flatnonzero(~met[count:])[0]), 1).to_pylist()
        raise missing_row(", ".join(map(str, lost[0].values() if lost else ())))
    return FileRewrite(removed=removed, files=files)


def _check_fresh(rewrite: CopyOnWrite, met: NDArray[np.bool_], whole: int, fresh: int) -> None:
    """Raises where a held row has the key of one of the last rows to put, which are new."""
    twice = np.flatnonzero(met[whole - fresh : whole])
    if len(twice):
        raise two_rows(rewrite.keys().slice(whole - fresh + int(twice[0]), 1).to_pylist()[0])


def _completed(
    spark: SparkSession, rewrite: CopyOnWrite, rows: pa.Table, before: pa.Table, files: Sequence[HeldFile]
) -> list[DataFile]:
    """Files of the partial *rows*, whose keys were *before*, with the columns that they lack from the mirror's rows."""
    size_bytes = sum(file.size_bytes for file in files)
    answers = _calls(spark, partial(_found_bytes, rewrite, before), _groups(spark, files), size_bytes=size_bytes)
    held = pa.concat_tables(
        [rewrite.schema.empty_table(), *(pa.ipc.open_stream(answer).read_all() for answer in answers)]
    )
    whole = completed(rows, held, rewrite.key, rewrite.schema.names)
    writer = FileWriter(rewrite.directory, rewrite.schema)
    writer.write_table(pa.table(whole.columns, schema=rewrite.schema))
    return writer.close()


def _loose(held: Sequence[HeldFile]) -> list[HeldFile]:
    """The smallest files, as many as are quickly written as one."""
    loose, size_bytes = [], 0
    for file in sorted(held, key=lambda file: file.size_bytes):
        size_bytes += file.size_bytes
        if size_bytes > held_rows.SMALL_BYTES or file.has_deletions:
            break
        loose.append(file)
    return loose


def _groups(spark: SparkSession, files: Sequence[HeldFile], *, one: bool = False) -> list[list[str]]:
    """Paths of *files* for tasks of about the same size."""
    count = 1 if one else min(len(files), spark.sparkContext.defaultParallelism)
    groups: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for file in sorted(files, key=lambda file: -file.size_bytes):
        least = sizes.index(min(sizes))
        groups[least].append(file.path)
        sizes[least] += file.size_bytes
    return [group for group in groups if group]


def _calls(
    spark: SparkSession, work: Callable[[Sequence[str]], bytes], groups: Sequence[Sequence[str]], *, size_bytes: int
) -> list[bytes]:
    """What *work* gives for each of *groups*, all of that size; a little is done here."""
    if size_bytes <= held_rows.SMALL_BYTES:
        return [work(group) for group in groups]
    return run_tasks(spark, [partial(work, group) for group in groups])


def _spliced_bytes(rewrite: CopyOnWrite, paths: Sequence[str]) -> bytes:
    return rewritten(rewrite, paths).encoded()


def _joined_bytes(rewrite: CopyOnWrite, met: NDArray[np.bool_], paths: Sequence[str]) -> bytes:
    return joined(rewrite, paths, met).encoded()


def _found_bytes(rewrite: CopyOnWrite, keys: pa.Table, paths: Sequence[str]) -> bytes:
    rows = found(rewrite, paths, keys)
    body = pa.BufferOutputStream()
    with pa.ipc.new_stream(body, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(body.getvalue())
