"""A whole changelog in Arrow, checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from historian.changelog.folding import rows_by_key
from historian.changelog.missing_columns import missing_lists
from historian.changelog.operations import Op
from historian.changelog.validation.columns import check_columns
from historian.changelog.validation.findings import Finding, Profile, Rule, in_order
from historian.changelog.validation.images import check_bag, check_keys, same_as_before
from historian.changelog.validation.sequence import check_offsets, check_values, operations

__all__ = ["check"]


def check(
    rows: pa.Table,
    key: Sequence[str] = (),
    *,
    profile: Profile = Profile.BINLOG,
    former: pa.Table | None = None,
    first_offset: int | None = None,
) -> tuple[Finding, ...]:
    """All that is wrong in a changelog, by offset; () for one that keeps the rules of *profile*.

    Codes, NULLs in system columns and keys, offsets that do not ascend by one, -C and +C that do not pair. Keys added
    twice or taken back without being there, and rows taken back with other values than they have. A row of a key that
    has none yet in the changelog is judged only where all is known: in the ODF profile, and with *former*.

    Args:
        rows: the changelog in order.
        key: names of the key's columns; without them whole rows are counted.
        profile: that it is held to.
        former: the rows of the data columns (in the ODF profile with ``event_time``) before the first change, each key
            once, under the schema of the first change or with ``schema_version``. None: nothing is known of them, in the
            ODF profile that there are none.
        first_offset: that it must begin with; None: any.
    """
    found = check_columns(rows.schema, profile)
    names = rows.schema.names
    if len(set(names)) < len(names) or any(name not in names for name in profile.system_columns):
        return found
    at = rows.schema.get_field_index("offset")
    rows = rows.set_column(at, "offset", rows.column("offset").cast(pa.int64()))
    missing = [name for name in key if name not in names]
    if missing:
        return (
            *found,
            Finding(rule=Rule.COLUMNS, offset=None, expected=f"key {', '.join(key)}", found="no such column"),
        )
    return in_order([*found, *_findings(rows, tuple(key), profile, former, first_offset)])


def _with_former(rows: pa.Table, former: pa.Table) -> pa.Table:
    """*rows* behind +A rows of *former*, which have no offset."""
    count = former.num_rows
    columns = [
        pa.repeat(pa.scalar(int(Op.APPEND), field.type), count)
        if field.name == "op"
        else former.column(field.name).cast(field.type)
        if field.name in former.schema.names and field.name != "offset"
        else pa.nulls(count, field.type)
        for field in rows.schema
    ]
    return pa.concat_tables([pa.table(columns, names=rows.schema.names), rows], promote_options="permissive")


def _findings(
    rows: pa.Table, key: tuple[str, ...], profile: Profile, former: pa.Table | None, first: int | None
) -> Iterator[Finding]:
    yield from check_values(rows, key, profile)
    ordered = rows.filter(rows.column("offset").is_valid())
    ops = operations(ordered)
    yield from check_offsets(ordered.column("offset").to_numpy(), ops, first=first, pairs=not key)
    lists = missing_lists(rows.schema)
    data = tuple(name for name in profile.data(rows.schema.names) if name not in lists)
    complete = former is not None or profile is Profile.ODF
    whole = ordered if former is None else _with_former(ordered, former)
    if key:
        valid = np.all([np.asarray(whole.column(name).is_valid()) for name in key], axis=0)
        whole = whole.filter(pa.array(valid))
        order, first_of_key = rows_by_key(whole, key)
        same = ~np.asarray(first_of_key)
        yield from check_keys(whole.take(order), same, data, profile, complete=complete)
    elif complete:
        order, _ = rows_by_key(whole, data)
        by_row = whole.take(order)
        yield from check_bag(by_row, same_as_before(by_row, data))[0]
