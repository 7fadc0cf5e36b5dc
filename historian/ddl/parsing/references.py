"""REFERENCES of a foreign key: the table, its columns, and what becomes of rows when those that they reference change."""

from __future__ import annotations

from historian.ddl.parsing.cursor import Cursor
from historian.ddl.parsing.definitions import NOW, ReferenceSpec

__all__ = ["parse_reference"]

_ACTIONS = (
    (("SET", "NULL"), "set null"),
    (("SET", "DEFAULT"), "set default"),
    (("CASCADE",), "cascade"),
    (("NO", "ACTION"), ""),
    (("RESTRICT",), ""),
)


def parse_reference(cursor: Cursor) -> ReferenceSpec:
    """Takes what follows REFERENCES, up to an ON UPDATE of a column of moments."""
    parent = cursor.table_name_in("")
    columns: list[str] = []
    if cursor.accept("("):
        columns.append(cursor.column_name())
        while cursor.accept(","):
            columns.append(cursor.column_name())
        cursor.expect(")")
    actions = {"DELETE": "", "UPDATE": ""}
    while True:
        if cursor.accept("MATCH"):
            cursor.name()
        elif cursor.key == "ON" and cursor.following() in actions and cursor.following(2) not in NOW:
            event = cursor.following()
            cursor.at += 2
            actions[event] = _action(cursor)
        else:
            return ReferenceSpec(
                parent=parent, columns=tuple(columns), on_delete=actions["DELETE"], on_update=actions["UPDATE"]
            )


def _action(cursor: Cursor) -> str:
    for words, action in _ACTIONS:
        if cursor.accept(*words):
            return action
    raise cursor.fail("an action of a foreign key")
