"""Runs and notes DDL statements while others write."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pymysql

from historian.names import TableName
from workload.notes import Effect, NotedChange, NotedDdl, NotedTransaction
from workload.registry import Tables
from workload.session import Session
from workload.shapes import ColumnShape, Shape, quoted, shape_of
from workload.spelling import spelled
from workload.tables import ADDED, TABLES, InitialTable

__all__ = ["Definer", "Work"]


class Definer:
    """Runs DDL. One at a time does so, over any connection; the schemas it looks at cannot change under it."""

    def __init__(self, tables: Tables, rng: random.Random, databases: tuple[str, str], *, create_select: bool) -> None:
        self.tables = tables
        self.rng = rng
        self.databases = databases
        self.create_select = create_select
        self.noted: list[NotedTransaction] = []
        self._fresh = 100

    # -- running -----------------------------------------------------------------------------------------------------

    def run(
        self,
        session: Session,
        kind: str,
        sql: str,
        *,
        effects: tuple[Effect, ...] = (),
        vanished: tuple[NotedChange, ...] = (),
        made: Callable[[], tuple[NotedChange, ...]] = tuple,
        silent: bool = False,
    ) -> None:
        """Runs a statement and notes it. ``made`` reads the rows that came with it; ``silent``: the log may leave it out."""
        sql = spelled(sql, self.rng)
        try:
            session.run(sql)
        except pymysql.MySQLError as error:
            error.args = (*error.args, sql)
            raise
        gtid = session.committed()
        if not gtid:
            if silent:
                return
            raise AssertionError(f"no GTID for {sql}")
        ddl = NotedDdl(kind=kind, sql=sql, effects=effects, vanished=vanished)
        self.noted.append(NotedTransaction(gtid=gtid, changes=made(), ddl=ddl))

    def fresh(self, stem: str) -> str:
        """A name that no column or table has had."""
        self._fresh += 1
        return f"{stem}_{self._fresh}"

    def table_sql(self, session: Session, table: TableName) -> str:
        """The name, without its database where that is the connection's own and chance wants it."""
        if self.rng.random() < 0.5:
            session.connection.select_db(table.database)
            return quoted(table.table)
        return f"{quoted(table.database)}.{quoted(table.table)}"

    def alter(self, session: Session, kind: str, table: TableName, *actions: str) -> None:
        self.run(session, kind, f"ALTER TABLE {self.table_sql(session, table)} {', '.join(actions)}")

    # -- tables ------------------------------------------------------------------------------------------------------

    def create_databases(self, session: Session) -> None:
        first, second = self.databases
        self.run(session, "create database", f"CREATE DATABASE {quoted(first)} CHARACTER SET utf8mb4")
        self.run(session, "create database", f"CREATE DATABASE IF NOT EXISTS {quoted(second)} DEFAULT CHARSET latin1")

    def create(self, session: Session, initial: InitialTable, table: TableName) -> None:
        options = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
        sql = f"CREATE TABLE {self.table_sql(session, table)} ({initial.columns}){options}"
        self.run(session, "create table", sql, effects=(Effect(old=None, new=table),))
        self.tables.add(table, narrow=initial.narrow)

    def create_all(self, session: Session) -> None:
        for initial in TABLES:
            self.create(session, initial, TableName(self.databases[0], initial.name))

    def take_rows(self, session: Session, kind: str, table: TableName, verb: str, effects: tuple[Effect, ...]) -> None:
        """TRUNCATE or DROP, with the rows that go: nobody can write between reading them and the statement."""
        name = f"{quoted(table.database)}.{quoted(table.table)}"
        session.run(f"LOCK TABLES {name} WRITE")
        try:
            key = shape_of(session, table).key
            rows = session.rows(f"SELECT * FROM {name}")
            vanished = tuple(NotedChange(table=table, before=row, after=None, key=key) for row in rows)
            sql = f"{verb} {self.table_sql(session, table)}"
            self.run(session, kind, sql, effects=effects, vanished=vanished)
        finally:
            session.run("UNLOCK TABLES")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a kind of DDL gets to work on."""

    definer: Definer
    session: Session
    table: TableName
    shape: Shape
    rng: random.Random

    def alter(self, kind: str, *actions: str) -> None:
        self.definer.alter(self.session, kind, self.table, *actions)

    def place(self) -> str:
        return self.rng.choice(("FIRST", "", f"AFTER {quoted(self.rng.choice(self.shape.columns).name)}"))

    def place_behind(self, column: ColumnShape) -> str:
        others = [other for other in self.shape.columns if other.name != column.name]
        return self.rng.choice(("", "FIRST", f"AFTER {quoted(self.rng.choice(others).name)}"))

    def addition(self, *, stem: str | None = None) -> str:
        added = self.rng.choice([one for one in ADDED if stem in (None, one.stem)])
        return f"ADD COLUMN {quoted(self.definer.fresh(added.stem))} {added.clause(self.rng)}"
