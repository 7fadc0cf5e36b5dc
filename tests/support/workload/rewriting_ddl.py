"""DDL behind which rows have other values than before, which no row event tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from workload.definer import Work
from workload.rewrites import COMPUTED, EXPRESSIONS, REWRITES
from workload.session import Session
from workload.shapes import ColumnShape, quoted
from workload.table_ddl import swap_tables

__all__ = [
    "add_computed",
    "add_counter",
    "add_generated",
    "alter_ignore",
    "change_generated",
    "convert_table",
    "convertible",
    "generated",
    "ignore_duplicates",
    "lax",
    "may_be_generated",
    "not_null",
    "nullable",
    "rewritable",
    "rewrite",
    "swap_rewritten",
    "timestamp_not_null",
    "timestamps",
]

_IN_TURN = ("VIRTUAL", "STORED")


@contextmanager
def lax(session: Session) -> Iterator[None]:
    """The session is not strict meanwhile: what does not fit is cut, and NULL becomes a value."""
    before = session.one("SELECT @@SESSION.sql_mode")
    session.run("SET SESSION sql_mode = ''")
    try:
        yield
    finally:
        session.run(f"SET SESSION sql_mode = '{before}'")


def rewritable(work: Work) -> list[ColumnShape]:
    return [column for column in work.shape.free if column.type in REWRITES and "on update" not in column.extra]


def nullable(work: Work) -> list[ColumnShape]:
    return [column for column in work.shape.free if column.nullable]


def timestamps(work: Work) -> list[ColumnShape]:
    return [column for column in nullable(work) if column.type in {"timestamp", "datetime"}]


def generated(work: Work) -> list[ColumnShape]:
    return [column for column in work.shape.columns if column.generated]


def may_be_generated(work: Work) -> bool:
    """MariaDB 11.8.9 leaves generated columns out of row images, which neither histories nor changelogs alone can do without."""
    return bool(work.shape.free) and not str(work.session.one("SELECT VERSION()")).startswith("11.8.9")


def rewrite(work: Work) -> None:
    """Another type, at times under another name or in another place."""
    column = work.rng.choice(rewritable(work))
    sql_type = work.rng.choice(REWRITES[column.type])
    name = quoted(column.name)
    new = quoted(work.definer.fresh(column.stem)) if work.rng.random() < 0.3 else name
    place = work.place_behind(column) if work.rng.random() < 0.3 else ""
    with lax(work.session):
        work.alter("rewrite", f"CHANGE {name} {new} {sql_type} NULL {place}")


def not_null(work: Work) -> None:
    column = work.rng.choice(nullable(work))
    with lax(work.session):
        work.alter("not null", f"MODIFY {quoted(column.name)} {column.sql_type} NOT NULL")


def timestamp_not_null(work: Work) -> None:
    """NULLs become the server's present time, or zeros."""
    column = work.rng.choice(timestamps(work))
    clause = work.rng.choice(("TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", "TIMESTAMP NOT NULL"))
    with lax(work.session):
        work.alter("timestamp not null", f"MODIFY {quoted(column.name)} {clause}")


def alter_ignore(work: Work) -> None:
    """MariaDB alone has it."""
    column = work.rng.choice(nullable(work))
    sql = f"ALTER IGNORE TABLE {work.shape.sql} MODIFY {quoted(column.name)} {column.sql_type} NOT NULL"
    work.definer.run(work.session, "alter ignore", sql)


def ignore_duplicates(work: Work) -> None:
    """Rows go where a new key finds them twice; then the key goes, so that writers need not know of it."""
    column, name = work.rng.choice(work.shape.free), quoted(work.definer.fresh("once"))
    sql = f"ALTER IGNORE TABLE {work.shape.sql} ADD UNIQUE KEY {name} ({quoted(column.name)})"
    work.definer.run(work.session, "ignore duplicates", sql)
    work.alter("ignore duplicates", f"DROP KEY {name}")


def add_generated(work: Work) -> None:
    source, made = work.rng.choice(work.shape.free), work.rng.choice(EXPRESSIONS)
    name, kept = quoted(work.definer.fresh("made")), work.rng.choice(_IN_TURN)
    text = made.text.format(quoted(source.name))
    place = work.rng.choice(("", "FIRST"))
    work.alter("add generated", f"ADD COLUMN {name} {made.type} GENERATED ALWAYS AS ({text}) {kept} {place}")


def change_generated(work: Work) -> None:
    """Another expression, a plain column, or none."""
    column = work.rng.choice(generated(work))
    source, made = work.rng.choice(work.shape.free), work.rng.choice(EXPRESSIONS)
    name, kept = quoted(column.name), "STORED" if "stored" in column.extra else "VIRTUAL"
    text = made.text.format(quoted(source.name))
    action = work.rng.choice(
        (
            f"MODIFY {name} {made.type} GENERATED ALWAYS AS ({text}) {kept}",
            f"DROP {name}, ADD {name} {made.type} GENERATED ALWAYS AS ({text}) {kept}",
            f"MODIFY {name} {column.sql_type} NULL",
            f"DROP COLUMN {name}",
        )
    )
    work.alter("change generated", action)


def add_counter(work: Work) -> None:
    """A new AUTO_INCREMENT column, or one that is there, whose NULLs and zeros become numbers. At times it ceases at once."""
    numbers = [column for column in work.shape.free if column.type in {"int", "bigint"}]
    if numbers and work.rng.random() < 0.4:
        column = quoted(work.rng.choice(numbers).name)
        action = f"MODIFY {column} BIGINT NOT NULL AUTO_INCREMENT, ADD KEY ({column})"
    else:
        column = quoted(work.definer.fresh("counter"))
        action = f"ADD COLUMN {column} BIGINT NOT NULL AUTO_INCREMENT, ADD KEY ({column})"
    with lax(work.session):
        work.alter("add counter", action)
        if work.rng.random() < 0.5:
            work.alter("end counter", f"MODIFY {column} BIGINT NULL, DROP KEY {column}")


def add_computed(work: Work) -> None:
    work.alter("add computed", f"ADD COLUMN {quoted(work.definer.fresh('computed'))} {work.rng.choice(COMPUTED)}")


def convertible(work: Work) -> bool:
    """A server damages labels that are not of the same bytes in both character sets, so that nobody knows them."""
    return all(label.isascii() for column in work.shape.columns for label in column.labels)


def convert_table(work: Work) -> None:
    """All texts get a character set that lacks some of their characters."""
    charset = work.rng.choice(("latin1", "utf8mb4", "ascii"))
    with lax(work.session):
        work.alter("convert table", f"CONVERT TO CHARACTER SET {charset}")


def swap_rewritten(work: Work) -> None:
    """A table whose rows have changed unseen gets another one's name at once."""
    rewrite(work)
    swap_tables(work)
