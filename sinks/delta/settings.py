"""What a Delta sink is told: where the lake is and how its tables are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from historian.errors import ConfigError
from sinks.tables import tells_apart

__all__ = ["KINDS", "DeltaSettings"]

KINDS = ("changelog", "mirror", "history")
"""The kinds of tables that a source's table can have in the lake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSettings:
    """Settings of a Delta sink.

    Attributes:
        path: directory of the lake; every table, ours and the data's, is a directory in it.
        catalog: in its place a schema of a Spark catalog, as ``catalog.schema``: the lake is where that has its tables, and each
            table is listed there under the present name of its source.
        changelog: name of a table's changelog, with ``{database}`` and ``{table}``; None: no changelogs.
        mirror: the same of its mirror; None: no mirrors.
        mirror_deletes: "hard": a row that is deleted goes; "soft": it stays, marked in ``_deleted`` and ``_deleted_at``.
        history: the same of its history; None: no histories.
        history_names: "plain": a history's times are ``valid_from`` and ``valid_to``; "auto_cdc": ``__START_AT`` and
            ``__END_AT``, as AUTO CDC calls them.
    """

    path: str = ""
    catalog: str = ""
    changelog: str | None = "{database}_{table}_changes"
    mirror: str | None = "{database}_{table}"
    mirror_deletes: Literal["hard", "soft"] = "hard"
    history: str | None = None
    history_names: Literal["plain", "auto_cdc"] = "plain"

    def __post_init__(self) -> None:
        problems = []
        kinds: dict[str, str] = {}
        for key in KINDS:
            pattern = getattr(self, key)
            if pattern is None:
                continue
            if not tells_apart(pattern):
                problems.append(f"expected a name with {{database}} and {{table}} @ $.{key} (got {pattern!r})")
            other = kinds.setdefault(pattern, key)
            if other != key:
                problems.append(f"expected another name than the {other}'s @ $.{key} (got {pattern!r})")
        if not kinds:
            problems.append("expected a changelog, a mirror or a history @ $ (got none)")
        if bool(self.path) == bool(self.catalog):
            problems.append("expected a path or a catalog @ $ (got both)" if self.path else "missing @ $.path")
        if problems:
            raise ConfigError(
                "a Delta sink that cannot work", problems=tuple(problems), where=self.path or self.catalog
            )
