"""Rows of a lost store that are read again, where the server refuses them."""

from __future__ import annotations

import tempfile
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.backfill.spool import Spool
from connectors.config import ServerSource
from connectors.config.values import ServerIds
from connectors.pipeline.source_rows import SourceRows
from historian.errors import SourceError


def test_rows_that_cannot_be_read_again_leave_no_spool_open(monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Spool] = []
    tracker: Any = SimpleNamespace(store=SimpleNamespace(copied_chunks=lambda number: []))  # noqa: ARG005 it holds none
    plan: Any = SimpleNamespace(number=3, tables=(SimpleNamespace(copy=SimpleNamespace(rows=5)),))
    source = ServerSource(flavor="mysql", host="localhost", user="root", server_ids=ServerIds(first=1, last=1))

    def refused(_tracker: object, _address: object, _plan: object, spool: Spool) -> None:
        spool._file = tempfile.TemporaryFile()  # noqa: SIM115 the spool closes it
        filled.append(spool)
        raise SourceError("the server refuses a SELECT")

    monkeypatch.setattr("connectors.pipeline.source_rows.copy_again", refused)

    with pytest.raises(SourceError, match="refuses"):
        list(SourceRows(source, tracker, dict, by_ranges=False).copied(plan))

    assert [True] == [spool._file is not None and spool._file.closed for spool in filled]
