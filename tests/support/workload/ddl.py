"""The DDL of a workload: each kind is a function that runs a statement or two on a table that others write to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from historian.schema import TableName
from workload.definer import Work
from workload.notes import Effect, NotedChange, NotedTransaction
from workload.shapes import ColumnShape, quoted
from workload.tables import ADDED, TABLES, WIDENINGS

__all__ = ["KINDS", "Kind"]

MOST_COLUMNS = 22


def _restated(column: ColumnShape, sql_type: str) -> str:
    """A column's definition with another type, its nullability and default as they were."""
    null = "NULL" if column.nullable else "NOT NULL"
    default = "" if column.default in (None, "NULL") else f" DEFAULT '{column.default.replace(chr(39), chr(39) * 2)}'"
    return f"{sql_type} {null}{default}"


def _droppable(work: Work) -> list[ColumnShape]:
    return [column for column in work.shape.free if "on update" not in column.extra]


def _movable(work: Work) -> list[ColumnShape]:
    """Columns that can be stated again from what SHOW COLUMNS says."""
    plain = {
        "int",
        "bigint",
        "smallint",
        "mediumint",
        "decimal",
        "varchar",
        "char",
        "enum",
        "set",
        "datetime",
        "date",
        "float",
    }
    return [c for c in work.shape.columns if c.type in plain and not c.extra]


def _widenings(column: ColumnShape) -> list[str]:
    sign = " unsigned" if column.unsigned else ""
    found = WIDENINGS.get(f"{column.type}({column.arguments})") or WIDENINGS.get(column.type + sign, ())
    if column.type == "varchar":
        charset = f" CHARACTER SET {column.charset}" + (
            " COLLATE utf8mb4_bin" if "utf8mb4_bin" in column.sql_type else ""
        )
        wide = column.numbers[0] < 400
        texts = ["TEXT"] if column.default is None and column.free else []
        return [name + charset for name in (["VARCHAR(400)"] if wide and column.free else []) + texts]
    return list(found)


def _widenable(work: Work) -> list[tuple[ColumnShape, str]]:
    plain = [column for column in work.shape.columns if not column.extra]
    return [(column, wider) for column in plain for wider in _widenings(column)]


def add_first(work: Work) -> None:
    work.alter("add first", f"{work.addition()} FIRST")


def add_somewhere(work: Work) -> None:
    work.alter("add", f"{work.addition()} {work.place()}")


def add_zero(work: Work) -> None:
    """NOT NULL without a default: rows that are there read the type's zero."""
    kind = work.rng.choice(("INT", "VARCHAR(9)", "DECIMAL(6,3)", "BIGINT UNSIGNED"))
    work.alter("add zero", f"ADD {quoted(work.definer.fresh('zero'))} {kind} NOT NULL")


def add_two(work: Work) -> None:
    """Two statements in quick succession."""
    work.alter("add", f"{work.addition()} FIRST")
    work.alter("add", f"{work.addition()}")


def drop(work: Work) -> None:
    work.alter("drop", f"DROP COLUMN {quoted(work.rng.choice(_droppable(work)).name)}")


def drop_then_add(work: Work) -> None:
    """The same name comes back with another type, in a second statement or in the same one."""
    column = work.rng.choice([c for c in _droppable(work) if c.stem != "doc"])
    others = [one for one in ADDED if one.stem != "doc" and not one.type.lower().startswith(column.type)]
    added = work.rng.choice(others)
    again = f"ADD {quoted(column.name)} {added.clause(work.rng)}"
    if work.rng.random() < 0.5:
        work.alter("drop and add again", f"DROP COLUMN {quoted(column.name)}", again)
    else:
        work.alter("drop and add again", f"DROP COLUMN {quoted(column.name)}")
        work.alter("drop and add again", again)


def rename_column(work: Work) -> None:
    column = work.rng.choice(work.shape.columns)
    new = quoted(work.definer.fresh(column.stem))
    if work.definer.tables.can_rename_column:
        work.alter("rename column", f"RENAME COLUMN {quoted(column.name)} TO {new}")
    else:
        plain = work.rng.choice(_movable(work))
        new = quoted(work.definer.fresh(plain.stem))
        work.alter("rename column", f"CHANGE {quoted(plain.name)} {new} {_restated(plain, plain.sql_type)}")


def widen(work: Work) -> None:
    column, wider = work.rng.choice(_widenable(work))
    work.alter("modify", f"MODIFY {quoted(column.name)} {_restated(column, wider)}")


def change(work: Work) -> None:
    """CHANGE: another name and a wider type at once."""
    column, wider = work.rng.choice(_widenable(work))
    new = quoted(work.definer.fresh(column.stem))
    work.alter(
        "change", f"CHANGE COLUMN {quoted(column.name)} {new} {_restated(column, wider)} {work.place_behind(column)}"
    )


def move(work: Work) -> None:
    column = work.rng.choice(_movable(work))
    work.alter(
        "move", f"MODIFY COLUMN {quoted(column.name)} {_restated(column, column.sql_type)} {work.place_behind(column)}"
    )


def append_member(work: Work) -> None:
    column = work.rng.choice([c for c in work.shape.columns if c.type == "enum" and len(c.members) < 9])
    members = ",".join("'" + m.replace("'", "''") + "'" for m in (*column.members, f"m{len(column.members)}"))
    collate = column.sql_type.partition(") ")[2]
    work.alter("modify enum", f"MODIFY {quoted(column.name)} {_restated(column, f'ENUM({members}) {collate}')}")


def several(work: Work) -> None:
    """Several actions in one statement."""
    first, second, third = work.rng.sample(_droppable(work), 3)
    actions = [
        f"DROP {quoted(first.name)}",
        f"{work.addition()} FIRST",
        f"{work.addition(stem='count')} AFTER {quoted(third.name)}",
    ]
    if second in _movable(work):
        new = quoted(work.definer.fresh(second.stem))
        actions.append(f"CHANGE {quoted(second.name)} {new} {_restated(second, second.sql_type)}")
    work.alter("several", *actions)


def keep_shape(work: Work) -> None:
    """The count and the types of the columns stay: only the statement tells that the values moved."""
    column = work.rng.choice(work.shape.free)
    new = quoted(work.definer.fresh(column.stem))
    work.alter(
        "keep shape", f"DROP {quoted(column.name)}", f"ADD {new} INT NOT NULL DEFAULT {work.rng.randint(1, 9)} FIRST"
    )


def index(work: Work) -> None:
    """Changes nothing that a row shows."""
    if work.rng.random() < 0.5:
        work.alter("no change", f"COMMENT = 'drop column {work.rng.randint(1, 99)}'")
    else:
        work.alter("no change", "ENGINE=InnoDB")


def set_default(work: Work) -> None:
    column = work.rng.choice([c for c in work.shape.free if c.type in {"int", "bigint"}])
    work.alter("default", f"ALTER COLUMN {quoted(column.name)} SET DEFAULT {work.rng.randint(1, 99)}")


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
    sqls = [
        f"CREATE TABLE IF NOT EXISTS {work.shape.sql} (surprise_1 TEXT)",
        f"CREATE TABLE IF NOT EXISTS {work.shape.sql} LIKE {work.shape.sql}",
        f"DROP TABLE IF EXISTS {quoted(work.table.database)}.{quoted(work.definer.fresh('never'))}",
        f"CREATE DATABASE IF NOT EXISTS {quoted(work.table.database)} CHARACTER SET binary",
    ]
    if work.session.mariadb:
        column = quoted(work.shape.columns[0].name)
        sqls.append(
            f"ALTER TABLE {work.shape.sql} ADD COLUMN IF NOT EXISTS {column} TEXT, DROP COLUMN IF EXISTS nothing"
        )
    work.definer.run(work.session, "vain", work.rng.choice(sqls), silent=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of DDL: what runs it, and which tables it can be run on."""

    run: Callable[[Work], None]
    fits: Callable[[Work], bool] = lambda _: True
    narrow: bool = False
    """Also on tables whose columns all are INT NOT NULL."""


def _room(work: Work) -> bool:
    return len(work.shape.columns) < MOST_COLUMNS


def _few_tables(work: Work) -> bool:
    return len(work.definer.tables.names()) < 10


KINDS: tuple[Kind, ...] = (
    Kind(run=add_first, fits=_room),
    Kind(run=add_somewhere, fits=_room),
    Kind(run=add_zero, fits=_room),
    Kind(run=add_two, fits=_room),
    Kind(run=drop, fits=lambda work: len(_droppable(work)) > 3),
    Kind(run=drop_then_add, fits=lambda work: len(_droppable(work)) > 3),
    Kind(run=rename_column, fits=lambda work: bool(_movable(work)), narrow=True),
    Kind(run=widen, fits=lambda work: bool(_widenable(work))),
    Kind(run=change, fits=lambda work: bool(_widenable(work))),
    Kind(run=move, fits=lambda work: bool(_movable(work))),
    Kind(run=append_member, fits=lambda work: any(c.type == "enum" and len(c.members) < 9 for c in work.shape.columns)),
    Kind(run=several, fits=lambda work: len(_droppable(work)) > 4),
    Kind(run=keep_shape, fits=lambda work: work.definer.tables.is_narrow(work.table), narrow=True),
    Kind(run=keep_shape, fits=lambda work: work.definer.tables.is_narrow(work.table), narrow=True),
    Kind(run=index, narrow=True),
    Kind(run=set_default, fits=lambda work: any(c.type in {"int", "bigint"} for c in work.shape.free)),
    Kind(run=rename_table, narrow=True),
    Kind(run=swap_tables, narrow=True),
    Kind(run=create_like, fits=_few_tables, narrow=True),
    Kind(run=create_select, fits=lambda work: _few_tables(work) and not work.shape.auto_increment),
    Kind(run=truncate, narrow=True),
    Kind(run=drop_database, narrow=True),
    Kind(run=temporary, narrow=True),
    Kind(run=view, narrow=True),
    Kind(run=vain, narrow=True),
    Kind(run=vain),
    Kind(run=drop_table, fits=lambda work: len(work.definer.tables.names()) > 5),
)
