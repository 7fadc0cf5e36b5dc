"""Checks notes against the server that they were taken from, without any reader of ours."""

from __future__ import annotations

from collections import Counter
from typing import Any

from workload.notes import NotedChange, Recorded, Row, key_values, walk_lineages

__all__ = ["assert_notes_fold_to_final"]

Key = tuple[Any, ...]


def assert_notes_fold_to_final(recorded: Recorded) -> None:
    """Fails unless the noted changes, folded, are the rows that the server holds at the end.

    What a DDL makes of values is not modelled: a table's keys are compared all the way, whole rows since the last DDL.
    """
    keys: dict[int, Counter[Key]] = {}
    written: dict[int, dict[Key, Row]] = {}
    before: dict[Any, int] = {}
    for transaction, after in walk_lineages(recorded.transactions):
        if transaction.ddl is not None:
            for change in transaction.ddl.vanished:
                _fold(keys, written, before[change.table], change)
            written.clear()
        for change in transaction.changes:
            _fold(keys, written, after[change.table], change)
        before = after
    for name, final in recorded.final.items():
        held = Counter(key_values(row, final.key) for row in final.rows)
        folded = +keys.get(final.lineage, Counter())
        if held != folded:
            raise AssertionError(f"{name}: only held {held - folded}, only noted {folded - held}")
        rows = {key_values(row, final.key): row for row in final.rows}
        for key, row in written.get(final.lineage, {}).items():
            if rows.get(key) != row:
                raise AssertionError(f"{name} {key}: noted {row}, held {rows.get(key)}")


def _fold(keys: dict[int, Counter[Key]], written: dict[int, dict[Key, Row]], lineage: int, change: NotedChange) -> None:
    counted, last = keys.setdefault(lineage, Counter()), written.setdefault(lineage, {})
    if change.before is not None:
        counted[key_values(change.before, change.key)] -= 1
        last.pop(key_values(change.before, change.key), None)
    if change.after is not None:
        counted[key_values(change.after, change.key)] += 1
        if change.key:
            last[key_values(change.after, change.key)] = change.after
