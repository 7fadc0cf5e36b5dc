"""Statements that change rows without row events: written to the log as statements, or on partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from historian.names import TableName
from workload.definer import Work
from workload.notes import Effect
from workload.session import Session
from workload.shapes import ColumnShape, Shape, quoted

__all__ = ["copied_by_statement", "exchange_partition", "has_numbers", "load_data", "written_by_statement"]

_SHIFT = 1_000_000
"""Keys of one writer stay its own when this is added; see :mod:`workload.dml`."""


@contextmanager
def _by_statements(session: Session) -> Iterator[None]:
    session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    session.run("SET SESSION binlog_format = 'STATEMENT'")
    try:
        yield
    finally:
        session.run("SET SESSION binlog_format = 'ROW'")
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")


def has_numbers(work: Work) -> bool:
    """Whether the table's key tells whose a row is by a number, to which :data:`_SHIFT` can be added."""
    return bool(work.shape.key) and _shifted(work.shape) is not None


def written_by_statement(work: Work) -> None:
    """UPDATE and DELETE with a LIMIT: which rows they find, the log does not say."""
    column = work.rng.choice([column for column in work.shape.free if column.nullable] or list(work.shape.free))
    name, limit = quoted(column.name), work.rng.randint(1, 30)
    value = "NULL" if column.nullable else name
    sqls = (
        f"UPDATE {work.shape.sql} SET {name} = {value} LIMIT {limit}",
        f"UPDATE {work.shape.sql} SET {name} = {value} ORDER BY {name} DESC LIMIT {limit}",
        f"DELETE FROM {work.shape.sql} ORDER BY {name} LIMIT {limit}",
    )
    with _by_statements(work.session):
        work.definer.run(work.session, "statement", work.rng.choice(sqls), silent=True)


def copied_by_statement(work: Work) -> None:
    """INSERT ... SELECT and REPLACE ... SELECT of the table into itself, under other keys."""
    shifted = _shifted(work.shape)
    plain = [c for c in work.shape.columns if not (c.generated or (c.auto_increment and not c.primary))]
    names = ", ".join(quoted(column.name) for column in plain)
    taken = ", ".join(
        f"{quoted(c.name)} + {_SHIFT * work.rng.randint(2, 90)}" if c is shifted else quoted(c.name) for c in plain
    )
    verb = work.rng.choice(("INSERT IGNORE INTO", "REPLACE INTO"))
    sql = f"{verb} {work.shape.sql} ({names}) SELECT {taken} FROM {work.shape.sql} LIMIT {work.rng.randint(1, 25)}"
    with _by_statements(work.session):
        work.definer.run(work.session, "statement", sql, silent=True)


def load_data(work: Work) -> None:
    """The log has the file of rows, not what the server made of it."""
    path = Path(str(work.session.one("SELECT @@tmpdir"))) / work.definer.fresh("rows")
    shape = work.shape
    key = ", ".join(quoted(name) for name in shape.key)
    number = work.rng.randint(100, 900) * _SHIFT
    lines = ["\t".join(str(number + row) for _ in shape.key) for row in range(work.rng.randint(1, 30))]
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o644)
    with _by_statements(work.session):
        sql = f"LOAD DATA INFILE '{path}' IGNORE INTO TABLE {shape.sql} ({key})"
        work.definer.run(work.session, "load data", sql, silent=True)


def exchange_partition(work: Work) -> None:
    """Two tables whose rows change places; behind it, one loses those of a partition."""
    definer, session, database = work.definer, work.session, work.table.database
    whole, twin = (TableName(database, definer.fresh(stem)) for stem in ("parts", "twin"))
    columns = "id_1 INT NOT NULL, shelf_2 INT, text_3 VARCHAR(30), PRIMARY KEY (id_1)"
    parts = "PARTITION BY RANGE (id_1) (PARTITION low VALUES LESS THAN (500), PARTITION high VALUES LESS THAN MAXVALUE)"
    for table, end in ((whole, f" {parts}"), (twin, "")):
        sql = f"{quoted(table.database)}.{quoted(table.table)}"
        definer.run(session, "create table", f"CREATE TABLE {sql} ({columns}){end}", effects=(_made(table),))
        numbers = [work.rng.randint(0, 49) * 10 + at for at in range(8)] + ([900] if table is whole else [])
        rows = ", ".join(f"({number}, {at}, '{table.table}')" for at, number in enumerate(numbers))
        definer.run(session, "fill", f"INSERT IGNORE INTO {sql} VALUES {rows}")
    sql = f"ALTER TABLE {quoted(database)}.{quoted(whole.table)}"
    definer.run(session, "exchange", f"{sql} EXCHANGE PARTITION low WITH TABLE {quoted(database)}.{quoted(twin.table)}")
    if work.rng.random() < 0.3:
        definer.run(session, "truncate partition", f"{sql} TRUNCATE PARTITION low")
    definer.tables.add(whole, narrow=False)
    definer.tables.add(twin, narrow=False)


def _made(table: TableName) -> Effect:
    return Effect(old=None, new=table)


def _shifted(shape: Shape) -> ColumnShape | None:
    return next((c for c in shape.key_columns if c.type in {"int", "bigint"}), None)
