"""Files apply a net change: the same rows as a plain model has, and no file that need not be touched."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sinks.delta.rewrite.copy_on_write import CopyOnWrite, RewrittenFiles, joined, rewritten

SCHEMA = pa.schema([("a", pa.string()), ("b", pa.int64()), ("v", pa.int64())])
KEYS = st.tuples(st.sampled_from(["x", "X", "x ", None]), st.sampled_from([1, 2, None]))
Rows = dict[tuple[Any, ...], int]


def _written(path: Path, rows: list[tuple[Any, ...]], group: int = 2) -> str:
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(SCHEMA)]
    pq.write_table(pa.table(columns, schema=SCHEMA), path, row_group_size=group)
    return str(path)


def _read(paths: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for path in paths for row in pq.read_table(path).to_pylist()]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.dictionaries(KEYS, st.integers(0, 3)),
    put=st.dictionaries(KEYS, st.integers(4, 9)),
    gone=st.sets(KEYS),
    cut=st.integers(0, 12),
    loose=st.integers(0, 12),
)
def test_rows_are_put_and_taken_by_key(
    tmp_path: Path, held: Rows, put: Rows, gone: set[Any], cut: int, loose: int
) -> None:
    gone -= put.keys()
    rows = [(*key, value) for key, value in held.items()]
    whole, small = rows[loose:], rows[:loose]
    files = [_written(tmp_path / f"{n}", part) for n, part in enumerate((whole[:cut], whole[cut:]))]
    rewrite = CopyOnWrite(
        directory=str(tmp_path),
        schema=SCHEMA,
        key=("a", "b"),
        put=(_written(tmp_path / "put", [(*key, value) for key, value in put.items()]),),
        gone=(_written(tmp_path / "gone", [(*key, 0) for key in gone]),),
    )
    done = RewrittenFiles.decoded(rewritten(rewrite, files).encoded())
    rest = joined(rewrite, [_written(tmp_path / "small", small)], done.met)

    stays = [path for path in files if path not in done.removed]
    assert all(not (put.keys() | gone) & {row[:2] for row in _read([path])} for path in stays)
    after = _read([*stays, *(file.path for file in (*done.files, *rest.files))])
    expected = {key: value for key, value in {**held, **put}.items() if key not in gone}
    assert sorted(map(repr, after)) == sorted(repr((*key, value)) for key, value in expected.items())


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    held=st.lists(st.tuples(st.sampled_from(["x", None]), st.sampled_from([1, None]), st.just(0)), max_size=12),
    picks=st.lists(st.booleans(), min_size=12, max_size=12),
    cut=st.integers(0, 12),
)
def test_a_row_that_is_there_twice_goes_once(
    tmp_path: Path, held: list[tuple[Any, ...]], picks: list[bool], cut: int
) -> None:
    gone = [row for row, pick in zip(held, picks, strict=False) if pick]
    rewrite = CopyOnWrite(
        directory=str(tmp_path),
        schema=SCHEMA,
        key=("a", "b", "v"),
        put=(_written(tmp_path / "put", [("x", 1, 0)]),),
        gone=(_written(tmp_path / "gone", gone),),
        counts=True,
    )
    done = rewritten(rewrite, [_written(tmp_path / "first", held[:cut])])
    rest = joined(rewrite, [_written(tmp_path / "last", held[cut:])], done.met)

    files = [file.path for file in (*done.files, *rest.files)]
    after = Counter(_read(files if done.removed else [str(tmp_path / "first"), *files]))
    assert Counter(held) - Counter(gone) + Counter([("x", 1, 0)]) == after
    assert rest.met[1:].all()


def test_a_row_that_is_not_there_is_not_met(tmp_path: Path) -> None:
    gone = [("x", 1, 0), ("x", 1, 0), ("y", None, 1)]
    rewrite = CopyOnWrite(
        directory=str(tmp_path),
        schema=SCHEMA,
        key=("a", "b", "v"),
        put=(),
        gone=(_written(tmp_path / "gone", gone),),
        counts=True,
    )
    done = rewritten(rewrite, [_written(tmp_path / "held", [("x", 1, 0), ("z", 1, 0)])])

    assert [True, False, False] == done.met.tolist()
    assert [("z", 1, 0)] == _read(file.path for file in done.files)
    assert np.array_equal(RewrittenFiles.decoded(done.encoded()).met, done.met)
