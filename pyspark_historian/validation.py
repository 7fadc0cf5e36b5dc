"""Strict validation of a changelog DataFrame: the findings of :mod:`historian.changelog.validation` as rows.

Executors hold batches alone: rows come to them sorted, and what is wrong shows between neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 Spark's own custom
from pyspark.sql.pandas.types import to_arrow_schema

from historian.changelog.missing_columns import missing_lists
from historian.changelog.operations import Op
from historian.changelog.row_images import where
from historian.changelog.validation import Finding, Profile, Rule, check_columns
from historian.changelog.validation.images import check_bag, check_keys, same_as_before
from historian.changelog.validation.sequence import check_offsets, check_values, operations
from pyspark_historian.columns import Mapper, at, in_arrow

__all__ = ["FINDINGS", "check", "findings_of"]

FINDINGS = "offset long, rule string, expected string, found string"
"""Columns of findings: the fields of :class:`historian.changelog.validation.Finding`."""

_FOUND = f"{FINDINGS}, begins boolean"
_FOUND_SCHEMA = pa.schema(
    [
        ("offset", pa.int64()),
        ("rule", pa.string()),
        ("expected", pa.string()),
        ("found", pa.string()),
        ("begins", pa.bool_()),
    ]
)
_BUCKET_BITS = 16
_LAST_OF_BUCKET = (1 << _BUCKET_BITS) - 1
_BUCKET, _KNOWN = "__bucket", "__known"

_Batches = Iterable[pa.RecordBatch]


def check(
    rows: DataFrame,
    key: Sequence[str] = (),
    *,
    profile: Profile = Profile.BINLOG,
    former: DataFrame | None = None,
    first_offset: int | None = None,
) -> DataFrame:
    """All that is wrong in a changelog, as rows of :data:`FINDINGS`; none for one that keeps the rules of *profile*.

    The rules are those of :func:`historian.changelog.validation.check`, but that the order of rows is that of their offsets. Timestamps have Spark's one unit, so that in the ODF profile their values are looked at. Two shuffles: by offset and
    by key.

    Args:
        rows: the changelog.
        key: names of the key's columns; without them whole rows are counted.
        profile: that it is held to.
        former: the rows before the first change, as :func:`pyspark_historian.state.project_changelog` gives them.
        first_offset: that it must begin with; None: any.
    """
    spark, names = rows.sparkSession, rows.columns
    schema = to_arrow_schema(rows.schema, timezone="UTC")
    in_schema = list(check_columns(schema, profile, any_unit=True))
    missing = [name for name in key if name not in names]
    if missing:
        expected = f"key {', '.join(key)}"
        in_schema.append(Finding(rule=Rule.COLUMNS, offset=None, expected=expected, found="no such column"))
    findings = spark.createDataFrame([(f.offset, f.rule.value, f.expected, f.found) for f in in_schema], FINDINGS)
    if missing or len(set(names)) < len(names) or any(name not in names for name in profile.system_columns):
        return findings
    rows = rows.withColumns({"op": F.col("op").cast("int"), "offset": F.col("offset").cast("long")})
    findings = findings.union(_of_offsets(rows, tuple(key), missing_lists(schema), profile, first_offset))
    data = tuple(name for name in profile.data(names) if name not in missing_lists(schema))
    complete = former is not None or profile is Profile.ODF
    if not key and not complete:
        return findings
    return findings.union(_of_images(rows, former, tuple(key), data, profile, complete=complete))


def findings_of(findings: DataFrame, limit: int | None = None) -> tuple[Finding, ...]:
    """The findings of :func:`check`, by offset and rule; at most *limit*. Runs the query."""
    ordered = findings.orderBy(F.col("offset").asc_nulls_first(), "rule", "expected")
    rows = (ordered if limit is None else ordered.limit(limit)).collect()
    return tuple(Finding(rule=Rule(r.rule), offset=r.offset, expected=r.expected, found=r.found) for r in rows)


def _of_offsets(
    rows: DataFrame, key: tuple[str, ...], lists: tuple[str, ...], profile: Profile, first_offset: int | None
) -> DataFrame:
    """What is wrong with single rows, and between neighbours by offset."""
    names = dict.fromkeys((*profile.system_columns, *key, *lists))
    bucket = F.shiftright("offset", _BUCKET_BITS).alias(_BUCKET)
    wanted = rows.select(*map(at, names), bucket, F.lit(False).alias(_KNOWN))
    # The last row of a bucket is the neighbour of the next one's first.
    edges = wanted.where(F.col("offset").bitwiseAND(_LAST_OF_BUCKET) == _LAST_OF_BUCKET)
    edges = edges.withColumns({_BUCKET: F.col(_BUCKET) + 1, _KNOWN: F.lit(True)})
    placed = wanted.union(edges).repartition(_BUCKET).sortWithinPartitions(_BUCKET, F.desc(_KNOWN), "offset")
    found = in_arrow(placed, _offsets(key, profile), _FOUND)
    # Each row that has no neighbour before it in its bucket says so; the first of all may.
    begins = Window.partitionBy(F.when(~F.col("begins"), F.col("offset")), "begins")
    first = F.col("begins") & (F.col("offset") == F.min("offset").over(begins))
    found = found.withColumn("__first", first)
    if first_offset is None:
        return found.where(~F.col("__first")).drop("begins", "__first")
    found = found.where(~(F.col("__first") & (F.col("offset") == first_offset)))
    expected = F.when(F.col("__first"), F.lit(f"{first_offset} first")).otherwise(F.col("expected"))
    text = F.when(F.col("__first"), F.col("offset").cast("string")).otherwise(F.col("found"))
    return found.select("offset", "rule", expected.alias("expected"), text.alias("found"))


def _offsets(key: tuple[str, ...], profile: Profile) -> Mapper:
    def check_rows(batches: _Batches) -> Iterator[pa.RecordBatch]:
        last: pa.Table | None = None
        for batch in batches:
            table = pa.Table.from_batches([batch])
            mine = table.filter(pc.invert(table.column(_KNOWN)))
            yield from _batch(check_values(mine, key, profile))
            table = table.filter(table.column("offset").is_valid())
            if table.num_rows == 0:
                continue
            judged = 0 if last is None else 1
            table = table if last is None else pa.concat_tables([last, table])
            yield from _of_buckets(table, judged, pairs=not key)
            last = table.slice(table.num_rows - 1)
        if last is not None and not key:
            yield from _batch(_ends(last))

    return check_rows


def _of_buckets(table: pa.Table, judged: int, *, pairs: bool) -> Iterator[pa.RecordBatch]:
    """Findings in rows of several buckets, of which the first *judged* one was looked at already."""
    offsets, ops = table.column("offset").to_numpy(), operations(table)
    edges = np.asarray(table.column(_KNOWN))
    known = edges | (np.arange(len(offsets)) < judged)
    buckets = table.column(_BUCKET).to_numpy()
    starts = [0, *(at + 1 for at in where(buckets[1:] != buckets[:-1])), len(buckets)]
    for first, end in pairwise(starts):
        context = int(known[first:end].sum())
        if not context:
            offset = int(offsets[first])
            expected = f"{offset - 1} directly before it"
            begins = Finding(rule=Rule.OFFSET, offset=offset, expected=expected, found="nothing")
            yield from _batch([begins], begins=True)
        ends = end < len(buckets) and not _has_neighbour_behind(int(offsets[end - 1]), known=bool(edges[end - 1]))
        found = check_offsets(offsets[first:end], ops[first:end], known=context, pairs=pairs, ends=ends)
        yield from _batch(found)


def _ends(last: pa.Table) -> Iterator[Finding]:
    if not _has_neighbour_behind(last.column("offset")[0].as_py(), known=last.column(_KNOWN)[0].as_py()):
        yield from check_offsets(last.column("offset").to_numpy(), operations(last), known=1, pairs=True)


def _has_neighbour_behind(offset: int, *, known: bool) -> bool:
    """Whether a row's neighbour is in the next bucket, which judges both."""
    return not known and offset & _LAST_OF_BUCKET == _LAST_OF_BUCKET


def _of_images(
    rows: DataFrame,
    former: DataFrame | None,
    key: tuple[str, ...],
    data: tuple[str, ...],
    profile: Profile,
    *,
    complete: bool,
) -> DataFrame:
    """What is wrong along the life of each key, or of each row."""
    every = rows.where(F.col("offset").isNotNull())
    if former is not None:
        wanted = [name for name in former.columns if name in rows.columns and name not in ("offset", "op")]
        before = former.select(F.lit(int(Op.APPEND)).alias("op"), *map(at, wanted))
        every = every.unionByName(before, allowMissingColumns=True)
    for name in key:
        every = every.where(at(name).isNotNull())
    columns = [at(name) for name in key or data]
    placed = every.repartition(*columns).sortWithinPartitions(*columns, "offset")
    mapper = _keys(key, data, profile, complete=complete) if key else _bag(data)
    return in_arrow(placed, mapper, _FOUND).drop("begins")


def _keys(key: tuple[str, ...], data: tuple[str, ...], profile: Profile, *, complete: bool) -> Mapper:
    def check_rows(batches: _Batches) -> Iterator[pa.RecordBatch]:
        table: pa.Table | None = None
        for table, known in _with_last_row(batches):
            same = same_as_before(table, key)
            yield from _batch(check_keys(table, same, data, profile, complete=complete, known=known, ends=False))
        if table is not None:
            last, alone = table.slice(table.num_rows - 1), np.zeros(1, dtype=bool)
            yield from _batch(check_keys(last, alone, data, profile, complete=complete, known=1))

    return check_rows


def _bag(data: tuple[str, ...]) -> Mapper:
    def check_rows(batches: _Batches) -> Iterator[pa.RecordBatch]:
        counts = 0
        for table, known in _with_last_row(batches):
            findings, counts = check_bag(table, same_as_before(table, data), counts, known)
            yield from _batch(findings)

    return check_rows


def _with_last_row(batches: _Batches) -> Iterator[tuple[pa.Table, int]]:
    """Batches that are not empty, each behind the last row of the batch before it, and how many rows that are: 0 or 1."""
    last: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch])
        if table.num_rows:
            known = 0 if last is None else 1
            table = table if last is None else pa.concat_tables([last, table])
            yield table, known
            last = table.slice(table.num_rows - 1)


def _batch(findings: Iterable[Finding], *, begins: bool = False) -> Iterator[pa.RecordBatch]:
    rows = [(f.offset, f.rule.value, f.expected, f.found, begins) for f in findings]
    if rows:
        arrays = [
            pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), _FOUND_SCHEMA, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=_FOUND_SCHEMA)
