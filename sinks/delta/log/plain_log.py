"""Files of a Delta table's log, read without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from historian.errors import SinkError

__all__ = ["LOG", "actions", "checkpoint_in", "commits_in", "whole_log"]

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


def commits_in(names: Sequence[str]) -> dict[int, str]:
    """Version to the name of its commit."""
    return {
        int(name[:20]): name for name in names if name.endswith(".json") and name[:20].isdigit() and len(name) == 25
    }


def checkpoint_in(names: Sequence[str]) -> tuple[int, list[str]] | None:
    """The newest checkpoint that is whole: its version, and its files."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in names:
        if ".checkpoint." not in name or not name.endswith(".parquet") or not name[:20].isdigit():
            continue
        middle = name.split(".")[2:-1]
        if middle and not (len(middle) == 2 and all(each.isdigit() for each in middle)):
            continue  # of the second kind, whose files stand elsewhere
        of = int(middle[1]) if middle else 1
        found.setdefault((int(name[:20]), of), []).append(name)
    whole = [(version, sorted(parts)) for (version, of), parts in found.items() if len(parts) == of]
    return max(whole, default=None)
