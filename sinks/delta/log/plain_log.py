"""Files of a Delta table's log, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from historian.errors import SinkError

__all__ = ["LOG", "actions", "whole_log"]

LOG = "_delta_log"
"""The directory of a table in which its log stands."""


def actions(body: bytes) -> Iterator[dict[str, Any]]:
    """The actions of a commit. Lines of bytes: those of a text end at characters too that stand inside strings of JSON."""
    for line in body.splitlines():
        if line.strip():
            yield json.loads(line)


@contextmanager
def whole_log(path: str) -> Iterator[None]:
    """Errors of damaged files inside as :class:`SinkError`."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, pa.ArrowException) as error:
        raise SinkError(
            "the files of a Delta table cannot be read",
            where=path,
            found=f"{type(error).__name__}: {error}",
            next_step="restore what is damaged, or rebuild the table with `historian replay`",
        ) from error
