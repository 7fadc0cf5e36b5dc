"""A batch merged into a state by a strategy, as DataFrames; see :mod:`historian.changelog.merging.batches`, which does it in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
from pyspark.sql.types import DataType, DateType, IntegralType, TimestampType

from historian.changelog.merging.batches import refused, whole_ms
from historian.changelog.merging.strategies import (
    Append,
    ChangelogStream,
    Ledger,
    Strategy,
    UpsertStream,
    merged_columns,
)
from historian.changelog.operations import Op
from historian.changelog.validation import Profile
from historian.errors import HistorianError
from pyspark_historian.columns import at, mapped, numbered, operation, refuse
from pyspark_historian.validation import check, findings_of

__all__ = ["merge"]

_BUCKETS = 4096
_BUCKET_BITS = 16
_BUCKET_US_BITS = 32  # a bit more than an hour
_SHOWN = 5
_OLD, _NEW = 0, 1


def merge(
    strategy: Strategy,
    news: DataFrame,
    former: DataFrame | None = None,
    *,
    order: str | None = None,
    first_offset: int = 0,
    system_time: datetime | None = None,
    source_time: datetime | None = None,
) -> DataFrame:
    """The changelog rows by which *former* becomes what *news* says, in the strict ODF form, each key's together.

    One shuffle by key and one by offset. What breaks a rule of the strategy stops the query; only a changelog stream is
    checked right here, by a job of its own. *news* and *former* are evaluated twice, and must come out the same.

    Args:
        strategy: how to read *news*.
        news: the batch; ``op`` where the strategy has it, ``event_time`` where there is one, and the data columns.
        former: the state, as :func:`pyspark_historian.state.project_changelog` gives it; None: nothing is there.
        order: the column of *news* that says which record comes later, each value once; it is no data. Upsert streams
            need it, and changelog streams as a whole number.
        first_offset: of the first row.
        system_time: of all rows; by default now.
        source_time: event time of rows that have none; by default the system time.

    Raises:
        HistorianError: columns do not fit, or a changelog stream does not go on where the state ends.
    """
    system_time = whole_ms(system_time or datetime.now(timezone.utc))
    by = _order(strategy, news, order)
    batch = news if order is None else news.drop(order)
    data = merged_columns(strategy, _types(batch), None if former is None else _types(former))
    kind = _event_type(batch, former)
    fallback = _time(source_time or system_time, kind)
    names = ("event_time", *data)
    key = tuple(getattr(strategy, "key", ()))

    no_order = F.lit(None).cast("long" if order is None else news.schema[order].dataType)
    new = _side(
        news, _aligned(news, former, names, kind), key, _NEW, no_order if by is None else by, _operation(strategy, news)
    )
    old = None
    if former is not None:
        old = _side(former, _aligned(former, news, names, kind), key, _OLD, no_order, operation(Op.APPEND))
    if isinstance(strategy, ChangelogStream):
        rows = _carried(new if old is None else new.unionByName(old), fallback)
        rows = numbered(rows, F.shiftright("__order", _BUCKET_BITS), [F.col("__order")], first_offset)
    elif isinstance(strategy, Append):
        rows = _by_time(
            new.withColumn("__op", operation(Op.APPEND)), fallback, F.xxhash64("__image"), kind, first_offset
        )
    elif isinstance(strategy, Ledger):
        changes = _changes(new.distinct() if old is None else new.distinct().unionByName(old), _of_ledger())
        rows = _by_time(changes, fallback, F.col("__key"), kind, first_offset)
    else:
        compared = [
            name for name in getattr(strategy, "compare_columns", ()) or data if name not in (*key, "event_time")
        ]
        of = _of_upserts if isinstance(strategy, UpsertStream) else _of_snapshot
        changes = _changes(new if old is None else new.unionByName(old), of(compared))
        bucket = F.pmod(F.xxhash64("__key"), F.lit(_BUCKETS))
        rows = numbered(changes, bucket, [F.col("__key"), F.col("__at")], first_offset)
    changelog = rows.select(
        "offset",
        F.col("__op").alias("op"),
        _time(system_time, TimestampType()).alias("system_time"),
        F.coalesce(F.col("__image.event_time"), fallback).alias("event_time"),
        *(F.col("__image")[name].alias(name) for name in data),
    )
    if isinstance(strategy, ChangelogStream):
        _check(strategy, changelog, former)
    return changelog


def _order(strategy: Strategy, news: DataFrame, order: str | None) -> Column | None:
    wanted = isinstance(strategy, UpsertStream | ChangelogStream)
    if wanted != (order is not None) or (order is not None and order not in news.columns):
        expected = "the name of a column that says which record comes later" if wanted else "no order"
        raise refused("a strategy and an order that do not fit", strategy, order, expected)
    if order is None:
        return None
    if isinstance(strategy, ChangelogStream) and not isinstance(news.schema[order].dataType, IntegralType):
        raise refused("a changelog's order is a whole number", strategy, news.schema[order].dataType, "long")
    return F.coalesce(at(order), refuse("a record has no order", F.lit(order)).cast(news.schema[order].dataType))


def _operation(strategy: Strategy, news: DataFrame) -> Column:
    if isinstance(strategy, ChangelogStream):
        return F.col("op").cast("int")
    if isinstance(strategy, UpsertStream) and "op" in news.columns:
        codes = {int(op): operation(op) for op in (Op.APPEND, Op.RETRACT)}
        return mapped(F.col("op"), codes, "an upsert has another operation: expected 0 (+A) or 1 (-R)")
    return operation(Op.APPEND)


def _types(rows: DataFrame) -> dict[str, object]:
    return {field.name: field.dataType.simpleString() for field in rows.schema}


def _event_type(batch: DataFrame, former: DataFrame | None) -> DataType:
    for rows in (batch, former):
        if rows is not None and "event_time" in rows.columns:
            kind = rows.schema["event_time"].dataType
            if not isinstance(kind, TimestampType | DateType):
                raise HistorianError("an event time is a moment or a date", expected="timestamp or date", found=kind)
            return kind
    return TimestampType()


def _time(time: datetime, kind: DataType) -> Column:
    """A literal that does not pass by the session's time zone."""
    if isinstance(kind, DateType):
        return F.lit(time.astimezone(timezone.utc).date())
    since = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return F.timestamp_micros(F.lit((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds))


def _aligned(rows: DataFrame, other: DataFrame | None, names: Sequence[str], kind: DataType) -> Column:
    """The columns *names* as one struct, NULL where *rows* have none of the *other*'s."""
    values = []
    for name in names:
        if name not in rows.columns:
            missing = kind if name == "event_time" or other is None else other.schema[name].dataType
            values.append(F.lit(None).cast(missing).alias(name))
        elif name == "event_time" and isinstance(kind, TimestampType):
            finer = refuse("an event time is finer than milliseconds: cut it first", at(name)).cast(kind)
            whole = F.date_trunc("MILLISECOND", at(name))
            values.append(F.when(whole != at(name), finer).otherwise(at(name)).alias(name))
        else:
            values.append(at(name).alias(name))
    return F.struct(*values)


def _side(rows: DataFrame, images: Column, key: tuple[str, ...], side: int, order: Column, op: Column) -> DataFrame:
    keys = F.struct(*(at(name) for name in key)) if key else F.lit(None).cast("string")
    for name in key:
        keys = F.when(at(name).isNull(), refuse(f"a key of the {_SIDES[side]} is NULL", F.lit(name))).otherwise(keys)
    return rows.select(
        keys.alias("__key"),
        F.lit(side).alias("__side"),
        order.alias("__order"),
        op.alias("__op"),
        images.alias("__image"),
    )


_SIDES = ("state", "batch")


def _changes(both: DataFrame, changes: Column) -> DataFrame:
    """The *changes* of each key, which see how often it is in the state and the batch, and its rows there."""
    is_new = F.col("__side") == _NEW
    record = F.struct("__op", "__image")
    by_key = both.groupBy("__key").agg(
        F.count_if(~is_new).alias("__olds"),
        F.count_if(is_new).alias("__news"),
        F.first(F.when(~is_new, F.col("__image")), ignorenulls=True).alias("__old"),
        F.first(F.when(is_new, F.col("__image")), ignorenulls=True).alias("__new"),
        F.max_by(F.when(is_new, record), F.when(is_new, F.col("__order"))).alias("__last"),
    )
    twice = refuse("a key is in the state twice: expected each key once", F.to_json("__key"))
    found = by_key.select(
        "__key", F.posexplode(F.when(F.col("__olds") > 1, twice).otherwise(changes)).alias("__at", "__change")
    )
    return found.select("__key", "__at", F.col("__change.op").alias("__op"), F.col("__change.image").alias("__image"))


def _change(op: Op, row: Column) -> Column:
    return F.struct(operation(op).alias("op"), row.alias("image"))


def _of_snapshot(compared: Sequence[str]) -> Column:
    old, new = F.col("__old"), F.col("__new")
    twice = refuse("a key is in the batch twice: expected each key once", F.to_json("__key"))
    return (
        F.when(F.col("__news") > 1, twice)
        .when(old.isNull(), F.array(_change(Op.APPEND, new)))
        .when(new.isNull(), F.array(_change(Op.RETRACT, old)))
        .when(_differ(old, new, compared), F.array(_change(Op.CORRECT_FROM, old), _change(Op.CORRECT_TO, new)))
    )


def _of_upserts(compared: Sequence[str]) -> Column:
    old, new = F.col("__old"), F.col("__last.__image")
    deletes = F.col("__last.__op") == int(Op.RETRACT)
    updates = F.array(_change(Op.CORRECT_FROM, old), _change(Op.CORRECT_TO, new))
    return (
        F.when(deletes & old.isNotNull(), F.array(_change(Op.RETRACT, old)))
        .when(~deletes & old.isNull(), F.array(_change(Op.APPEND, new)))
        .when(~deletes & _differ(old, new, compared), updates)
    )


def _of_ledger() -> Column:
    differ = refuse("a key has two records that differ: expected one record a key", F.to_json("__key"))
    added = F.when(F.col("__news") > 1, differ).otherwise(F.array(_change(Op.APPEND, F.col("__new"))))
    return F.when(F.col("__olds") == 0, added)


def _differ(old: Column, new: Column, names: Sequence[str]) -> Column:
    """Whether two rows of a key differ; one without event time does not by that."""
    differ = new["event_time"].isNotNull() & ~old["event_time"].eqNullSafe(new["event_time"])
    for name in names:
        differ = differ | ~old[name].eqNullSafe(new[name])
    return differ


def _by_time(rows: DataFrame, fallback: Column, then: Column, kind: DataType, first_offset: int) -> DataFrame:
    """*rows* numbered by their event time."""
    time = F.coalesce(F.col("__image.event_time"), fallback)
    bucket = F.unix_date(time) if isinstance(kind, DateType) else F.shiftright(F.unix_micros(time), _BUCKET_US_BITS)
    return numbered(rows, bucket, [time, then], first_offset)


def _carried(both: DataFrame, fallback: Column) -> DataFrame:
    """The rows of a changelog; those that take a row back without saying its event time have that row's."""
    along = Window.partitionBy("__key").orderBy("__order")
    time = F.col("__image.event_time")
    takes = F.col("__op").isin(int(Op.RETRACT), int(Op.CORRECT_FROM))
    before = F.lag(F.coalesce(time, fallback)).over(along)
    filled = F.coalesce(time, F.when(takes, before), fallback)
    found = both.withColumn("__image", F.col("__image").withField("event_time", filled))
    return found.where(F.col("__side") == _NEW)


def _check(strategy: ChangelogStream, changelog: DataFrame, former: DataFrame | None) -> None:
    state = changelog.sparkSession.createDataFrame([], changelog.schema) if former is None else former
    found = findings_of(check(changelog, strategy.key, profile=Profile.ODF, former=state), _SHOWN)
    if found:
        shown = "; ".join(map(str, found))
        raise refused("a batch is no changelog of the state", strategy, shown, "rows that go on where the state ends")
