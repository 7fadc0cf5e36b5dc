"""The states of all tables of a connector, in a directory of the lake."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from historian.errors import ChainBroken
from historian.normalizing.states import KeyedStates
from historian.schema.snapshots import Snapshot
from sinks.delta.keyed.stored import STATE_SCHEMA
from sinks.delta.keyed.table import StateTable
from sinks.delta.log.kernel import Kernel
from sinks.delta.log.target import signature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.delta.log.table_view import TableView

__all__ = ["DeltaKeyedStates"]

_OWNER, _TABLE, _PATTERNS = "historian.connector", "historian.table", "historian.normalize"
_PROPERTIES = {"delta.feature.domainMetadata": "supported"}


class DeltaKeyedStates(KeyedStates):
    """Implements :class:`historian.normalizing.states.KeyedStates`: a Delta table for each table, named by its id.

    Args:
        root: the directory, absolute or a URL.
        connector: identity of the connector, by which no other one's states are taken.
        patterns: of the tables that have states, which each one keeps.
    """

    def __init__(self, spark: SparkSession, root: str, connector: str, patterns: Sequence[str] = ()) -> None:
        self._kernel = Kernel(spark, signature(connector))
        self._root, self._connector, self._patterns = root, connector, tuple(patterns)
        self._tables: dict[int, StateTable] = {}
        self._held: dict[int, int] = {}
        self._past: dict[int, TableView] = {}

    def is_vacant(self) -> bool:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        return self._kernel.is_vacant(self._root)

    def at(self, plan: int, table_id: int, snapshot: Snapshot | None) -> StateTable:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        held = self._held.get(table_id)
        if held is not None and held < plan and not self._tables[table_id].is_changed:
            return self._tables[table_id]
        path = f"{self._root}/{table_id}"
        application = f"{self._connector}/state/{table_id}"
        view = self._kernel.view(path)
        if view is None:
            name = "" if snapshot is None else str(snapshot.name)
            marks = {_OWNER: self._connector, _TABLE: name, _PATTERNS: json.dumps(self._patterns)}
            view = self._kernel.create(path, STATE_SCHEMA, {**_PROPERTIES, **marks}, {})
        if view.property(_OWNER) != self._connector:
            raise ChainBroken(
                "the place of a state is taken by another table",
                where=path,
                expected=f"a state of connector {self._connector}",
                found=f"one of {view.property(_OWNER) or 'someone else'}",
                next_step="move it away, or choose another source.state",
            )
        self._held[table_id] = view.transaction(application)
        before = self._before(view, application, plan)
        if before is not view:
            self._past[table_id] = view
        table = StateTable(self._kernel, application, before)
        self._tables[table_id] = table
        return table

    def has(self, table_id: int) -> bool:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        return table_id in self._tables or self._kernel.view(f"{self._root}/{table_id}") is not None

    def began_with(self, table_id: int) -> tuple[str, ...] | None:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        view = self._kernel.view(f"{self._root}/{table_id}")
        kept = None if view is None or view.property(_OWNER) != self._connector else view.property(_PATTERNS)
        return tuple(json.loads(kept)) if kept else None

    def forget(self, table_id: int) -> None:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        for known in (self._tables, self._held, self._past):
            known.pop(table_id, None)

    def commit(self, plan: int) -> None:
        """See :class:`historian.normalizing.states.KeyedStates`."""
        for table_id, table in list(self._tables.items()):
            if self._held[table_id] >= plan:
                # It was read as of an earlier plan, whose rows were wanted once more.
                self.forget(table_id)
            elif table.is_changed:
                if table_id in self._past:
                    # A later plan reads rows again that came behind what was looked at.
                    table.take_whole(self._past.pop(table_id))
                table.commit(plan)
                self._held[table_id] = plan

    def _before(self, view: TableView, application: str, plan: int) -> TableView:
        """The state as the plan before *plan* left it."""
        if view.transaction(application) < plan:
            return view
        before: TableView | None = None
        low, high, step = 0, view.version, 1
        # What is looked for is mostly a version or two ago: steps get longer, and what lies between two is halved then.
        while low < high:
            at = max(low, high - step) if before is None else (low + high) // 2
            looked = self._kernel.view_at(view.path, at)
            if looked is not None and looked.transaction(application) >= plan:
                high, step = at, 2 * step
            else:
                before, low, step = looked or before, at + 1, 1
        if before is None:
            raise ChainBroken(
                "a state does not keep what it held before a plan",
                where=view.path,
                expected=f"a version before plan {plan}",
                found=f"the log of plan {view.transaction(application)} and later",
                next_step="replicate the topics into another lake, from the start",
            )
        return before
