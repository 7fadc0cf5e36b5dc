"""What a Delta sink is told: where the lake is and how its tables are called."""

from __future__ import annotations

from dataclasses import dataclass

from historian.errors import ConfigError
from sinks.tables import tells_apart

__all__ = ["DeltaSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSettings:
    """Settings of a Delta sink.

    Attributes:
        path: directory of the lake; every table, ours and the data's, is a directory in it.
        catalog: in its place a schema of a Spark catalog, as ``catalog.schema``: the lake is where that has its tables, and each
            table is listed there under the present name of its source.
        changelog: name of a table's changelog, with ``{database}`` and ``{table}``; None: no changelogs.
        mirror: the same of its mirror; None: no mirrors.
    """

    path: str = ""
    catalog: str = ""
    changelog: str | None = "{database}_{table}_changes"
    mirror: str | None = "{database}_{table}"

    def __post_init__(self) -> None:
        problems = []
        for key in ("changelog", "mirror"):
            pattern = getattr(self, key)
            if pattern is not None and not tells_apart(pattern):
                problems.append(f"expected a name with {{database}} and {{table}} @ $.{key} (got {pattern!r})")
        if self.changelog is None and self.mirror is None:
            problems.append("expected a changelog, a mirror or both @ $ (got neither)")
        if self.changelog is not None and self.changelog == self.mirror:
            problems.append(f"expected another name than the changelog's @ $.mirror (got {self.mirror!r})")
        if bool(self.path) == bool(self.catalog):
            problems.append("expected a path or a catalog @ $ (got both)" if self.path else "missing @ $.path")
        if problems:
            raise ConfigError(
                "a Delta sink that cannot work", problems=tuple(problems), where=self.path or self.catalog
            )
