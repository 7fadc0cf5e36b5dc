"""Versions of a table that were met along a walk, and which of them rows from behind a dropped column are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from connectors.tracking.topics.edits import fits
from connectors.tracking.topics.told import key_names

if TYPE_CHECKING:
    from connectors.readers.base import SchemaMet
    from historian.schema.snapshots import Snapshot

__all__ = ["KnownVersion", "behind_known", "by_name"]


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """A version that was met: its schema, and when and where the source changed a row under it first; of a statement, whether the source's log places it."""

    number: int
    snapshot: Snapshot
    event_time_us: int
    by_statement: bool = False
    has_place: bool = False
    transaction: tuple[int, int] | None = None

    def is_before(self, met: SchemaMet) -> bool:
        """Whether *met* is from behind its first row for sure: by the source's log where both tell their place in it, else by time.

        Servers may date a change by when its statement began, which may have waited for others.
        """
        if self.transaction is None or met.transaction is None:
            return self.event_time_us < met.event_time_us
        (server, number), (met_server, met_number) = self.transaction, met.transaction
        return server == met_server and number < met_number


def behind_known(known: Sequence[KnownVersion], at: int, met: SchemaMet) -> int | None:
    """The version of *met* where it is from behind one that it does not fit, which came behind the version *at*; 0: a new one. None: it is not so.

    A column that is dropped and added again is another column, though the partition of *met* may have had no row in between.
    """
    since = [each for each in known if each.number > at and each.is_before(met)]
    if not since or any(each.by_statement for each in known):
        return None
    fitting = [each.number for each in since if fits(each.snapshot, met)]
    last = since[-1]
    if last.number not in fitting and met.is_of_its_time and _adds_alone(last.snapshot, met):
        later = [each for each in known if each.number > last.number]
        return next((each.number for each in later if fits(each.snapshot, met)), None if later else 0)
    return fitting[-1] if fitting and fitting[-1] > since[0].number else None


def _adds_alone(before: Snapshot, met: SchemaMet) -> bool:
    """Whether *met* has all of *before*, and columns beside: whatever clocks say, no value of a column is left out by it."""
    told = {(column.name, column.type, column.nullable) for column in met.columns}
    held = {(column.name, column.type, column.nullable) for column in before.columns}
    return held < told and met.key == key_names(before)


def by_name(met: SchemaMet, known: Sequence[KnownVersion], last: Snapshot) -> Snapshot:
    """*last* with the columns of *met* under the ids that columns of their names had by then, else last; others have none that anyone reads."""
    by_then = [each for each in known if each.event_time_us <= met.event_time_us]
    ids = {column.name: column.id for each in (*known, *by_then) for column in each.snapshot.columns}
    columns = tuple(replace(each, id=ids[each.name]) for each in met.columns if each.name in ids)
    if met.key is None:
        held = {column.id for column in columns}
        return replace(last, columns=columns, primary_key=tuple(each for each in last.primary_key if each in held))
    return replace(last, columns=columns, primary_key=tuple(ids.get(name, 0) for name in met.key))
