"""DDL on columns, and what each kind needs to find in a table."""

from __future__ import annotations

from workload.definer import Work
from workload.shapes import ColumnShape, quoted
from workload.tables import ADDED, CONVERSIONS, WIDENINGS

__all__ = [
    "add_first",
    "add_somewhere",
    "add_two",
    "add_zero",
    "append_member",
    "change",
    "convert",
    "convertible",
    "drop",
    "drop_then_add",
    "droppable",
    "index",
    "keep_shape",
    "movable",
    "move",
    "rename_column",
    "set_default",
    "several",
    "widen",
    "widenable",
]


def _restated(column: ColumnShape, sql_type: str) -> str:
    """A column's definition with another type, its nullability and default as they were."""
    null = "NULL" if column.nullable else "NOT NULL"
    default = "" if column.default in (None, "NULL") else f" DEFAULT '{column.default.replace(chr(39), chr(39) * 2)}'"
    return f"{sql_type} {null}{default}"


def droppable(work: Work) -> list[ColumnShape]:
    return [column for column in work.shape.free if "on update" not in column.extra]


def movable(work: Work) -> list[ColumnShape]:
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
    # Keys stay numbers that statements count with, and so does what keyless rows are found by.
    return [kind for kind in found if column.free or not kind.startswith(("DECIMAL", "DOUBLE", "DATETIME"))]


def widenable(work: Work) -> list[tuple[ColumnShape, str]]:
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
    work.alter("drop", f"DROP COLUMN {quoted(work.rng.choice(droppable(work)).name)}")


def drop_then_add(work: Work) -> None:
    """The same name comes back with another type, in a second statement or in the same one."""
    column = work.rng.choice([c for c in droppable(work) if c.stem != "doc"])
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
        plain = work.rng.choice(movable(work))
        new = quoted(work.definer.fresh(plain.stem))
        work.alter("rename column", f"CHANGE {quoted(plain.name)} {new} {_restated(plain, plain.sql_type)}")


def widen(work: Work) -> None:
    column, wider = work.rng.choice(widenable(work))
    work.alter("modify", f"MODIFY {quoted(column.name)} {_restated(column, wider)}")


def change(work: Work) -> None:
    """CHANGE: another name and a wider type at once."""
    column, wider = work.rng.choice(widenable(work))
    new = quoted(work.definer.fresh(column.stem))
    work.alter(
        "change", f"CHANGE COLUMN {quoted(column.name)} {new} {_restated(column, wider)} {work.place_behind(column)}"
    )


def convertible(work: Work) -> list[ColumnShape]:
    return [column for column in movable(work) if column.free and column.type in CONVERSIONS]


def convert(work: Work) -> None:
    """Another type, which no lake's column follows."""
    column = work.rng.choice(convertible(work))
    sql_type = CONVERSIONS[column.type]
    work.alter("convert", f"MODIFY {quoted(column.name)} {_restated(column, sql_type)}")


def move(work: Work) -> None:
    column = work.rng.choice(movable(work))
    work.alter(
        "move", f"MODIFY COLUMN {quoted(column.name)} {_restated(column, column.sql_type)} {work.place_behind(column)}"
    )


def append_member(work: Work) -> None:
    column = work.rng.choice([c for c in work.shape.columns if c.type == "enum" and len(c.labels) < 9])
    labels = ",".join("'" + m.replace("'", "''") + "'" for m in (*column.labels, f"m{len(column.labels)}"))
    collate = column.sql_type.partition(") ")[2]
    work.alter("modify enum", f"MODIFY {quoted(column.name)} {_restated(column, f'ENUM({labels}) {collate}')}")


def several(work: Work) -> None:
    """Several actions in one statement."""
    first, second, third = work.rng.sample(droppable(work), 3)
    actions = [
        f"DROP {quoted(first.name)}",
        f"{work.addition()} FIRST",
        f"{work.addition(stem='count')} AFTER {quoted(third.name)}",
    ]
    if second in movable(work):
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
