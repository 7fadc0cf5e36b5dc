"""The changelog of one table: every change as rows, appended once, offsets given in the commit that adds them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from historian.errors import ChainBroken
from sinks.delta import faults
from sinks.delta.kernel import Commit, DataFile, TableView
from sinks.delta.schema import DeltaSchema, changelog_schema
from sinks.delta.target import Target
from sinks.parts import Part, Step

__all__ = ["ChangelogPart", "changelog_after", "held_keys", "prepare_changelog"]

_DOMAIN = "historian.changelog"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogPart:
    """What one part does to a changelog.

    Attributes:
        schema: that the changelog has with the part.
        first_offset: of the part's first row.
        keys: every primary key, as column ids, that a row of the changelog was written under; () for none.
    """

    part: Part
    target: Target
    schema: DeltaSchema
    first_offset: int
    keys: frozenset[tuple[int, ...]]

    def commit(self, files: Sequence[DataFile]) -> None:
        """Adds the part's rows, its schema and the next offset in one commit."""
        rows = sum(file.rows for file in files)
        current = self.target.view.schema()
        self.target.commit(
            self.part.transaction(Step.ROWS),
            Commit(
                schema=None if self.schema.same_as(current) else self.schema,
                files=files,
                domains={_DOMAIN: _domain(self.first_offset + rows, self.keys)},
            ),
        )
        faults.reached("changelog_committed", f"{self.target.path} {self.part.index}")


def prepare_changelog(part: Part, target: Target) -> ChangelogPart | None:
    """What *part* does to its changelog, which is made where there is none; None where that holds the part."""
    if target.held >= part.transaction(Step.ROWS):
        return None
    exists = target.exists
    # One that was made and holds nothing has the schema that the part leads to, not the one that it comes from.
    schema = changelog_after(part, target.view.schema() if target.held else None)
    if schema is None:
        return None  # Came and went without ever having had a column.
    if not exists:
        target.create(schema, {_DOMAIN: _domain(0, frozenset())})
    first_offset, keys = _held(target)
    return ChangelogPart(
        part=part,
        target=target,
        schema=schema,
        first_offset=first_offset,
        keys=keys.union(s.primary_key for s in (part.base, *part.written.values()) if s is not None),
    )


def changelog_after(part: Part, schema: DeltaSchema | None) -> DeltaSchema | None:
    """The schema that a changelog of that *schema* (None: not made yet) has with *part*.

    Raises:
        TableStopped: see :func:`sinks.delta.schema.changelog_schema`.
    """
    first = part.base is None
    for version in part.versions:
        if version.snapshot is not None:
            news = version.place is not None and not first
            schema = changelog_schema(
                schema,
                version.snapshot,
                version.version if news else 0,
                partial=part.partial,
                follow=part.following.get(version.version),
            )
            first = False
    return schema


def held_keys(view: TableView) -> frozenset[tuple[int, ...]] | None:
    """Every primary key, as column ids, that a row of a changelog was written under; None where it is no changelog."""
    text = view.domain(_DOMAIN)
    return None if text is None else frozenset(map(tuple, json.loads(text)["keys"]))


def _domain(next_offset: int, keys: frozenset[tuple[int, ...]]) -> str:
    return json.dumps({"next_offset": next_offset, "keys": sorted(keys)})


def _held(target: Target) -> tuple[int, frozenset[tuple[int, ...]]]:
    text, keys = target.view.domain(_DOMAIN), held_keys(target.view)
    if text is None or keys is None:
        raise ChainBroken("a changelog does not say its next offset", where=target.path, expected=f"domain {_DOMAIN}")
    return int(json.loads(text)["next_offset"]), keys
