"""What a connector reads and writes, as lineage has it: captured tables, targets, and which column comes from which.

Columns of targets are found by their ids in the targets themselves. So a renamed column keeps its lineage. One that was dropped and
added again has none of the former one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from connectors.config import KafkaSource, PipelineConfig, ServerSource
from connectors.sink_kinds import lakes
from historian.errors import HistorianError
from historian.names import TableName

if TYPE_CHECKING:
    from historian.schema.snapshots import Catalog, Snapshot
    from sinks.contract.base import TargetStatus
    from sinks.delta import DeltaSettings
    from sinks.delta.log.columns import DeltaField
    from sinks.shaping.bindings import Bindings
    from sinks.shaping.rules import Rules

__all__ = ["Came", "Dataset", "Link", "Links"]

_WORD = re.compile(r"`((?:[^`]|``)+)`|([^\W\d]\w*)")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A table; ``columns``: names and types, in order."""

    namespace: str
    name: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a column of a target comes from.

    Attributes:
        source: the captured table; ``column``: of it.
        masked: whether its values do not show.
        made: what was done to it; "": nothing.
    """

    source: Dataset
    column: str
    masked: bool = False
    made: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Captured tables and a target of theirs.

    Attributes:
        target: None: what is captured goes nowhere yet.
        came: the target's column to what it comes from; those of the connector's own are not there.
        filters: columns that say which rows there are.
    """

    sources: tuple[Dataset, ...]
    target: Dataset | None = None
    came: Mapping[str, tuple[Came, ...]] = field(default_factory=dict)
    filters: tuple[Came, ...] = ()


class Links:
    """The links of a connector. What is read of targets is kept until their tables change.

    Attributes:
        unread: paths of targets that the last look could not read.
    """

    def __init__(self, config: PipelineConfig) -> None:
        self._config = config
        self._known: dict[str, tuple[object, Link]] = {}
        self.unread: list[str] = []

    def look(self, catalog: Catalog, targets: Sequence[TargetStatus]) -> list[Link]:
        """All links, by the names of tables and targets.

        Args:
            catalog: tables as the targets hold them.
            targets: as the run noted them.
        """
        captured = {name: table for name, table in sorted(catalog.tables.items()) if self._config.source.tables(name)}
        of_target: dict[str, list[TableName]] = {}
        for name in captured:
            for at in {str(name), *self._groups(name)}:
                of_target.setdefault(at, []).append(name)
        living = [each for each in targets if each.path and each.ended is None and each.table in of_target]
        fresh = {
            each.path: tuple(captured[name] for name in of_target[each.table])
            for each in living
            if not self._knows(each.path, [captured[name] for name in of_target[each.table]])
        }
        bound = _Bound(self._config, fresh)
        self._known = {each.path: self._known[each.path] for each in living if each.path not in fresh}
        for path, snapshots in fresh.items():
            sources = {snapshot.name: self._dataset(snapshot) for snapshot in snapshots}
            link = bound.link(path, snapshots, sources)
            if link is not None:
                self._known[path] = (snapshots, link)
        self.unread = [path for path in fresh if path not in self._known]
        linked = {name for each in living if each.path in self._known for name in of_target[each.table]}
        alone = [Link(sources=(self._dataset(table),)) for name, table in captured.items() if name not in linked]
        return [*(link for _, link in self._known.values()), *alone]

    def _knows(self, path: str, snapshots: Sequence[Snapshot]) -> bool:
        return path in self._known and self._known[path][0] == tuple(snapshots)

    def _groups(self, name: TableName) -> Iterator[str]:
        """Tables of lakes that a captured one is a shard of."""
        for lake in lakes(self._config.sinks):
            into = lake.for_table(name).into
            if into is not None:
                yield into[0]

    def _dataset(self, snapshot: Snapshot) -> Dataset:
        namespace, name = _place_of_source(self._config, snapshot.name)
        return Dataset(namespace=namespace, name=name, columns=tuple((c.name, str(c.type)) for c in snapshot.columns))


def _place_of_source(config: PipelineConfig, table: TableName) -> tuple[str, str]:
    settings, source = config.run.openlineage, config.source
    if settings is not None and settings.source:
        return settings.source, str(table)
    if isinstance(source, ServerSource):
        return f"mysql://{source.host}:{source.port}", str(table)
    if isinstance(source, KafkaSource):  # one of the brokers stands for all
        return f"kafka://{source.brokers.split(',')[0].strip()}", str(table)
    return "file", f"{source.paths()[0]}/{table}"


def _place_of_target(path: str) -> tuple[str, str]:
    """Namespace and name of a path, as OpenLineage names file systems and object stores."""
    address = urlsplit(path)
    if address.scheme in ("", "file"):
        return "file", address.path
    scheme = "s3" if address.scheme in ("s3a", "s3n") else address.scheme
    return f"{scheme}://{address.netloc}", address.path.strip("/")


class _Bound:
    """What lakes have recorded of what is done to columns; read once for several targets."""

    def __init__(self, config: PipelineConfig, paths: Mapping[str, object]) -> None:
        self._lakes = lakes(config.sinks)
        roots = {path.rpartition("/")[0] for path in paths}
        self._recorded = {root: _recorded(root) for root in roots if self._lake(root) is not None}

    def _lake(self, root: str) -> DeltaSettings | None:
        """The lake in a directory; where a catalog's is, the catalog alone knows."""
        by_path = [lake for lake in self._lakes if lake.path and _is_same(lake.path, root)]
        by_catalog = [lake for lake in self._lakes if lake.catalog]
        return next(iter(by_path or by_catalog), None)

    def link(self, path: str, snapshots: Sequence[Snapshot], sources: Mapping[TableName, Dataset]) -> Link | None:
        """The link to the target at *path*; None: it cannot be read now."""
        namespace, name = _place_of_target(path)
        root = path.rpartition("/")[0]
        lake = self._lake(root)
        if lake is None:  # a changelog of files has all columns as they are
            came = {
                c.name: tuple(Came(source=sources[s.name], column=c.name) for s in snapshots if c in s.columns)
                for snapshot in snapshots
                for c in snapshot.columns
            }
            columns = tuple((c.name, str(c.type)) for c in snapshots[0].columns)
            return Link(
                sources=tuple(sources.values()),
                target=Dataset(namespace=namespace, name=name, columns=columns),
                came=came,
            )
        from sinks.delta.reading.plain_files import plain_schema

        try:
            schema = plain_schema(path)
        except HistorianError:
            return None
        recorded = self._recorded.get(root)
        if schema is None or recorded is None:
            return None
        came, filters = {}, []
        for field_ in schema.fields:
            found = [
                each
                for snapshot in snapshots
                for each in _came(
                    field_, snapshot, sources[snapshot.name], lake, recorded, is_alone=len(snapshots) == 1
                )
            ]
            if found:
                came[field_.name] = tuple(found)
        for snapshot in snapshots:
            rules = lake.rules_of(_came_as(snapshot, recorded))
            filters += [
                Came(source=sources[snapshot.name], column=name)
                for name in _used(rules.where, snapshot, _bindings(snapshot, rules, recorded))
            ]
        return Link(
            sources=tuple(sources.values()),
            target=Dataset(namespace=namespace, name=name, columns=tuple((f.name, f.type) for f in schema.fields)),
            came=came,
            filters=tuple(filters),
        )


def _is_same(path: str, root: str) -> bool:
    from pathlib import Path

    return (path if "://" in path else str(Path(path).absolute())).rstrip("/") == root.rstrip("/")


_Recorded = Mapping[int, Mapping[str, Any]]
"""Rows of a lake's `historian_tables` by the table's id."""


def _recorded(root: str) -> _Recorded | None:
    from sinks.delta.lake.state_rows import TABLES
    from sinks.delta.reading.plain_files import plain_rows

    try:
        rows = plain_rows(f"{root}/{TABLES}", ("table_id", "came_database", "came_table", "columns"))
    except HistorianError:
        return None
    return {row["table_id"]: row for row in rows}


def _came_as(snapshot: Snapshot, recorded: _Recorded) -> TableName:
    row = recorded.get(snapshot.table_id)
    return snapshot.name if row is None else TableName(row["came_database"], row["came_table"])


def _bindings(snapshot: Snapshot, rules: Rules, recorded: _Recorded) -> Bindings:
    from sinks.shaping.bindings import Bindings

    kept = json.loads((recorded.get(snapshot.table_id) or {}).get("columns") or "{}")
    came = {column.id: (column.name, rules.action(column.name).mark) for column in snapshot.columns}
    return Bindings(rules, {**came, **{int(number): (name, mark) for number, (name, mark) in kept.items()}})


def _came(
    target: DeltaField, snapshot: Snapshot, source: Dataset, lake: DeltaSettings, recorded: _Recorded, *, is_alone: bool
) -> Iterator[Came]:
    """What of a captured table a column of its target comes from."""
    from sinks.contract.decisions import GENERATION
    from sinks.shaping.rules import COMPUTED_IDS

    rules = lake.rules_of(_came_as(snapshot, recorded))
    number = target.column_id
    if number is None:
        return
    bindings = _bindings(snapshot, rules, recorded)
    computed = {name.lower(): expression for name, expression in rules.compute}
    if number >= COMPUTED_IDS:
        expression = computed.get(target.name.lower(), "")
        for name in _used(expression, snapshot, bindings):
            yield Came(source=source, column=name, made=expression)
        return
    for column in snapshot.columns:
        # The one table of several has ids of its own.
        if (column.id == number % GENERATION) if is_alone else (column.name.lower() == target.name.lower()):
            action = bindings.action(column)
            yield Came(source=source, column=column.name, masked=bool(action.kind), made=action.kind)


def _used(expression: str, snapshot: Snapshot, bindings: Bindings) -> Iterator[str]:
    """Columns that an expression of Spark's SQL names, by the names with which they came."""
    # A quoted name may have a quote of a text in it: then texts count too.
    found = _WORD.finditer(expression if "`" in expression else _LITERAL.sub(" ", expression))
    words = {(match[1] or match[2]).replace("``", "`").lower() for match in found}
    return (column.name for column in snapshot.columns if bindings.name(column).lower() in words)
