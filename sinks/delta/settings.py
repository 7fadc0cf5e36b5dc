"""What a Delta sink is told: where the lake is, how its tables are called, and what holds for some of them alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from historian.changelog.operations import POSITION_COLUMNS, RESERVED_COLUMNS
from historian.errors import ConfigError
from historian.globs import is_exact, matches
from historian.names import TableName
from historian.plans import evolution
from historian.plans.evolution import EVOLVE, EvolutionSettings
from historian.plans.shards import Into, IntoSettings, group_problems
from historian.plans.shards import evolution_problems as shard_problems
from historian.secret import Secret
from sinks.contract.tables import is_name, tells_apart
from sinks.shaping.rules import Rules

__all__ = ["KINDS", "WIDENING", "Compaction", "DeltaSettings", "TableSettings"]

KINDS = ("changelog", "mirror", "history")
"""The kinds of tables that a source's table can have in the lake."""


WIDENING = "delta.enableTypeWidening"
"""With it a column's type can become a wider one in place."""

_OURS = ("delta.columnMapping.mode", "delta.columnMapping.maxColumnId", "delta.feature.domainMetadata")
"""Without these a target could not follow its source: columns by their ids, offsets beside the rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """When small files are joined.

    Attributes:
        files: so many that are worth it are waited for.
        target_bytes: of a file; one of half that size is not small any more.
    """

    files: int
    target_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSettings:
    """What a Delta sink makes of a table.

    Attributes:
        changelog: name of a table's changelog, with ``{database}`` and ``{table}``; None: no changelogs.
        changelog_columns: which of :data:`historian.changelog.operations.POSITION_COLUMNS` its changelog has besides.
        mirror: the same of its mirror; None: no mirrors.
        mirror_deletes: "hard": a row that is deleted goes; "soft": it stays, marked in ``_deleted`` and ``_deleted_at``.
        history: the same of its history; None: no histories.
        history_names: "plain": a history's times are ``valid_from`` and ``valid_to``; "auto_cdc": ``__START_AT`` and
            ``__END_AT``, as AUTO CDC calls them.
        key: columns that tell rows apart in mirror and history in place of the primary key, by the names under which the table
            comes; later renames are followed. NULL is a value of its own. Empty: the primary key's columns.
        keyless: what a table without any key has: "changelog": only that; "rows": a mirror too, which holds each distinct
            row as often as the table does.
        mirror_every_us: how long a table's mirror and history may leave rows to later plans that its changelog has; 0: they take
            them with every plan. May change from run to run.
        cluster: whether mirrors are clustered by their key, and what is written to them is sorted by it.
        table_properties: Delta's, name and value, that a table's targets are made with. They win over those that we choose;
            None leaves one of ours out.
        compact: so many small files of a target are joined, between plans, to ones of that size in bytes, see
            :class:`Compaction`; None: none are. May change from run to run.
        writer: "native": files are written and committed by us; "spark": by Spark's own writer. May change from run to run.
        columns, exclude, mask, hash, truncate, compute, where: see :class:`sinks.shaping.rules.Rules`.
        evolution: what becomes of targets when the table's schema changes; may change from run to run.
        into: the one table that tables are shards of; None: the table is one by itself.
    """

    changelog: str | None = "{database}_{table}_changes"
    changelog_columns: tuple[str, ...] = ()
    mirror: str | None = "{database}_{table}"
    mirror_deletes: Literal["hard", "soft"] = "hard"
    history: str | None = None
    history_names: Literal["plain", "auto_cdc"] = "plain"
    key: tuple[str, ...] = ()
    keyless: Literal["changelog", "rows"] = "changelog"
    mirror_every_us: int = 0
    cluster: bool = False
    table_properties: tuple[tuple[str, str | None], ...] = ()
    compact: tuple[int, int] | None = (50, 128_000_000)
    writer: Literal["native", "spark"] = "native"
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    mask: tuple[tuple[str, str | None], ...] = ()
    hash: tuple[tuple[str, Secret], ...] = ()
    truncate: tuple[tuple[str, int], ...] = ()
    compute: tuple[tuple[str, str], ...] = ()
    where: str = ""
    evolution: EvolutionSettings = EVOLVE
    into: IntoSettings | None = None

    @property
    def rules(self) -> Rules:
        """What is done to columns and rows."""
        return Rules(**{f.name: getattr(self, f.name) for f in fields(Rules)})

    @property
    def compaction(self) -> Compaction | None:
        """When small files are joined; None: never."""
        return None if self.compact is None else Compaction(files=self.compact[0], target_bytes=self.compact[1])

    @property
    def shape(self) -> str:
        """What of this the targets of a table keep for good: kinds, the kinds' shapes, expressions; names are not of it."""
        asked = " ".join(word for word in POSITION_COLUMNS if word in self.changelog_columns)
        shapes = {"changelog": asked, "mirror": self.mirror_deletes, "history": self.history_names}
        # What is so by default is not said, as in lakes of earlier releases.
        plain = {"changelog": "", "mirror": "hard", "history": "plain"}
        kinds = [
            kind if shapes.get(kind) == plain.get(kind) else f"{kind} ({shapes[kind]})"
            for kind in KINDS
            if getattr(self, kind) is not None
        ]
        kinds += [f"key ({', '.join(self.key)})"] if self.key else []
        kinds += ["rows"] if self.keyless == "rows" else []
        kinds += [f"{name} ({text})" for name, text in self.compute]
        kinds += [f"where ({self.where})"] if self.where else []
        kinds += [Into.of(self.into).shape] if self.into is not None else []
        return ",".join(kinds)

    def problems(self, fixed: Collection[str] = ()) -> list[str]:
        """What cannot work, each with the key that it stands under.

        Args:
            fixed: of :data:`KINDS` those whose names are one table's alone.
        """
        problems = list(self.rules.problems())
        kinds: dict[str, str] = {}
        for key in KINDS:
            pattern = getattr(self, key)
            if pattern is None:
                continue
            if not (is_name(pattern) if key in fixed else tells_apart(pattern)):
                problems.append(f"expected a name with {{database}} and {{table}} @ $.{key} (got {pattern!r})")
            other = kinds.setdefault(pattern, key)
            if other != key:
                problems.append(f"expected another name than the {other}'s @ $.{key} (got {pattern!r})")
        problems += self._property_problems()
        if self.mirror_every_us and self.changelog is None:
            problems.append("expected a changelog, from which rows are applied @ $.mirror_every (got none)")
        problems += self._column_problems()
        if not kinds:
            problems.append("expected a changelog, a mirror or a history @ $ (got none)")
        if self.writer == "spark" and self.keyless == "rows":
            problems.append(
                "expected native, where keyless is rows: a MERGE does not count rows @ $.writer (got spark)"
            )
        if self.compact is not None and (self.compact[0] < 2 or self.compact[1] < 1):
            problems.append(f"expected two files or more, and a size @ $.compact (got {self.compact})")
        if len(set(self.key)) < len(self.key):
            problems.append(f"expected each column once @ $.key (got {', '.join(self.key)})")
        if self.keyless == "rows" and self.mirror_deletes == "soft":
            problems.append("expected changelog, where mirror_deletes is soft @ $.keyless (got rows)")
        chosen = dict(self.evolution)
        wrong = evolution.problems(self.evolution)
        problems += [f"{expected} @ $.evolution.{key} (got {chosen[key]!r})" for key, expected in wrong]
        if self.into is not None:
            problems += self._shard_problems(known=not wrong)
        return problems

    def _property_problems(self) -> Iterator[str]:
        for name, value in self.table_properties:
            if name.startswith("historian.") or name in _OURS:
                yield f"expected no setting of this project's own @ $.table_properties (got {name!r})"
            known = not evolution.problems(self.evolution)
            if name == WIDENING and value != "true" and known:
                word = evolution.action_for(self.evolution, "widen_type")
                if word == "apply":
                    yield f"expected new_column, quarantine or fail, without {name} @ $.evolution.widen_type (got {word!r})"

    def _column_problems(self) -> Iterator[str]:
        for word in self.changelog_columns:
            if word not in POSITION_COLUMNS:
                yield f"expected one of {', '.join(POSITION_COLUMNS)} @ $.changelog_columns (got {word!r})"
        if self.changelog_columns and self.changelog is None:
            yield "expected a changelog, which is to have them @ $.changelog_columns (got none)"
        for name, _ in self.compute:
            if name.lower() in RESERVED_COLUMNS and self.changelog is not None:
                yield f"expected another name than the changelog's own columns have @ $.compute.{name}"

    def _shard_problems(self, *, known: bool) -> Iterator[str]:
        if self.key:
            yield f"expected no key of their own, where into is set @ $.key (got {', '.join(self.key)})"
        if self.keyless == "rows":
            yield "expected changelog, where into is set @ $.keyless (got rows)"
        if self.mirror_every_us:
            yield "expected none, where into is set @ $.mirror_every (got one)"
        if known:
            yield from shard_problems(self.evolution)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSettings(TableSettings):
    """Settings of a Delta sink; those of tables hold for all of which :attr:`tables` says nothing else.

    Attributes:
        path: directory of the lake; every table, ours and the data's, is a directory in it.
        catalog: in its place a schema of a Spark catalog, as ``catalog.schema``: the lake is where that has its tables. Each
            table is listed there under the present name of its source.
        tables: globs on ``database.table``, each with names of :class:`TableSettings` and their values. Of those that match a
            table the last one that says something wins, of what is said of columns by name the last one that names a column.
    """

    path: str = ""
    catalog: str = ""
    tables: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    @property
    def defers(self) -> bool:
        """Whether the mirror or history of some table may be behind its changelog."""
        chosen = [dict(values).get("mirror_every_us") for _, values in self.tables]
        return bool(self.mirror_every_us) or any(chosen)

    def rules_of(self, name: TableName) -> Rules:
        """What is done to columns and rows of the table that came into the lake under *name*."""
        return self.for_table(name).rules

    def for_table(self, name: TableName) -> TableSettings:
        """The settings of the table that came into the lake under *name*; of shards' one table what is said of the shards too."""
        return self._with(value for glob, chosen in self.tables if _is_about(glob, chosen, name) for value in chosen)

    def _group_problems(self) -> list[str]:
        """What cannot work of all that is said of tables which are one."""
        problems: list[str] = []
        globs: dict[str, str] = {}
        for glob, chosen in self.tables:
            into = dict(chosen).get("into")
            if into is None:
                continue
            problems += [p.replace("@ $", f"@ $.tables[{glob!r}]") for p in group_problems(glob, into)]
            other = globs.setdefault(into[0], glob)
            if other != glob:
                problems.append(
                    f"expected another table than that of {other!r} @ $.tables[{glob!r}].into.name (got {into[0]!r})"
                )
            one = self.for_table(Into.of(into).name)
            problems += [p.replace("@ $", f"@ $.tables[{glob!r}]") for p in one.problems(KINDS) if one.into == into]
        return problems

    def _with(self, values: Iterable[tuple[str, Any]]) -> TableSettings:
        chosen = {f.name: getattr(self, f.name) for f in fields(TableSettings)}
        for key, value in values:
            chosen[key] = _both(chosen[key], value) if key in _BY_COLUMN else value
        return TableSettings(**chosen)

    def __post_init__(self) -> None:
        problems = self.problems()
        if bool(self.path) == bool(self.catalog):
            problems.append("expected a path or a catalog @ $ (got both)" if self.path else "missing @ $.path")
        for pattern, values in self.tables:
            fixed = dict(values) if is_exact(pattern) or dict(values).get("into") else ()
            problems += [
                problem.replace("@ $", f"@ $.tables[{pattern!r}]") for problem in self._with(values).problems(fixed)
            ]
        problems += self._group_problems()
        if problems := list(dict.fromkeys(problems)):
            raise ConfigError(
                "a Delta sink that cannot work", problems=tuple(problems), where=self.path or self.catalog
            )


def _is_about(glob: str, chosen: Iterable[tuple[str, Any]], name: TableName) -> bool:
    into = dict(chosen).get("into")
    return matches(glob.split(".", 1), name) or (into is not None and into[0] == str(name))


_BY_COLUMN = ("exclude", "mask", "hash", "truncate", "compute")


def _both(held: Iterable[Any], news: Iterable[Any]) -> tuple[Any, ...]:
    """What is said of columns in both; pairs of a name and a value, or names."""
    merged = {_name(one): one for one in (*held, *news)}
    return tuple(merged.values())


def _name(one: Any) -> str:
    return str(one if isinstance(one, str) else one[0]).lower()
