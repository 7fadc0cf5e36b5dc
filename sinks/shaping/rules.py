"""What is done to the columns of one table, by their names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from historian.secret import Secret, mark_of

__all__ = ["COMPUTED_IDS", "NO_RULES", "PLAIN", "Action", "Rules"]


COMPUTED_IDS = 2_000_000_000
"""Ids of computed columns are above, those of the source's columns below."""
_MARK = b"historian_tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is done to the values of one column.

    Attributes:
        kind: "" (nothing), "left out", "mask", "hash" or "truncate".
        text: the constant of a mask, as the server writes a default of the column's type; None: NULL.
        salt: of a hash.
        characters: that a truncated text keeps at most.
    """

    kind: str = ""
    text: str | None = None
    salt: Secret = field(default=Secret(""), repr=False)
    characters: int = 0

    @property
    def mark(self) -> str:
        """What a lake keeps of it, to tell it from another; no salt can be had from it."""
        if self.kind == "mask":
            return f"mask {self.text!r}"
        if self.kind == "hash":
            return f"hash {mark_of(self.salt.text, _MARK)}"
        return f"truncate {self.characters}" if self.kind == "truncate" else self.kind

    def has_mark(self, mark: str) -> bool:
        """Whether a lake keeps that *mark* of it; earlier releases kept a longer one of a salt."""
        if self.kind == "hash" and len(mark) > len(self.mark):
            return mark == f"hash {hashlib.sha256(b'salt' + self.salt.text.encode()).hexdigest()[:8]}"
        return mark == self.mark


PLAIN = Action()
"""Values as they are."""

_LEFT_OUT = Action(kind="left out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a configuration says of one table; column names without regard to letter case, as on the server.

    Attributes:
        columns: the only ones that are wanted; None: all.
        exclude: that are not.
        mask: name to the constant in the place of its values.
        hash: name to salt.
        truncate: name to the characters that stay.
        compute: name of a new column to its Spark SQL expression, in order.
        where: a Spark SQL expression that is true for the rows that are wanted; "": all are.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    mask: tuple[tuple[str, str | None], ...] = ()
    hash: tuple[tuple[str, Secret], ...] = ()
    truncate: tuple[tuple[str, int], ...] = ()
    compute: tuple[tuple[str, str], ...] = ()
    where: str = ""

    def action(self, name: str) -> Action:
        """What is done to the column of that name; where several things are said of it, the one that shows least."""
        wanted = name.lower()
        if wanted in _lower(self.exclude) or (self.columns is not None and wanted not in _lower(self.columns)):
            return _LEFT_OUT
        for key, value in self.mask:
            if key.lower() == wanted:
                return Action(kind="mask", text=value)
        for key, salt in self.hash:
            if key.lower() == wanted:
                return Action(kind="hash", salt=salt)
        for key, characters in self.truncate:
            if key.lower() == wanted:
                return Action(kind="truncate", characters=characters)
        return PLAIN

    @property
    def has_expressions(self) -> bool:
        """Whether rows must pass through Spark's expressions."""
        return bool(self.compute or self.where)

    def problems(self) -> Iterator[str]:
        """What cannot work, each with the key that it stands under."""
        for name, characters in self.truncate:
            if characters < 1:
                yield f"expected at least one character @ $.truncate.{name} (got {characters})"
        for name, _ in self.hash:
            for key in ("mask", "truncate"):
                if name.lower() in {other.lower() for other, _ in getattr(self, key)}:
                    yield f"expected one thing to be done to a column, not {key} as well @ $.hash.{name}"
        if self.columns is not None and self.exclude:
            yield "expected columns that are wanted, or those that are not @ $.columns"

    def is_listed(self, name: str) -> bool:
        """Whether the rules name a column so that its values do not show as they are."""
        return name.lower() in _lower(self.exclude) or self.action(name).kind not in ("", "left out")

    def place(self, name: str) -> str:
        """The key under which the rules say what is done to the column of that name."""
        action = self.action(name)
        if action.kind != "left out":
            return f"{action.kind}.{name}"
        return f"columns.exclude.{name}" if name.lower() in _lower(self.exclude) else f"columns.{name}"


def _lower(names: tuple[str, ...]) -> set[str]:
    return {name.lower() for name in names}


NO_RULES = Rules()
