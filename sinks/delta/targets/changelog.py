"""The changelog of one table: every change as rows, appended once, offsets given in the commit that adds them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.errors import ChainBroken
from sinks.contract.parts import Part, Step
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.side_by_side import own_session
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.rewrite.spark_rows import put
from sinks.delta.schema.schema_evolution import changelog_schema, is_widened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "ChangelogPart",
    "changelog_after",
    "changelog_domains",
    "held_keys",
    "held_live",
    "next_offset",
    "prepare_changelog",
]

_DOMAIN = "historian.changelog"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogPart:
    """What one part does to a changelog.

    Attributes:
        schema: that the changelog has with the part.
        first_offset: of the part's first row.
        keys: every primary key, as column ids, that a row was written under which may be there before the part; () for none.
        live_from: the offset behind the last statement that took all rows back; 0: none did.
        ever: every primary key that a row of the changelog was written under.
    """

    part: Part
    target: Target
    schema: DeltaSchema
    first_offset: int
    keys: frozenset[tuple[int, ...]]
    live_from: int = 0
    ever: frozenset[tuple[int, ...]] = frozenset()

    @property
    def _keys_after(self) -> frozenset[tuple[int, ...]]:
        """The same behind the part: what a statement takes back is told apart from what comes then."""
        before = frozenset() if self.part.clears is not None and not self.part.cleared else self.keys
        return before.union(snapshot.primary_key for snapshot in self.part.written.values())

    @property
    def _ever_after(self) -> frozenset[tuple[int, ...]]:
        return self.ever.union(self.keys, (snapshot.primary_key for snapshot in self.part.written.values()))

    def commit(
        self, spark: SparkSession, retractions: Sequence[DataFile], rows: Sequence[DataFile]
    ) -> Sequence[DataFile]:
        """Adds the part's rows, its schema and the next offset in one commit; the files to which nothing refers any more.

        *retractions*: of the rows that the part's statement takes back, *rows*: of the part's own.

        Spark's writer cannot set the offset, so it is set before, with the schema; until the rows are there it says where
        the part began.
        """
        target, last = self.target, self.part.transaction(Step.ROWS)
        files = [*retractions, *rows]
        schema = self.schema.unlike(target.view.schema())
        empties = self.part.clears is not None and not self.part.cleared
        live_from = self.first_offset + sum(file.rows for file in retractions) if empties else self.live_from
        following = self.first_offset + sum(file.rows for file in files)
        if not (target.by_spark and files):
            domains = {_DOMAIN: _domain(following, self._ever_after, self._keys_after, live_from)}
            target.commit(last, Commit(schema=schema, files=files, domains=domains))
            faults.reached("changelog_committed", f"{target.path} {self.part.index}")
            return ()
        prepared = self.part.transaction(Step.SCHEMA)
        if target.held < prepared:
            domains = {
                _DOMAIN: _domain(
                    following,
                    self._ever_after,
                    self._keys_after,
                    live_from,
                    at=prepared,
                    first_offset=self.first_offset,
                    keys_before=sorted(self.keys),
                    live_before=self.live_from,
                )
            }
            target.commit(prepared, Commit(schema=schema, domains=domains))
            faults.reached("changelog_prepared", f"{target.path} {self.part.index}")
        spark = own_session(spark)
        target.run(last, spark, put(spark, target, self.schema, files))
        if target.held < last:
            raise ChainBroken("rows were appended without the plan's number", where=target.path, expected=str(last))
        faults.reached("changelog_committed", f"{target.path} {self.part.index}")
        return files


def prepare_changelog(part: Part, target: Target, positions: Collection[str] = ()) -> ChangelogPart | None:
    """What *part* does to its changelog, which is made where there is none; None where that holds the part.

    *positions*: as of :func:`changelog_after`.
    """
    if target.held >= part.transaction(Step.ROWS):
        return None
    exists = target.exists
    # One that was made and holds nothing has the schema that the part leads to, not the one that it comes from.
    before = target.view.schema() if target.held else None
    prepared = target.held >= part.transaction(Step.SCHEMA)
    schema = before if prepared else changelog_after(part, before, positions)
    if schema is None:
        return None  # Came and went without ever having had a column.
    if not exists:
        target.create(schema, changelog_domains(0, frozenset()))
    first_offset, keys, live_from = _held(part, target)
    return ChangelogPart(
        part=part,
        target=target,
        schema=schema,
        first_offset=first_offset,
        keys=keys if part.base is None else keys.union((part.base.primary_key,)),
        live_from=live_from,
        ever=held_keys(target.view) or frozenset(),
    )


def changelog_after(part: Part, schema: DeltaSchema | None, positions: Collection[str] = ()) -> DeltaSchema | None:
    """The schema that a changelog of that *schema* (None: not made yet) has with *part*.

    *positions*: words of :data:`historian.changelog.operations.POSITION_COLUMNS`, which one that is made has columns for.

    Raises:
        TableStopped: see :func:`sinks.delta.schema.schema_evolution.changelog_schema`.
    """
    first = part.base is None
    for version in part.versions:
        if version.version == part.base_version and is_widened(schema, version.snapshot):
            continue
        if version.snapshot is not None:
            news = version.place is not None and not first
            schema = changelog_schema(
                schema,
                version.snapshot,
                version.version if news else 0,
                partial=part.partial,
                positions=positions,
                follow=part.version_changes.get(version.version),
            )
            first = False
    return schema


def held_keys(view: TableView) -> frozenset[tuple[int, ...]] | None:
    """Every primary key, as column ids, that a row of a changelog was written under; None where it is no changelog."""
    text = view.domain(_DOMAIN)
    return None if text is None else frozenset(map(tuple, json.loads(text)["keys"]))


def held_live(view: TableView) -> tuple[frozenset[tuple[int, ...]], int]:
    """Of a changelog :attr:`ChangelogPart.keys` and :attr:`ChangelogPart.live_from`, for what comes next."""
    domain = view.counted(_DOMAIN, "changelog")
    return frozenset(map(tuple, domain.get("live_keys", domain["keys"]))), int(domain.get("live_from", 0))


def changelog_domains(
    following: int,
    ever: frozenset[tuple[int, ...]],
    live: tuple[frozenset[tuple[int, ...]], int] = (frozenset(), 0),
) -> dict[str, str]:
    """What a changelog is made with whose next row has the offset *following*.

    Args:
        following: the offset of its next row.
        ever: as of :class:`ChangelogPart`.
        live: its keys and where they begin, as :func:`held_live` gives them.
    """
    return {_DOMAIN: _domain(following, ever, *live)}


def _domain(
    next_offset: int,
    ever: frozenset[tuple[int, ...]],
    keys: frozenset[tuple[int, ...]],
    live_from: int,
    **prepared: object,
) -> str:
    live = {"live_from": live_from, "live_keys": sorted(keys)} if live_from or keys != ever else {}
    return json.dumps({"next_offset": next_offset, "keys": sorted(ever), **live, **prepared})


def next_offset(view: TableView) -> int:
    """The offset that the next row of a changelog gets. Raises :class:`ChainBroken` where it does not say."""
    return int(view.counted(_DOMAIN, "changelog")["next_offset"])


def _held(part: Part, target: Target) -> tuple[int, frozenset[tuple[int, ...]], int]:
    domain = target.view.counted(_DOMAIN, "changelog")
    keys, live_from = held_live(target.view)
    begun = domain.get("at") == part.transaction(Step.SCHEMA)
    if begun and "keys_before" in domain:
        keys, live_from = frozenset(map(tuple, domain["keys_before"])), int(domain["live_before"])
    return int(domain["first_offset" if begun else "next_offset"]), keys, live_from
