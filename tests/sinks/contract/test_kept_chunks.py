"""What a worker keeps of decoded chunks is the same to whoever reads it, and is gone with the next plan."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from historian.changelog.chunks import Chunk
from sinks.contract import kept_chunks
from sinks.contract.kept_chunks import Keeper, KeptChunks

ROWS = pa.record_batch({"h1": pa.array([1, None, 3]), "h2": pa.array(["a", "b", None])}).replace_schema_metadata(
    {"nulled": '{"h1": 1}'}
)
CHUNK = Chunk(
    table_id=1,
    version=2,
    segment=0,
    sequence=7,
    file="binlog.000001",
    first_position="a:1",
    last_position="a:2",
    sources=("a",),
    rows=ROWS,
)
CHUNKS = [CHUNK, replace(CHUNK, sequence=8, rows=ROWS.slice(1)), replace(CHUNK, sequence=9, rows=ROWS.slice(0, 0))]


@pytest.fixture(autouse=True)
def _no_files() -> Iterator[None]:
    yield
    for file in kept_chunks._FILES.values():
        file.close()
    kept_chunks._FILES.clear()


def _kept(owner: str = "shop", token: bytes = b"1" * 16) -> KeptChunks | None:
    keeper = Keeper(owner, token)
    for chunk in CHUNKS:
        keeper.add(chunk)
    return keeper.kept()


def _opened(kept: KeptChunks | None) -> list[Chunk] | None:
    assert kept is not None
    found = kept.opened()
    return None if found is None else list(found)


def test_chunks_come_back_as_they_were_with_metadata_of_their_rows() -> None:
    first, second = _kept(), _kept()

    assert [CHUNKS, CHUNKS] == [_opened(first), _opened(second)]
    assert [ROWS.schema.metadata] * 3 == [chunk.rows.schema.metadata for chunk in _opened(first) or ()]


def test_another_process_of_the_same_machine_reads_them() -> None:
    script = "import pickle, sys; print(sum(c.rows.num_rows for c in pickle.load(sys.stdin.buffer).opened()))"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(_kept()), capture_output=True, check=True)

    assert "5" == done.stdout.decode().strip()


def test_a_next_plan_of_the_same_owner_ends_them_and_another_s_does_not() -> None:
    kept = _kept()
    _kept("other", b"2" * 16)
    assert CHUNKS == _opened(kept)
    [read, *_] = _opened(kept) or ()

    _kept(token=b"3" * 16)

    assert _opened(kept) is None
    assert ROWS.equals(read.rows), "what is being read goes on"


def test_a_process_that_is_gone_or_another_one_has_none() -> None:
    kept = _kept()
    assert kept is not None
    reads, writes = os.pipe()
    os.close(writes)
    assert _opened(replace(kept, descriptor=reads)) is None
    os.close(reads)
    with tempfile.TemporaryFile() as empty:
        assert _opened(replace(kept, descriptor=empty.fileno())) is None
    assert _opened(replace(kept, token=b"4" * 16)) is None
    assert _opened(replace(kept, process=1 << 22)) is None


def test_what_has_no_place_is_not_kept_and_other_parts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = _kept()
    monkeypatch.setattr(kept_chunks, "KEPT_BYTES", 1)

    assert _kept() is None
    assert CHUNKS == _opened(kept)


def test_of_many_owners_the_oldest_gives_place_and_all_together_keep_no_more_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = _kept()
    alone = kept_chunks._FILES["shop"].size
    monkeypatch.setattr(kept_chunks, "KEPT_BYTES", 3 * alone)

    for owner in ("second", "third", "fourth"):
        assert CHUNKS == _opened(_kept(owner, owner.encode().ljust(16)))
        assert sum(file.size for file in kept_chunks._FILES.values()) <= 3 * alone

    assert _opened(kept) is None


def test_a_write_that_ends_half_way_spoils_no_chunk_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: int) -> None:
        raise MemoryError

    keeper = Keeper("shop", b"1" * 16)
    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", fails)
        with pytest.raises(MemoryError):
            keeper.add(CHUNK)

    assert _kept() is None
