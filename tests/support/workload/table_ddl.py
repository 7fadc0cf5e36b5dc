"""DDL on whole tables and databases, and statements that touch none."""

from __future__ import annotations

from historian.names import TableName
from workload.definer import Work
from workload.notes import Effect, NotedChange, NotedTransaction
from workload.shapes import quoted
from workload.tables import TABLES

__all__ = [
    "create_like",
    "create_select",
    "drop_database",
    "drop_table",
    "rename_table",
    "swap_tables",
    "temporary",
    "truncate",
    "vain",
    "view",
]


def rename_table(work: Work) -> None:
    """At times into the other database, at times with ALTER TABLE ... RENAME."""
    database = work.rng.choice(work.definer.databases)
    new = TableName(database, work.definer.fresh(work.table.table.rpartition("_")[0] or work.table.table))
    old_sql, new_sql = work.definer.table_sql(work.session, work.table), f"{quoted(new.database)}.{quoted(new.table)}"
    sql = work.rng.choice((f"RENAME TABLE {old_sql} TO {new_sql}", f"ALTER TABLE {old_sql} RENAME TO {new_sql}"))
    with work.definer.tables.hidden(work.table) as entry:
        work.definer.run(work.session, "rename table", sql, effects=(Effect(old=work.table, new=new),))
        entry.name = new


def swap_tables(work: Work) -> None:
    other = work.rng.choice([name for name in work.definer.tables.names() if name != work.table])
    middle = TableName(work.table.database, work.definer.fresh("swap"))
    moves = ((work.table, middle), (other, work.table), (middle, other))
    sql = "RENAME TABLE " + ", ".join(
        f"{quoted(a.database)}.{quoted(a.table)} TO {quoted(b.database)}.{quoted(b.table)}" for a, b in moves
    )
    tables = work.definer.tables
    with tables.hidden(work.table) as mine, tables.hidden(other) as its:
        work.definer.run(work.session, "swap tables", sql, effects=tuple(Effect(old=a, new=b) for a, b in moves))
        mine.name, its.name = other, work.table


def create_like(work: Work) -> None:
    new = TableName(work.table.database, work.definer.fresh("like"))
    sql = f"CREATE TABLE {work.definer.table_sql(work.session, new)} LIKE {work.shape.sql}"
    work.definer.run(work.session, "create like", sql, effects=(Effect(old=None, new=new),))
    work.definer.tables.add(new, narrow=work.definer.tables.is_narrow(work.table))


def create_select(work: Work) -> None:
    if not work.definer.create_select:
        create_like(work)
        return
    new = TableName(work.table.database, work.definer.fresh("select"))
    by = ", ".join(map(quoted, work.shape.key)) or quoted(work.shape.owner.name)
    key = f"PRIMARY KEY ({by})" if work.shape.key else f"KEY ({by})"
    order = f" ORDER BY {by}" if work.shape.key else ""
    query = f"SELECT * FROM {work.shape.sql}{order} LIMIT 40"
    sql = f"CREATE TABLE {work.definer.table_sql(work.session, new)} ({key}) {query}"

    def made() -> tuple[NotedChange, ...]:
        rows = work.session.rows(f"SELECT * FROM {quoted(new.database)}.{quoted(new.table)}{order}")
        return tuple(NotedChange(table=new, before=None, after=row, key=work.shape.key) for row in rows)

    work.definer.run(work.session, "create select", sql, effects=(Effect(old=None, new=new),), made=made)
    work.definer.tables.add(new, narrow=work.definer.tables.is_narrow(work.table))


def truncate(work: Work) -> None:
    work.definer.take_rows(work.session, "truncate", work.table, "TRUNCATE TABLE", ())


def drop_table(work: Work) -> None:
    """A table goes; one of the same name comes at once, as another kind of table."""
    with work.definer.tables.hidden(work.table):
        gone = (Effect(old=work.table, new=None),)
        work.definer.take_rows(work.session, "drop table", work.table, "DROP TABLE", gone)
        work.definer.tables.remove(work.table)
    if work.rng.random() < 0.7:
        work.definer.create(work.session, work.rng.choice(TABLES), work.table)


def drop_database(work: Work) -> None:
    """A database goes with its tables, which nobody else writes to."""
    session, run = work.session, work.definer.run
    name = TableName(work.definer.fresh("brief"), "Notes")
    sql = f"{quoted(name.database)}.{quoted(name.table)}"
    run(session, "create database", f"CREATE DATABASE {quoted(name.database)}")
    columns = "id_1 INT PRIMARY KEY, note_2 VARCHAR(20)"
    run(session, "create table", f"CREATE TABLE {sql} ({columns})", effects=(Effect(old=None, new=name),))
    session.run(f"INSERT INTO {sql} VALUES (1, 'größer'), (2, NULL)")
    gtid = session.committed()
    rows = session.rows(f"SELECT * FROM {sql}")
    came = tuple(NotedChange(table=name, before=None, after=row, key=("id_1",)) for row in rows)
    gone = tuple(NotedChange(table=name, before=row, after=None, key=("id_1",)) for row in rows)
    work.definer.noted.append(NotedTransaction(gtid=gtid, changes=came))
    effects = (Effect(old=name, new=None),)
    run(session, "drop database", f"DROP DATABASE {quoted(name.database)}", effects=effects, vanished=gone)


def temporary(work: Work) -> None:
    """A temporary table of the same name hides the real one from its connection for a while."""
    session, run = work.session, work.definer.run
    run(session, "temporary", f"CREATE TEMPORARY TABLE {work.shape.sql} (id_1 INT, surprise_2 TEXT)", silent=True)
    session.run(f"INSERT INTO {work.shape.sql} VALUES (1, 'x')")
    run(session, "temporary", f"DROP TEMPORARY TABLE {work.shape.sql}", silent=True)


def view(work: Work) -> None:
    name = quoted(work.definer.fresh("view"))
    sql = f"{quoted(work.table.database)}.{name}"
    work.definer.run(work.session, "view", f"CREATE VIEW {sql} AS SELECT * FROM {work.shape.sql}")
    work.definer.run(work.session, "view", f"DROP VIEW {sql}")


def vain(work: Work) -> None:
    """Statements that say IF and change nothing; some servers log them all the same."""
    other = next(name for name in work.definer.tables.names() if name != work.table)
    other_sql = f"{quoted(other.database)}.{quoted(other.table)}"
    sqls = [
        f"CREATE TABLE IF NOT EXISTS {work.shape.sql} (surprise_1 TEXT)",
        f"CREATE TABLE IF NOT EXISTS {work.shape.sql} LIKE {other_sql}",
        f"DROP TABLE IF EXISTS {quoted(work.table.database)}.{quoted(work.definer.fresh('never'))}",
        f"CREATE DATABASE IF NOT EXISTS {quoted(work.table.database)} CHARACTER SET binary",
    ]
    if work.session.mariadb:
        column = quoted(work.shape.columns[0].name)
        sqls.append(
            f"ALTER TABLE {work.shape.sql} ADD COLUMN IF NOT EXISTS {column} TEXT, DROP COLUMN IF EXISTS nothing"
        )
    work.definer.run(work.session, "vain", work.rng.choice(sqls), silent=True)
