"""A batch merged into a state by a strategy: the changelog rows that lead from the one to the other, in Arrow."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.folding import key_numbers, rows_by_key
from historian.changelog.merging.strategies import (
    Append,
    ChangelogStream,
    Ledger,
    Snapshot,
    Strategy,
    UpsertStream,
    merged_columns,
)
from historian.changelog.operations import Op
from historian.changelog.row_images import differing, differs, where
from historian.changelog.validation import Profile, check
from historian.errors import HistorianError

__all__ = ["MS", "merge", "refused", "whole_ms"]

MS = pa.timestamp("ms", tz="UTC")
"""Open Data Fabric's type of times."""

_TOLD = 5

_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


def merge(
    strategy: Strategy,
    news: pa.Table,
    former: pa.Table | None = None,
    *,
    first_offset: int = 0,
    system_time: datetime | None = None,
    source_time: datetime | None = None,
) -> pa.Table:
    """The changelog rows by which *former* becomes what *news* says, in the strict ODF form, each key's together.

    Projected behind the changelog so far they give the new state.

    Args:
        strategy: how to read *news*.
        news: the batch; ``op`` where the strategy has it, ``event_time`` (UTC, at most milliseconds, or a date) where
            there is one, and the data columns.
        former: the state, as :func:`historian.changelog.state.project_changelog` gives it; None: nothing is there.
        first_offset: of the first row.
        system_time: of all rows; by default now.
        source_time: event time of rows that have none; by default the system time.

    Raises:
        HistorianError: the batch breaks a rule of the strategy, or its columns do not fit the state's.
    """
    system_time = whole_ms(system_time or datetime.now(timezone.utc))
    news = _normal(news)
    former = None if former is None else _normal(former)
    data = merged_columns(strategy, _types(news), None if former is None else _types(former))
    columns = _event_schema(news, former, data)
    images, state = _aligned(news, columns), _aligned(pa.table({}) if former is None else former, columns)
    for table, what in ((images, "batch"), (state, "state")):
        _check_key(table, getattr(strategy, "key", ()), what)
    if isinstance(strategy, Snapshot | UpsertStream):
        rows = _changes(strategy, news, images, state)
    elif isinstance(strategy, Ledger):
        rows = _unknown(strategy, images, state)
    elif isinstance(strategy, Append):
        rows = _with_ops(images, np.full(images.num_rows, int(Op.APPEND)))
    else:
        rows = _carried(strategy, news, images, state)
    rows = _filled(rows, source_time or system_time)
    if isinstance(strategy, Ledger | Append):
        by = [("event_time", "ascending"), *((name, "ascending") for name in getattr(strategy, "key", ()))]
        rows = rows.take(pc.sort_indices(rows, by))
    changelog = _changelog(rows, first_offset, system_time)
    if isinstance(strategy, ChangelogStream):
        _check_carried(changelog, strategy, state)
    return changelog.set_column(1, "op", changelog.column("op").cast(pa.uint8()))


def whole_ms(time: datetime) -> datetime:
    """*time* cut to milliseconds."""
    return time - timedelta(microseconds=time.microsecond % 1000)


def refused(what: str, strategy: Strategy, found: object, expected: object) -> HistorianError:
    """The error of a batch that breaks a rule of its strategy."""
    return HistorianError(what, where=type(strategy).__name__, expected=expected, found=found)


def _normal(rows: pa.Table) -> pa.Table:
    """*rows* with ``event_time`` in milliseconds, where it is a timestamp, and without dictionaries of values."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_dictionary(field.type):
            rows = rows.set_column(at, field.name, rows.column(at).cast(field.type.value_type))
    at = rows.schema.get_field_index("event_time")
    if at < 0 or pa.types.is_date(rows.schema.field(at).type):
        return rows
    kind = rows.schema.field(at).type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise HistorianError(
            "an event time is a moment or a date", expected="timestamp[ms, tz=UTC] or date", found=kind
        )
    try:
        return rows.set_column(at, "event_time", rows.column(at).cast(MS))
    except pa.ArrowInvalid as error:
        raise HistorianError(
            "an event time is finer than milliseconds", found=str(error), next_step="cut it to milliseconds first"
        ) from error


def _types(rows: pa.Table) -> dict[str, object]:
    return {field.name: field.type for field in rows.schema}


def _event_schema(news: pa.Table, former: pa.Table | None, data: tuple[str, ...]) -> pa.Schema:
    """``event_time`` and the data columns, with their types."""
    types = {**_types(news), **({} if former is None else _types(former))}
    return pa.schema([("event_time", types.get("event_time", MS)), *((name, types[name]) for name in data)])


def _aligned(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [
        rows.column(field.name) if field.name in rows.schema.names else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _check_key(rows: pa.Table, key: tuple[str, ...], what: str) -> None:
    for name in key:
        if rows.column(name).null_count:
            row = where(np.asarray(rows.column(name).is_null()))[0]
            raise HistorianError(f"a key of the {what} is NULL", where=name, found=f"row {row}")


def _changes(strategy: Snapshot | UpsertStream, news: pa.Table, images: pa.Table, state: pa.Table) -> pa.Table:
    """What a snapshot, or upserts, change."""
    key = list(strategy.key)
    ids = key_numbers(pa.concat_tables([state.select(key), images.select(key)]), key)
    count = int(ids.max()) + 1 if len(ids) else 0
    old = _placed(ids[: state.num_rows], count, state, strategy, "state")
    if isinstance(strategy, UpsertStream):
        new = np.full(count, -1)
        new[ids[state.num_rows :]] = np.arange(images.num_rows)  # the last one wins
        gone = (new >= 0) & (_upsert_ops(strategy, news)[new] == Op.RETRACT if images.num_rows else False)
        touched = new >= 0
    else:
        new = _placed(ids[state.num_rows :], count, images, strategy, "batch")
        gone, touched = new < 0, np.ones(count, dtype=bool)
    both = np.flatnonzero((old >= 0) & (new >= 0) & ~gone)
    changed = np.zeros(count, dtype=bool)
    changed[both] = _differ(strategy, state.take(pa.array(old[both])), images.take(pa.array(new[both])))
    taken = touched & gone & (old >= 0)
    added = touched & ~gone & (old < 0)

    order = _by_key(state, images, old, new, key)
    kept = order[(taken | added | changed)[order]]
    source = np.repeat(kept, np.where(changed[kept], 2, 1))
    ops = np.select([added[source], taken[source]], [int(Op.APPEND), int(Op.RETRACT)], int(Op.CORRECT_TO))
    is_from = changed[source] & np.append(source[:-1] == source[1:], False)
    ops[is_from] = int(Op.CORRECT_FROM)
    uses_old = np.isin(ops, (Op.RETRACT, Op.CORRECT_FROM))
    every = pa.concat_tables([state, images])
    return _with_ops(every.take(pa.array(np.where(uses_old, old[source], new[source] + state.num_rows))), ops)


def _placed(ids: _Numbers, count: int, rows: pa.Table, strategy: Strategy, what: str) -> _Numbers:
    """Row number by key number, -1 for none; refuses a key that is there twice."""
    found = np.full(count, -1)
    found[ids] = np.arange(len(ids))
    twice = where(found[ids] != np.arange(len(ids)))
    if twice:
        key = rows.select(list(getattr(strategy, "key", ()))).slice(twice[0], 1).to_pylist()[0]
        raise refused(f"a key is in the {what} twice", strategy, key, "each key once")
    return found


def _upsert_ops(strategy: Strategy, news: pa.Table) -> _Numbers:
    if "op" not in news.schema.names:
        return np.full(news.num_rows, int(Op.APPEND))
    ops: _Numbers = pc.fill_null(news.column("op").cast(pa.int64()), -1).to_numpy()
    others = sorted(set(ops.tolist()) - {int(Op.APPEND), int(Op.RETRACT)})
    if others:
        raise refused("an upsert has another operation", strategy, others, "0 (+A) or 1 (-R)")
    return ops


def _differ(strategy: Snapshot | UpsertStream, old: pa.Table, new: pa.Table) -> Any:
    compared = getattr(strategy, "compare_columns", ()) or [
        name for name in old.schema.names if name not in strategy.key and name != "event_time"
    ]
    time = differs(old.column("event_time"), new.column("event_time")) & np.asarray(new.column("event_time").is_valid())
    return np.any([time, *differing(old, new, [name for name in compared if name != "event_time"]).values()], axis=0)


def _by_key(state: pa.Table, images: pa.Table, old: _Numbers, new: _Numbers, key: list[str]) -> _Numbers:
    """Key numbers in the order of their keys."""
    every = pa.concat_tables([state.select(key), images.select(key)])
    keys = every.take(pa.array(np.where(old >= 0, old, new + state.num_rows)))
    order: _Numbers = pc.sort_indices(keys, [(name, "ascending") for name in key]).to_numpy().astype(np.int64)
    return order


def _unknown(strategy: Ledger, images: pa.Table, state: pa.Table) -> pa.Table:
    """Records whose keys the state does not have."""
    key = list(strategy.key)
    ids = key_numbers(pa.concat_tables([state.select(key), images.select(key)]), key)
    mine = ids[state.num_rows :]
    fresh = np.flatnonzero(~np.isin(mine, ids[: state.num_rows]))
    _, first, back = np.unique(mine[fresh], return_index=True, return_inverse=True)
    again = images.take(pa.array(fresh)), images.take(pa.array(fresh[first[back]]))
    other = where(np.any(list(differing(*again, images.schema.names).values()), axis=0))
    if other:
        found = again[0].select(key).slice(other[0], 1).to_pylist()[0]
        raise refused("a key has two records that differ", strategy, found, "one record a key")
    return _with_ops(images.take(pa.array(np.sort(fresh[first]))), np.full(len(first), int(Op.APPEND)))


def _carried(strategy: ChangelogStream, news: pa.Table, images: pa.Table, state: pa.Table) -> pa.Table:
    """The rows of a changelog; those that take a row back without saying its event time have that row's."""
    if not pa.types.is_integer(news.schema.field("op").type):
        raise refused("operations are codes", strategy, news.schema.field("op").type, "an integer column op")
    ops = news.column("op").cast(pa.int64())
    key = list(strategy.key)
    order, first = rows_by_key(pa.concat_tables([state.select(key), images.select(key)]), key)
    times = pa.concat_tables([state.select(["event_time"]), images.select(["event_time"])]).column(0).combine_chunks()
    numbers = order.to_numpy()
    previous = np.full(len(numbers), -1)
    previous[numbers[1:]] = np.where(first.to_numpy(zero_copy_only=False)[1:], -1, numbers[:-1])
    previous = previous[state.num_rows :]
    takes = np.isin(pc.fill_null(ops, -1).to_numpy(), (Op.RETRACT, Op.CORRECT_FROM)) & (previous >= 0)
    own = images.column("event_time").combine_chunks()
    theirs = times.take(pa.array(previous, mask=~takes))
    filled = pc.coalesce(own, theirs)
    return _with_ops(images.set_column(0, "event_time", filled), ops)


def _check_carried(changelog: pa.Table, strategy: ChangelogStream, state: pa.Table) -> None:
    findings = check(changelog, strategy.key, profile=Profile.ODF, former=state)
    if findings:
        told = "; ".join(str(finding) for finding in findings[:_TOLD])
        raise refused("a batch is no changelog of the state", strategy, told, "rows that go on where the state ends")


def _with_ops(images: pa.Table, ops: Any) -> pa.Table:
    codes = ops.combine_chunks() if isinstance(ops, pa.ChunkedArray) else pa.array(ops)
    return images.add_column(0, "op", codes.cast(pa.int32()))


def _filled(rows: pa.Table, source_time: datetime) -> pa.Table:
    """*rows* with an event time in each that is added."""
    kind = rows.schema.field("event_time").type
    time = pa.scalar(source_time.astimezone(timezone.utc), MS).cast(kind, safe=False)
    return rows.set_column(1, "event_time", rows.column("event_time").fill_null(time))


def _changelog(rows: pa.Table, first_offset: int, system_time: datetime) -> pa.Table:
    count = rows.num_rows
    offsets = pa.array(np.arange(first_offset, first_offset + count))
    system = pa.repeat(pa.scalar(system_time, MS), count)
    names = ["offset", "op", "system_time", *rows.schema.names[1:]]
    return pa.table([offsets, rows.column("op"), system, *rows.columns[1:]], names=names)
