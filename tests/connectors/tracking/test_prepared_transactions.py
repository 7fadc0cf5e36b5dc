"""Under which schema rows of a prepared XA transaction count when it is committed, and in which range they are read."""

from __future__ import annotations

from dataclasses import replace

from connectors.readers.base import Bound, MappedColumn, TableMapped, XaCommitted
from connectors.tracking.prepared_transactions import Commit, CommittedXa, LocatedXa, PreparedSchemas, attached
from historian.history.history import History
from historian.names import TableName
from historian.plans.plans import LogRange, PreparedRows, PreparedTable, RolledBack
from historian.positions import PreparedXa
from historian.positions.places import Place
from historian.schema.edits import AddColumn, DropTable, Edit, RenameTable
from historian.schema.snapshots import Column
from models.timelines import FILE, INT, SERVER, A, capture, create, position, statement, table

XID = "X'78',X'',1"
XA = PreparedXa(
    xid=XID, gtid=f"{A}:2", file=FILE, offset=2000, server=SERVER, tables=(table("t"), table("other")), version=1
)
COMMIT = Place(gtid=f"{A}:9", file=FILE, offset=9000, ordinal=1)
ADD = AddColumn(table=table("t"), column=Column(id=9, name="c", type=INT), after=1)
COMPUTED = AddColumn(table=table("t"), column=Column(id=9, name="c", type=INT, initial_known=False), after=1)


def _history(*edits: Edit) -> History:
    first = capture(create(1, "t", "a", key=(1,)), create(2, "other", "b", first=5))
    entries = [statement(number, f"{A}:{number + 1}", edit) for number, edit in enumerate(edits, 2)]
    return History.of([first, *entries], resolved=position(f"{A}:1-99", 99_000))


def _settled(history: History, xa: PreparedXa | None = XA, *, found: LocatedXa | None = None) -> CommittedXa | None:
    """What the COMMIT brings behind all of *history*; a transaction that was looked up was found before its first entry."""
    schemas = PreparedSchemas(
        history,
        () if xa is None else (xa,),
        history.last_number,
        lambda name: name != table("other"),
        "mysql",
        None if found is None else lambda _xid, _place: found,
    )
    return schemas.settle(XaCommitted(place=COMMIT, xid=XID, xa=xa), history.catalog)


def _tables(settled: CommittedXa | None) -> tuple[PreparedTable, ...]:
    assert settled is not None
    return settled.commit.rows.tables


def _reasons(settled: CommittedXa | None) -> list[tuple[TableName, str, int]]:
    assert settled is not None
    return [(stop.table, stop.reason, stop.table_id) for stop in settled.stops]


def test_a_table_that_did_not_change_is_read_under_the_schema_in_force() -> None:
    settled = _settled(_history())
    assert _tables(settled) == (PreparedTable(table_id=1, name=table("t")),)
    assert settled is not None
    assert (settled.touched, settled.stops, settled.commit.place) == ({1}, (), COMMIT)


def test_a_table_that_changed_is_read_under_its_schema_of_then() -> None:
    renamed = RenameTable(table=table("t"), table_id=1, new=table("n"))
    for history in (_history(ADD), _history(renamed)):
        (found,) = _tables(_settled(history))
        assert (found.table_id, found.name) == (1, table("t"))
        assert found.snapshot == history.catalog_at(1).tables[table("t")]


def test_rows_that_cannot_follow_their_table_stop_it() -> None:
    settled = _settled(_history(COMPUTED))
    assert _tables(settled) == ()
    ((name, reason, table_id),) = _reasons(settled)
    assert (name, table_id) == (table("t"), 1)
    assert reason == f"its schema changed since in a way that its rows cannot follow\n  for {XA}"


def test_rows_of_a_table_that_is_gone_are_gone_too() -> None:
    settled = _settled(_history(DropTable(table=table("t"), table_id=1)))
    assert (_tables(settled), _reasons(settled)) == ((), [])


def test_a_table_that_was_never_known_stops() -> None:
    settled = _settled(_history(), replace(XA, tables=(table("never"),)))
    assert [(name, table_id) for name, _, table_id in _reasons(settled)] == [(table("never"), 0)]


def test_what_a_walk_has_just_met_needs_nothing() -> None:
    assert _settled(_history(), replace(XA, version=0)) is None


def test_a_bound_says_the_version_that_was_in_force_before_it() -> None:
    history = _history(ADD)
    schemas = PreparedSchemas(history, (), 1, lambda _: True, "mysql", None)
    bound = Bound(position=replace(position(f"{A}:1-2", 3000), pending=(replace(XA, version=0),)), event_time_us=0)
    assert schemas.noted(bound, 1, history.catalog_at(1)).position.pending == (XA,)
    # A statement has come; the transaction was prepared before it all the same.
    assert schemas.noted(bound, 2, history.catalog_at(2)).position.pending == (XA,)
    found, _ = _tables(schemas.settle(XaCommitted(place=COMMIT, xid=XID, xa=replace(XA, version=0)), history.catalog))
    assert found.snapshot == history.catalog_at(1).tables[table("t")]


def _mapped(*types: int) -> TableMapped:
    columns = tuple(MappedColumn(type=each, metadata=0, nullable=True) for each in types)
    return TableMapped(place=COMMIT, table=table("t"), columns=columns)


def test_a_transaction_that_was_looked_up_is_read_where_nothing_touched_its_tables() -> None:
    history = _history()
    unknown = replace(XA, version=0)
    settled = _settled(history, None, found=LocatedXa(xa=unknown, maps=(_mapped(3),), touched=()))
    assert _tables(settled) == (PreparedTable(table_id=1, name=table("t")),)
    assert settled is not None
    assert settled.commit.rows.xa == unknown
    for found in (
        LocatedXa(xa=unknown, maps=(_mapped(3),), touched=(table("t"),)),
        LocatedXa(xa=unknown, maps=(_mapped(3, 3),), touched=()),
    ):
        stopped = _settled(history, None, found=found)
        assert (_tables(stopped), [name for name, _, _ in _reasons(stopped)]) == ((), [table("t")])


def test_rows_from_before_a_range_are_attached_to_it() -> None:
    ranges = [
        LogRange(file=FILE, start=4, end=3000, server=SERVER),
        LogRange(file=FILE, start=3000, end=9500, server=SERVER),
    ]
    commit = Commit(place=COMMIT, rows=PreparedRows(xa=XA, tables=()))
    part = RolledBack(gtid=f"{A}:1", file=FILE, offset=1000, first=1, last=2)
    first, second = attached(ranges, [part], [commit])
    assert (first.rolled_back, first.prepared) == ((part,), ())
    assert (second.rolled_back, second.prepared) == ((), (commit.rows,))
    assert attached(ranges, [], []) == tuple(ranges)
    (whole,) = attached([replace(ranges[0], end=9500)], [], [commit])
    assert whole.prepared == ()
    elsewhere = Commit(place=COMMIT, rows=PreparedRows(xa=replace(XA, server="another"), tables=()))
    assert attached([replace(ranges[0], end=9500)], [], [elsewhere])[0].prepared == (elsewhere.rows,)
