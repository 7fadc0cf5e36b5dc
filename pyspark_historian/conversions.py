"""A changelog DataFrame in the forms of other systems, and back: expressions and windows alone, no row meets Python.

The functions are those of :mod:`historian.changelog.conversions`, which do the same to Arrow tables. A DataFrame has no order, so
``offset`` says it; neighbours are rows whose offsets follow each other. What is wrong stops the query that meets it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

from historian.changelog.conversions import AFTER, BEFORE, EVENT, ROW_KIND
from historian.changelog.operations import POSITION_COLUMNS, Op, data_columns
from historian.errors import HistorianError
from pyspark_historian.columns import at, image, mapped, numbered, operation, refuse

__all__ = [
    "from_append_stream",
    "from_retract_stream",
    "from_row_kinds",
    "from_single_events",
    "from_upsert_stream",
    "to_append_stream",
    "to_odf",
    "to_retract_stream",
    "to_row_kinds",
    "to_single_events",
    "to_upsert_stream",
]

_APPEND, _RETRACT, _FROM, _TO = (int(op) for op in Op)
_ROW_KINDS = {_APPEND: "+I", _RETRACT: "-D", _FROM: "-U", _TO: "+U"}
_NO_OPERATION = "not an operation: expected 0 (+A), 1 (-R), 2 (-C) or 3 (+C)"
_BUCKET_BITS = 16


def to_retract_stream(rows: DataFrame) -> DataFrame:
    """Every change as -R and +A: -C becomes -R, +C becomes +A."""
    return _with_op(rows, {_APPEND: Op.APPEND, _RETRACT: Op.RETRACT, _FROM: Op.RETRACT, _TO: Op.APPEND})


def from_retract_stream(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """A retract stream with each -R that a +A of the same key follows directly as -C and +C. Shuffles by key.

    A row deleted and inserted again with nothing in between comes back as a correction.
    """
    along = Window.partitionBy(*map(at, key)).orderBy("offset")
    op, offset = F.col("op"), F.col("offset")
    leads = (op == _RETRACT) & (F.lead("op").over(along) == _APPEND) & (F.lead("offset").over(along) == offset + 1)
    follows = (op == _APPEND) & (F.lag("op").over(along) == _RETRACT) & (F.lag("offset").over(along) == offset - 1)
    known = mapped(
        op, {_APPEND: operation(Op.APPEND), _RETRACT: operation(Op.RETRACT)}, "a retract stream has +A and -R"
    )
    corrected = F.when(leads, operation(Op.CORRECT_FROM)).when(follows, operation(Op.CORRECT_TO)).otherwise(known)
    return rows.withColumn("__op", corrected).withColumn("op", F.col("__op")).drop("__op")


def to_upsert_stream(rows: DataFrame) -> DataFrame:
    """Only the last row of each change: -C goes, +C becomes +A; -R deletes its key. Offsets have gaps."""
    kept = rows.where(F.coalesce(F.col("op") != _FROM, F.lit(True)))
    return _with_op(kept, {_APPEND: Op.APPEND, _RETRACT: Op.RETRACT, _TO: Op.APPEND})


def from_upsert_stream(
    rows: DataFrame, key: Sequence[str], former: DataFrame | None = None, *, first_offset: int = 0
) -> DataFrame:
    """The changelog of upserts (+A) and deletes (-R, of which only the key counts), before images filled in.

    A delete of a key that is not there says nothing and goes. Shuffles by key, and by offset, which is given anew.

    Args:
        rows: the upsert stream, in the order of ``offset``.
        key: names of the key's columns.
        former: the rows of the data columns that were there before, each key once; None: there were none.
        first_offset: of the changelog's first row.
    """
    data = data_columns(rows.columns)
    system = [name for name in rows.columns if name not in (*data, "op")]
    keys = F.struct(*(at(name) for name in key)).alias("__key")
    own, theirs = F.lit(True).alias("__own"), F.lit(False).alias("__own")
    upserts = rows.select(keys, own, *map(at, system), F.col("op").alias("__op"), image(data).alias("__image"))
    if former is not None:
        added = former.select(keys, theirs, operation(Op.APPEND).alias("__op"), image(data).alias("__image"))
        upserts = upserts.unionByName(added, allowMissingColumns=True)
    along = Window.partitionBy("__key").orderBy("__own", "offset")
    deletes = mapped(F.col("__op"), {_APPEND: F.lit(False), _RETRACT: F.lit(True)}, "an upsert stream has +A and -R")
    held = upserts.withColumns(
        {
            "__deletes": deletes,
            "__there": F.coalesce(F.lag("__op").over(along) == _APPEND, F.lit(False)),
            "__former": F.lag("__image").over(along),
        }
    )
    there, now, before = F.col("__there"), F.col("__image"), F.col("__former")
    changes = (
        F.when(F.col("__deletes") & there, F.array(_change(Op.RETRACT, before)))
        .when(~F.col("__deletes") & there, F.array(_change(Op.CORRECT_FROM, before), _change(Op.CORRECT_TO, now)))
        .when(~F.col("__deletes"), F.array(_change(Op.APPEND, now)))
    )
    every = held.where("__own").select(*map(at, system), F.posexplode(changes).alias("__at", "__change"))
    every = every.withColumnRenamed("offset", "__order")
    bucket = F.shiftright("__order", _BUCKET_BITS)
    ordered = numbered(every, bucket, [F.col("__order"), F.col("__at")], first_offset)
    values = {name: at(name) for name in ("offset", *(name for name in system if name != "offset"))}
    values |= {"op": F.col("__change.op"), **{name: F.col("__change.image")[name] for name in data}}
    return ordered.select(*(values[name].alias(name) for name in rows.columns))


def to_single_events(rows: DataFrame) -> DataFrame:
    """One row an event: ``event`` (create, update, delete), the system columns, and the data as ``before`` and ``after``.

    An update has the offset of its +C. Shuffles by offset. A -C without its +C directly behind it stops the query.
    """
    data = data_columns(rows.columns)
    system = [name for name in rows.columns if name not in (*data, "op")]
    op, offset = F.col("op"), F.col("offset")
    is_before, is_last = op.isin(_RETRACT, _FROM), op != _FROM
    known = mapped(op, {code: F.lit(1 << code) for code in _ROW_KINDS}, _NO_OPERATION)
    pairs = rows.groupBy(F.when(op == _FROM, offset + 1).otherwise(offset).alias("__pair")).agg(
        F.count(F.lit(1)).alias("__rows"),
        F.sum(known).alias("__ops"),
        F.first(F.when(is_last, F.struct(*map(at, system))), ignorenulls=True).alias("__system"),
        F.first(F.when(is_before, image(data)), ignorenulls=True).alias(BEFORE),
        F.first(F.when(~is_before, image(data)), ignorenulls=True).alias(AFTER),
    )
    count, ops = F.col("__rows"), F.col("__ops")
    event = (
        F.when((count == 1) & (ops == 1 << _APPEND), "create")
        .when((count == 1) & (ops == 1 << _RETRACT), "delete")
        .when((count == 2) & (ops == (1 << _FROM) + (1 << _TO)), "update")
        .otherwise(refuse("a changelog's -C and +C do not pair, or an offset is there twice", F.col("__pair")))
    )
    return pairs.select(event.alias(EVENT), *(F.col("__system")[name].alias(name) for name in system), BEFORE, AFTER)


def from_single_events(events: DataFrame) -> DataFrame:
    """The changelog that :func:`to_single_events` came from, with ``op`` first.

    The rows of an update share their system columns, but that -C has the ``offset`` before its +C's.
    """
    system = [name for name in events.columns if name not in (EVENT, BEFORE, AFTER)]
    before, after = F.col(BEFORE), F.col(AFTER)
    changes = mapped(
        F.col(EVENT).cast("string"),
        {
            "create": F.array(_change(Op.APPEND, after)),
            "delete": F.array(_change(Op.RETRACT, before)),
            "update": F.array(_change(Op.CORRECT_FROM, before), _change(Op.CORRECT_TO, after)),
        },
        "not an event: expected create, delete or update",
    )
    rows = events.select(F.explode(changes).alias("__change"), *map(at, system))
    op = F.col("__change.op")
    offset = F.when(op == _FROM, F.col("offset") - 1).otherwise(F.col("offset")) if "offset" in system else None
    values = [offset.alias(name) if name == "offset" and offset is not None else at(name) for name in system]
    return rows.select(op.alias("op"), *values, "__change.image.*")


def to_append_stream(rows: DataFrame) -> DataFrame:
    """The rows of a changelog that only ever appends, without ``op``; a row other than +A stops the query."""
    alone = F.when(F.col("op") == _APPEND, F.lit(True)).otherwise(
        refuse("a changelog that takes rows back is no append stream: expected op 0 (+A)", F.col("op"))
    )
    return rows.where(alone).drop("op")


def from_append_stream(rows: DataFrame) -> DataFrame:
    """The changelog of rows that are only ever appended: ``op`` +A, behind ``offset`` where there is one."""
    if "op" in rows.columns:
        raise HistorianError("rows of an append stream have no column op", found=", ".join(rows.columns))
    names = [name for name in rows.columns if name != "offset"]
    first = ["offset"] if "offset" in rows.columns else []
    return rows.select(*first, operation(Op.APPEND).alias("op"), *map(at, names))


def to_odf(rows: DataFrame, key: Sequence[str], former: DataFrame | None = None) -> DataFrame:
    """A changelog of the binlog profile in the strict one of Open Data Fabric. Shuffles by key.

    Without ``schema_version``; times cut to milliseconds; -R and -C with the event time of the row they take back. A row
    that did not come before stops the query.

    Args:
        rows: a changelog that begins with its table, or behind *former*.
        key: names of the key's columns.
        former: the rows before, each key once, with ``event_time``.
    """
    whole = {name: F.date_trunc("MILLISECOND", name) for name in ("system_time", "event_time")}
    odf = rows.withColumns(whole).drop("schema_version", *POSITION_COLUMNS.values())
    every = odf.withColumn("__own", F.lit(True))
    if former is not None:
        added = {"op": operation(Op.APPEND), "event_time": whole["event_time"], "__own": F.lit(False)}
        before = former.withColumns(added).select(*added, *map(at, key))
        every = every.unionByName(before, allowMissingColumns=True)
    along = Window.partitionBy(*map(at, key)).orderBy("__own", "offset")
    held = every.withColumn("__former", F.lag("event_time").over(along)).where("__own")
    lost = refuse("a row is taken back that did not come before: expected the rows before, too", F.col("offset"))
    takes = F.col("op").isin(_RETRACT, _FROM)
    event_time = F.when(takes, F.coalesce(F.col("__former"), lost.cast("timestamp"))).otherwise(F.col("event_time"))
    return held.withColumn("event_time", event_time).select(*map(at, odf.columns))


def to_row_kinds(rows: DataFrame) -> DataFrame:
    """The same rows with Flink's ``row_kind`` (+I, -D, -U, +U) in place of ``op``."""
    kinds = mapped(F.col("op"), {code: F.lit(kind) for code, kind in _ROW_KINDS.items()}, _NO_OPERATION)
    return rows.select(*(kinds.alias(ROW_KIND) if name == "op" else at(name) for name in rows.columns))


def from_row_kinds(rows: DataFrame) -> DataFrame:
    """The rows that :func:`to_row_kinds` came from; another kind stops the query."""
    codes = {kind: F.lit(code).cast("int") for code, kind in _ROW_KINDS.items()}
    ops = mapped(F.col(ROW_KIND).cast("string"), codes, f"not a row kind of Flink: expected one of {', '.join(codes)}")
    return rows.select(*(ops.alias("op") if name == ROW_KIND else at(name) for name in rows.columns))


def _with_op(rows: DataFrame, to: dict[int, Op]) -> DataFrame:
    codes = {code: operation(op) for code, op in to.items()}
    return rows.withColumn("op", mapped(F.col("op"), codes, _NO_OPERATION))


def _change(op: Op, values: Column) -> Column:
    return F.struct(operation(op).alias("op"), values.alias("image"))
