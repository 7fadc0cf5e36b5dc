"""Compares decoded chunks with a workload's notes: equal, in order, nothing more and nothing less."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from typing import Any

import pyarrow as pa

from historian.changelog.chunks import Chunk, positions
from historian.changelog.operations import Op
from historian.names import TableName
from historian.plans.plans import PlannedTable
from historian.schema.snapshots import ColumnType, Snapshot
from workload.notes import ExpectedRow, Recorded, Row, expected_rows

__all__ = ["DecodedRow", "assert_as_noted", "decoded_rows", "noted_values"]

ABSENT = "(no such column)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedRow:
    """A row of a chunk, under the names of its schema version."""

    gtid: str
    ordinal: int
    table_id: int
    table: TableName
    op: Op
    values: Row


def decoded_rows(chunks: Iterable[Chunk], tables: Iterable[PlannedTable]) -> list[DecodedRow]:
    """The rows of a plan's *chunks* with the column names that its *tables* give them."""
    snapshots = {(table.table_id, version.version): version.snapshot for table in tables for version in table.versions}
    rows: list[DecodedRow] = []
    for chunk in chunks:
        snapshot = snapshots[chunk.table_id, chunk.version]
        if snapshot is None:
            raise AssertionError(f"rows of table {chunk.table_id} under version {chunk.version}, which ended it")
        rows.extend(_rows_of(chunk, snapshot))
    return rows


def _rows_of(chunk: Chunk, snapshot: Snapshot) -> Iterable[DecodedRow]:
    names = [column.name for column in snapshot.columns]
    first = chunk.rows.num_columns - len(names)
    columns = [noted_values(chunk.rows.column(first + at), c.type) for at, c in enumerate(snapshot.columns)]
    places = zip(
        positions(chunk).to_pylist(),
        chunk.rows.column("ordinal").to_pylist(),
        chunk.rows.column("op").to_pylist(),
        zip(*columns, strict=True),
        strict=True,
    )
    for gtid, ordinal, op, values in places:
        yield DecodedRow(
            gtid=gtid,
            ordinal=ordinal,
            table_id=chunk.table_id,
            table=snapshot.name,
            op=Op(op),
            values=dict(zip(names, values, strict=True)),
        )


def noted_values(values: pa.Array | pa.ChunkedArray, kind: ColumnType) -> list[Any]:
    """Arrow values of a column as the notes hold them."""
    if kind.name == "timestamp":
        values = values.cast(pa.timestamp("us"))
    convert: Callable[[Any], Any] | None = None
    if kind.name == "bit":
        convert = _bits
    elif kind.name == "bigint" and kind.unsigned:
        convert = int
    elif kind.name == "decimal":
        convert = Decimal
    listed: list[Any] = values.to_pylist()
    return listed if convert is None else [None if value is None else convert(value) for value in listed]


def _bits(value: bool | bytes) -> int:
    return int(value) if isinstance(value, bool) else int.from_bytes(value, "big")


def assert_as_noted(recorded: Recorded, decoded: Sequence[DecodedRow]) -> None:
    """Fails, with the first difference in words, unless *decoded* is the changelog of the whole workload.

    Rows that TRUNCATE and DROP took are not in the log and not looked for.
    """
    expected = expected_rows(recorded)
    found: dict[str, list[DecodedRow]] = defaultdict(list)
    for row in decoded:
        found[row.gtid].append(row)
    identity: dict[int, int] = {}
    for gtid, group in groupby(expected, key=lambda row: row.gtid):
        # Tables come apart in chunks; the ordinal of the event says how they stood together.
        rows = sorted(found.pop(gtid, []), key=lambda row: row.ordinal)
        _assert_transaction(recorded, list(group), rows, identity)
    if found:
        gtid, rows = next(iter(found.items()))
        raise AssertionError(f"{len(found)} transactions more than noted; the first is {gtid}: {_shown(rows[0])}")
    _assert_order(expected, decoded, identity)


def _assert_transaction(
    recorded: Recorded, expected: list[ExpectedRow], found: list[DecodedRow], identity: dict[int, int]
) -> None:
    for at, (want, got) in enumerate(zip(expected, found, strict=False)):
        if got.table_id not in identity and want.lineage not in identity.values():
            identity[got.table_id] = want.lineage
        same_table = identity.get(got.table_id) == want.lineage
        if not same_table or (want.table, want.op, want.values) != (got.table, got.op, got.values):
            raise AssertionError(_difference(recorded, at, want, got))
    if len(expected) != len(found):
        longer, rest = ("noted", expected) if len(expected) > len(found) else ("decoded", found)
        surplus = rest[min(len(expected), len(found))]
        raise AssertionError(
            f"seed {recorded.seed}, transaction {expected[0].gtid}: {len(expected)} rows noted, {len(found)} decoded; "
            f"the first only {longer}: {_shown(surplus)}"
        )


def _assert_order(expected: Sequence[ExpectedRow], decoded: Sequence[DecodedRow], identity: dict[int, int]) -> None:
    """Each table's rows as they came, transaction after transaction, are in the log's order."""
    noted: dict[int, list[str]] = defaultdict(list)
    came: dict[int, list[str]] = defaultdict(list)
    for want in expected:
        noted[want.lineage].append(want.gtid)
    for got in decoded:
        came[identity[got.table_id]].append(got.gtid)
    for lineage, gtids in noted.items():
        if came[lineage] != gtids:
            at = next(at for at, pair in enumerate(zip(gtids, came[lineage], strict=True)) if pair[0] != pair[1])
            raise AssertionError(f"row {at} of table {lineage}: expected of {gtids[at]}, found of {came[lineage][at]}")


def _difference(recorded: Recorded, at: int, want: ExpectedRow, got: DecodedRow) -> str:
    differing = [
        f"  {name}: noted {want.values.get(name, ABSENT)!r}, decoded {got.values.get(name, ABSENT)!r}"
        for name in dict.fromkeys((*want.values, *got.values))
        if want.values.get(name, ABSENT) != got.values.get(name, ABSENT)
    ]
    definitions = []
    for transaction in recorded.transactions:
        if transaction.gtid == want.gtid:
            break
        if transaction.ddl is not None and want.table.table in transaction.ddl.sql:
            definitions.append(f"  {transaction.gtid}: {transaction.ddl.sql}")
    lines = [
        f"seed {recorded.seed}, transaction {want.gtid}, row {at}:",
        f"noted {_shown(want)}",
        f"decoded {_shown(got)} (table id {got.table_id})",
        *differing,
        "last statements on that name before:",
        *definitions[-5:],
    ]
    return "\n".join(lines)


def _shown(row: ExpectedRow | DecodedRow) -> str:
    return f"{row.table} {row.op.sign} {dict(row.values)}"
