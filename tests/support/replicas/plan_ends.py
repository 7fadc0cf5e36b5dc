"""Holds a lake of a first copy against a replica of its source, which the servers' own replication stops at the ends of plans."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from connectors.backfill.keys.literals import literal, prepare_session
from databases.replication import apply_until, direct
from databases.servers import Server
from historian.names import TableName
from historian.plans.key_ranges import Key
from historian.plans.plans import Plan, TableCopy
from historian.positions import parse_gtids
from historian.schema.snapshots import Snapshot
from replicas.replica_checks import assert_same_rows, folded, row_bag
from replicas.replica_reading import LakeRow, Reading
from replicas.replica_validation import assert_changelogs_are_valid
from workload.notes import Row
from workload.session import Session
from workload.shapes import quoted

__all__ = ["Compared", "assert_lake_is_what_a_server_holds", "assert_plans_are_what_a_replica_holds", "up_to"]


_NOW = 2**63
"""Behind every offset of a changelog."""


@dataclass(slots=True)
class Compared:
    """What was compared.

    Attributes:
        positions: at which all tables were compared, each one once.
        partly: those of them at which a table was copied in part.
        rows: of tables at all ends of plans.
    """

    positions: int = 0
    partly: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return f"{self.positions} positions, {self.partly} of them in mid-copy, {self.rows} rows"


def assert_lake_is_what_a_server_holds(server: Server, reading: Reading, databases: str) -> int:
    """Fails unless all is copied, the changelogs keep their rules, and they and the mirrors are what *server* holds.

    Args:
        server: nobody writes to it, and the lake has all of its log.
        reading: of a lake whose connector began with a copy.
        databases: the captured ones, as a regular expression.

    Returns:
        The number of the tables' rows.
    """
    reading.assert_no_table_stopped()
    assert_changelogs_are_valid(reading)
    copies: dict[int, TableCopy] = {}
    last = None
    for last in reading.plans():
        copies |= {table.table_id: table.copy for table in last.tables if table.copy is not None}
    assert last is not None
    open_ids = {i for i, copy in copies.items() if not copy.is_done}
    there = dict(_tables(reading, last))
    assert not [there[i] for i in open_ids if there.get(i) is not None], "tables that are not copied"
    return _compare(server, reading, last, {}, databases, with_mirrors=True)


def assert_plans_are_what_a_replica_holds(
    replica: Server, primary: Server, reading: Reading, databases: str
) -> Compared:
    """Fails unless at each plan's end the changelogs fold to what *replica* holds of the keys that are copied by then.

    Args:
        replica: a server that holds nothing; it applies the log of *primary* up to the end of each plan.
        reading: of a lake whose connector began with a copy.
        databases: the captured ones, as a regular expression.
    """
    direct(replica, primary)
    copies: dict[int, TableCopy] = {}
    compared, before = Compared(), ""
    for plan in reading.plans():
        copies |= {table.table_id: table.copy for table in plan.tables if table.copy is not None}
        if plan.end.gtids != before:
            apply_until(replica, plan.end.gtids)
            before = plan.end.gtids
            compared.positions += 1
            compared.partly += any(copy.upto is not None and not copy.is_done for copy in copies.values())
        assert parse_gtids(_executed(replica), replica.flavor) == plan.end.gtid_set, f"plan {plan.number}"
        compared.rows += _compare(replica, reading, plan, copies, databases)
    return compared


def _compare(
    replica: Server,
    reading: Reading,
    plan: Plan,
    copies: Mapping[int, TableCopy],
    databases: str,
    *,
    with_mirrors: bool = False,
) -> int:
    """Compares all tables at the end of *plan*; gives the number of their rows."""
    session = Session(replica)
    prepare_session(session.connection)
    try:
        rows, names = 0, set()
        for table_id, snapshot in _tables(reading, plan):
            where = f"{None if snapshot is None else snapshot.name} (id {table_id}) at the end of plan {plan.number}"
            found = folded(_until(reading, table_id, plan), snapshot)
            held: list[Row] = []
            if snapshot is not None:
                names.add(snapshot.name)
                held = session.rows(_select(snapshot, copies.get(table_id)))
                columns = [column.name for column in snapshot.columns]
                assert all(list(row) == columns for row in held), f"{where}: {columns}"
            assert_same_rows(where, found, row_bag(held))
            if with_mirrors and snapshot is not None and snapshot.primary_key and table_id in reading.locations:
                assert_same_rows(f"{where}, the mirror", row_bag(reading.mirror(table_id, snapshot)), row_bag(held))
                if history := reading.locations[table_id].history:
                    present = row_bag(reading.as_of(history, _NOW, snapshot))
                    assert_same_rows(f"{where}, the history", present, row_bag(held))
            rows += len(held)
        there = session.rows(
            "SELECT table_schema AS d, table_name AS t FROM information_schema.tables "
            f"WHERE table_type = 'BASE TABLE' AND table_schema REGEXP '{databases}'"
        )
        assert {TableName(row["d"], row["t"]) for row in there} == names, f"tables at the end of plan {plan.number}"
        return rows
    finally:
        session.close()


def _tables(reading: Reading, plan: Plan) -> Iterator[tuple[int, Snapshot | None]]:
    """Each table of the lake that there was by then, with the schema that it had; None: it was dropped."""
    for table_id in reading.locations:
        known = [version for version in reading.versions(table_id) if version.number <= plan.version]
        if known:
            yield table_id, reading.shown(known[-1])


def _until(reading: Reading, table_id: int, plan: Plan) -> list[LakeRow]:
    """The rows of a changelog that *plan*, and those before it, wrote."""
    if not reading.locations[table_id].changelog:
        return []
    times = reading.microseconds(reading.locations[table_id].changelog)
    count = bisect_right(times, plan.system_time_us)
    return [row for row in reading.changelog(table_id) if row.offset < count]


def _select(snapshot: Snapshot, copy: TableCopy | None) -> str:
    """The rows of a table that its changelog is to have: up to the key up to which it is copied, as that server orders keys."""
    name = f"{quoted(snapshot.name.database)}.{quoted(snapshot.name.table)}"
    if copy is None or copy.is_done:
        return f"SELECT * FROM {name}"
    if copy.upto is None:
        return f"SELECT * FROM {name} WHERE FALSE"
    return f"SELECT * FROM {name} WHERE {up_to(snapshot, copy.key, copy.upto)}"


def up_to(snapshot: Snapshot, key: Sequence[int], upto: Key) -> str:
    """The condition of the rows whose keys, in columns of those ids, are *upto* or lie before it, as the server orders keys."""
    by_id = {column.id: column for column in snapshot.columns}
    columns = [by_id[column_id] for column_id in key]
    names = ", ".join(quoted(column.name) for column in columns)
    values = ", ".join(literal(column.type, value) for column, value in zip(columns, upto, strict=True))
    return f"({names}) <= ({values})"


def _executed(replica: Server) -> str:
    gtids: Any = "@@GLOBAL.gtid_slave_pos" if replica.flavor == "mariadb" else "@@GLOBAL.gtid_executed"
    ((text,),) = replica.sql(f"SELECT {gtids}")
    return str(text).replace("\n", "")
