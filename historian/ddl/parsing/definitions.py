"""Columns, types, defaults and keys as a statement defines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from historian.names import TableName

__all__ = [
    "NOW",
    "CharsetClause",
    "ColumnSpec",
    "DefaultSpec",
    "KeyKind",
    "KeySpec",
    "ReferenceSpec",
    "TypeSpec",
]

NOW = frozenset(("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"))
"""Words for the moment of a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetClause:
    """CHARACTER SET and COLLATE as written, in normal form.

    Attributes:
        charset: "" for ``CHARACTER SET DEFAULT``, None where not said.
        binary: the BINARY attribute of a character type: the byte-wise collation of the charset.
    """

    charset: str | None = None
    collation: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSpec:
    """A type as written, aliases resolved; the charset may still turn it into another.

    Attributes:
        name: the server's ``data_type``.
        length: the first number in parentheses; ``scale`` the second.
        labels: labels of ENUM and SET as the client sent them, or the bytes of binary literals
            (:func:`historian.charsets.client_text.declared_label`).
    """

    name: str
    length: int | None = None
    scale: int | None = None
    labels: tuple[str | bytes, ...] = ()
    unsigned: bool = False
    zerofill: bool = False
    charset: CharsetClause = CharsetClause()
    compressed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSpec:
    """A DEFAULT clause.

    Attributes:
        kind: "now" stands for CURRENT_TIMESTAMP and its synonyms outside of parentheses.
        text: what a string says, a number or boolean as digits, bytes as ``0x41`` or ``0b1``, the text of an expression.
        fraction: digits of "now".
        literal: for an expression that is nothing but a literal in parentheses: that literal.
        introduced: whether a character set stood before it, so that its bytes count and not its characters.
        raw: these bytes, and those of MariaDB's ``x'…'``, which is text where ``0x…`` is a number.
        is_time: whether it is a literal of TIME, which the server adds to the day of the statement where a column is of moments.
    """

    kind: Literal["null", "string", "number", "bytes", "now", "expression"]
    text: str = ""
    fraction: int = 0
    literal: DefaultSpec | None = None
    introduced: bool = False
    raw: bytes = b""
    is_time: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSpec:
    """What a foreign key references, and what becomes of its rows: see :class:`historian.schema.snapshots.ForeignKey`.

    Attributes:
        parent: without a database where it is that of the key's own table.
        columns: of the parent; () where they are not said, for its primary key.
        constraint: the name that the key was given; "" where the server makes one up.
    """

    parent: TableName
    columns: tuple[str, ...] = ()
    on_delete: str = ""
    on_update: str = ""
    constraint: str = ""


KeyKind = Literal["primary", "unique", "index", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """A key of a table; a column is None where the key part is an expression. ``inline``: said in a column definition.

    ``prefixes``: see :class:`historian.schema.snapshots.UniqueKey`, as written. ``without_overlaps``: the period whose end and start are the
    key's last columns. ``references``: of a foreign key; None where it names nothing.
    """

    kind: KeyKind
    columns: tuple[str | None, ...]
    prefixes: tuple[int, ...] = ()
    name: str | None = None
    if_not_exists: bool = False
    inline: bool = False
    without_overlaps: str = ""
    references: ReferenceSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """A column definition; what is not said is None or False.

    ``system_versioned``: it says WITH SYSTEM VERSIONING, by which CREATE TABLE makes the whole table versioned; False: WITHOUT.
    """

    name: str
    type: TypeSpec
    nullable: bool | None = None
    default: DefaultSpec | None = None
    on_update: int | None = None
    auto_increment: bool = False
    generated: Literal["virtual", "stored"] | None = None
    generation_expression: str | None = None
    invisible: bool = False
    primary: bool = False
    unique: bool = False
    references: ReferenceSpec | None = None
    system_versioned: bool | None = None
    compressed: bool = False

    def keys(self) -> tuple[KeySpec, ...]:
        """The keys that the definition brings with it."""
        if not (self.primary or self.unique or self.references):
            return ()
        flags: tuple[tuple[KeyKind, bool], ...] = (
            ("primary", self.primary),
            ("unique", self.unique),
            ("foreign", self.references is not None),
        )
        return tuple(
            KeySpec(
                kind=kind,
                columns=(self.name,),
                inline=True,
                references=self.references if kind == "foreign" else None,
            )
            for kind, is_so in flags
            if is_so
        )
