"""The lake's own tables: which plans were written, under which schema changes, and where each table's rows are.

``historian_plans`` and ``historian_schema_changes`` grow by the plan; ``historian_tables`` holds the present state
only. They are ordinary Delta tables, for people to read and for a lost store to be rebuilt from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from historian import codec
from historian.errors import ChainBroken, SinkError
from historian.history.timeline import TimelineEntry
from historian.plans.plans import Plan
from sinks.contract.base import RecoveredStore
from sinks.contract.locations import TableLocation, TableLocations
from sinks.contract.parts import ChunkRows
from sinks.contract.storage import located, reading
from sinks.contract.tables import OWN_NAMES
from sinks.delta.lake.state_rows import (
    CHANGES,
    PLANS,
    STATE_SCHEMAS,
    TABLES,
    Links,
    RecordedPlan,
    change_row,
    plan_row,
    recorded_plan,
    row_counts,
)
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.kernel import CommitConflict, Kernel
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.log.time_travel import first_version
from sinks.delta.rewrite.compaction import joined
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.schema.decisions import evolved_locations
from sinks.delta.settings import Compaction, DeltaSettings
from sinks.shaping.bindings import Bindings, check_bindings
from sinks.shards.plans import check_shards

__all__ = ["LakeState"]

_OWNER = "historian.connector"
_KINDS = "historian.kinds"
_AS_OF = "historian.tables"
_REWRITES = "historian.rewrites"
_MANY_FILES = Compaction(files=200, target_bytes=128_000_000)


class LakeState:
    """Reads and writes the lake's own tables; holds what the next plan needs in memory.

    Attributes:
        locations: where each table's rows go.
        last: the newest plan that is recorded; None where none is.
        links: what each target has, as a transaction version, before the last plan, or with it once it is complete.
        complete: whether every target is known to hold the last plan.
    """

    def __init__(self, kernel: Kernel, settings: DeltaSettings, root: str, connector: str) -> None:
        self._settings = settings
        self._root = root
        self._views: dict[str, TableView] = {}
        self._changes_upto = 0
        self._rows = "{}"
        self.kernel = kernel
        self.connector = connector
        self.locations: TableLocations = {}
        self.last: Plan | None = None
        self.last_links: Links = {}
        self.links: dict[str, int] = {}
        self.complete = True

    def path(self, directory: str) -> str:
        """The absolute path of a directory of the lake."""
        return f"{self._root}/{directory}"

    def target(self, location: TableLocation, directory: str) -> Target:
        """A target of the table, not looked at yet."""
        table_settings = self._settings.for_table(location.came_as)
        return Target(
            self.kernel,
            self.connector,
            directory,
            self.path(directory),
            location.kind(directory),
            table_settings.table_properties,
            by_spark=table_settings.writer == "spark",
        )

    def recover(self) -> RecoveredStore | None:
        """See :class:`sinks.contract.base.Sink`."""
        if not self.load() or self.last is None:
            return None
        entries = (codec.load(TimelineEntry, text) for text in self._read(CHANGES, "entry_json").column(0).to_pylist())
        covered = sorted((e for e in entries if e.number <= self.last.version), key=lambda entry: entry.number)
        return RecoveredStore(connector=self.connector, timeline=tuple(covered), plans=self.plans())

    def claim(self) -> None:
        """Takes the lake for the connector and reads what it holds. Raises :class:`SinkError` where it is another's."""
        for name, schema in STATE_SCHEMAS.items():
            self._views[name] = self.kernel.view(self.path(name)) or self._create(name, schema)
        self.check_owner()
        self._read_plans()
        self._read_locations()
        for location in self.locations.values():
            self.check_settings(location)
        self._check_names()
        self._drop_unplanned_changes()
        self.compact()
        if self.last is not None and int(self._views[TABLES].domain(_AS_OF) or 0) < self.last.number:
            # What the last plan made of them follows from the plan; where it changed nothing, nothing is written.
            self.record_locations(self.assigned(self.last), self.last.number)

    def load(self) -> bool:
        """Reads what the lake holds, whoever's it is; False where there is no lake. Writes nothing."""
        for name in STATE_SCHEMAS:
            view = self.kernel.view(self.path(name))
            if view is None:
                return False
            self._views[name] = view
        self.connector = self._views[PLANS].property(_OWNER) or ""
        self._read_plans()
        self._read_locations()
        return True

    def plan(self, number: int) -> Plan | None:
        """The plan that the lake has under *number*, or None."""
        if self.last is not None and number == self.last.number:
            return self.last
        plans = self._read(PLANS, "plan_json", filters=[("plan", "=", number)]).column(0).to_pylist()
        return codec.load(Plan, plans[0]) if plans else None

    def plans(self) -> tuple[Plan, ...]:
        """Every plan that the lake has, in order."""
        plans = (codec.load(Plan, text) for text in self._read(PLANS, "plan_json").column(0).to_pylist())
        return tuple(sorted(plans, key=lambda plan: plan.number))

    def recorded_plans(self) -> list[RecordedPlan]:
        """What is recorded of each plan, in order."""
        rows = self._read(PLANS, "plan", "system_time", "rows", "links").sort_by("plan").to_pylist()
        return [recorded_plan(row) for row in rows]

    def links_until(self, number: int) -> dict[str, int]:
        """What each target has, as a transaction version, when it holds all plans up to that one."""
        links: dict[str, int] = {}
        for row in self._read(PLANS, "plan", "links", filters=[("plan", "<=", number)]).sort_by("plan").to_pylist():
            links.update(json.loads(row["links"]))
        return links

    def locations_after(self, number: int) -> TableLocations | None:
        """Where the tables' rows went after that plan; None where the lake has not kept it."""
        newest = self._views[TABLES]

        def is_later(view: TableView) -> bool:
            return int(view.domain(_AS_OF) or 0) > number

        last = first_version(self.kernel, newest, is_later) - 1
        view = newest if last == newest.version else self.kernel.view_at(newest.path, last) if last >= 0 else None
        return None if view is None else self._locations_in(view)

    def go_back(self, number: int) -> bool:
        """Shows the lake as it was with that plan, to be read; False where locations of then are not kept."""
        # They may be newer than the plans that were looked at before them, never older.
        self._views[TABLES] = self._refreshed(TABLES)
        plan, locations = self.plan(number), self.locations_after(number)
        if plan is None or locations is None:
            return False
        self.last, self.locations = plan, locations
        return True

    @property
    def recorded_version(self) -> int:
        """Number of the last schema change that a recorded plan covers."""
        return 0 if self.last is None else self.last.version

    def assigned(self, plan: Plan) -> TableLocations:
        """Where tables' rows go after *plan*; pure.

        Raises:
            EditRefused: see :func:`sinks.delta.schema.decisions.evolved_locations`.
        """
        return evolved_locations(self.locations, plan, self._settings)

    def live_links(self) -> Links:
        """What the last plan leaves in those of its targets that are still written."""
        closed = {d for location in self.locations.values() if location.stopped for d in location.directories}
        return {directory: link for directory, link in self.last_links.items() if directory not in closed}

    def held(self, directory: str) -> int:
        """The transaction version that a target has; 0 where there is none."""
        view = self.kernel.view(self.path(directory))
        return 0 if view is None else view.transaction(f"{self.connector}/{directory}")

    def holds_last(self) -> bool:
        """Whether every target that is still written holds the last plan. Looks at them all."""
        return all(self.held(directory) >= link for directory, link in self.live_links().items())

    def record_changes(self, plan: Plan, entries: Sequence[TimelineEntry]) -> None:
        """Appends the schema changes that *plan* is the first to need."""
        expected = list(range(self.recorded_version + 1, plan.version + 1))
        if [entry.number for entry in entries] != expected:
            raise SinkError(
                "schema changes of a plan are missing",
                where=f"plan {plan.number}",
                expected=f"numbers {expected}",
                found=[entry.number for entry in entries],
            )
        news = [change_row(entry) for entry in entries if entry.number > self._changes_upto]
        if news:
            self._append(CHANGES, self._serial(CHANGES), news)
            self._changes_upto = plan.version

    def record_plan(self, plan: Plan, rows: ChunkRows, links: Links, operations: str) -> None:
        """Appends *plan*; it is the last one from here on. *operations*: what is told of its rows."""
        text = row_counts(rows)
        if not self._append(PLANS, plan.number, [plan_row(plan, text, links, operations)]):
            # Our own commit, whose answer was lost, or that of another run of a connector of this name.
            recorded = self._read(PLANS, "plan_json", filters=[("plan", "=", plan.number)]).column(0).to_pylist()
            if [codec.load(Plan, found) for found in recorded] != [plan]:
                raise ChainBroken(
                    "another connector of this name writes to this lake",
                    where=f"plan {plan.number} in {self._root}",
                    expected="one store, whose lease one run holds",
                    found="a plan of that number which this store did not make",
                    next_step="end one of the two, and give it a lake of its own",
                )
        self.last, self._rows, self.last_links, self.complete = plan, text, links, False

    def check_last(self, plan: Plan, rows: ChunkRows) -> None:
        """Raises :class:`ChainBroken` where the lake has something else under the last plan's number."""
        if plan != self.last:
            raise self._other(plan, "another plan")
        if row_counts(rows) != self._rows:
            raise self._other(plan, f"rows {row_counts(rows)} instead of {self._rows}")

    def check_earlier(self, plan: Plan) -> None:
        """The same for a plan before the last one."""
        if plan != self.plan(plan.number):
            raise self._other(plan, "another plan")

    def advance(self) -> None:
        """Every target holds the last plan from here on."""
        self.links.update(self.last_links)
        self.complete = True

    def record_locations(self, locations: TableLocations, plan: int) -> None:
        """Replaces ``historian_tables``, where something changed."""
        if locations == self.locations:
            return
        schema, held = STATE_SCHEMAS[TABLES].arrow(), [location for _, location in sorted(locations.items())]
        # By columns: a lake may know many tables of which a plan changes one.
        columns = [pa.array([getattr(one, field.name) for one in held], field.type) for field in schema]
        files = self._write(TABLES, pa.Table.from_arrays(columns, schema=schema))
        commit = Commit(clear=True, files=files, domains={_AS_OF: str(plan)})
        self._commit(TABLES, self._serial(TABLES), commit)
        self.locations = dict(locations)

    def stop(self, table_id: int, reason: str, plan: int) -> None:
        """Records that a table is not written any more."""
        stopped = replace(self.locations[table_id], stopped=reason, stopped_in=plan)
        self.record_locations({**self.locations, table_id: stopped}, plan)

    def _other(self, plan: Plan, found: str) -> ChainBroken:
        return ChainBroken(
            "a plan is not the one that the lake recorded under its number",
            where=f"plan {plan.number} in {self._root}",
            found=found,
            next_step="use the store that wrote this lake, or start a new lake",
        )

    def _create(self, name: str, schema: DeltaSchema) -> TableView:
        properties = {_OWNER: self.connector, _KINDS: self._settings.shape, "delta.feature.domainMetadata": "supported"}
        return self.kernel.create(self.path(name), schema, properties, {})

    def check_owner(self) -> None:
        """Raises :class:`SinkError` where the lake is not this connector's, or was made for other kinds of tables."""
        view = self._views[PLANS]
        for setting, wanted in ((_OWNER, self.connector), (_KINDS, self._settings.shape)):
            found = view.property(setting)
            if found != wanted:
                raise SinkError(
                    "the lake was made by another connector, or for other kinds of tables",
                    where=f"{setting} of {self._root}",
                    expected=wanted,
                    found=found,
                    next_step="give this connector a path of its own, or go on with the settings that made the lake",
                )

    def _read_plans(self) -> None:
        self.last, self._rows, self.last_links, self.links, self.complete = None, "{}", {}, {}, True
        links = self._read(PLANS, "plan", "links").sort_by("plan").to_pylist()
        if not links:
            return
        for row in links[:-1]:
            self.links.update(json.loads(row["links"]))
        number = links[-1]["plan"]
        newest = self._read(PLANS, "plan_json", "rows", filters=[("plan", "=", number)]).to_pylist()[0]
        self.last, self._rows = codec.load(Plan, newest["plan_json"]), newest["rows"]
        self.last_links, self.complete = json.loads(links[-1]["links"]), False

    def _read_locations(self) -> None:
        self.locations = self._locations_in(self._views[TABLES])

    def _locations_in(self, view: TableView) -> TableLocations:
        rows = self._read(TABLES, *STATE_SCHEMAS[TABLES].names(), view=view).sort_by("table_id").to_pylist()
        return {row["table_id"]: TableLocation(**row) for row in rows}

    def check_settings(self, location: TableLocation) -> None:
        """Raises :class:`SinkError` where a table's targets were made with settings that cannot go on with these."""
        wanted = self._settings.for_table(location.came_as).shape
        if wanted != location.shape and not location.dropped:
            raise SinkError(
                "a table's targets were made for other kinds of tables",
                where=f"{location.name} in {self._root}",
                expected=wanted,
                found=location.shape,
                next_step="go on with the settings that made them, or give this connector a path of its own",
            )
        check_shards(location, self._settings.for_table)
        if not location.dropped:
            check_bindings(location.name, Bindings.of(location, self._settings.rules_of(location.came_as)))

    def _check_names(self) -> None:
        """Lakes of earlier releases let a table of the source have the place of one of the lake's own tables."""
        for location in self.locations.values():
            taken = [d for d in location.directories if d.lower() in OWN_NAMES and not location.stopped]
            if taken:
                raise SinkError(
                    "a table's target has the name of one of the lake's own tables",
                    where=f"{location.name} in {self._root}",
                    expected="a name that no own table has",
                    found=", ".join(taken),
                    next_step="replicate into another lake: the table's targets get names there that are free",
                )

    def _drop_unplanned_changes(self) -> None:
        """A crash before the plan was recorded leaves changes of a plan that may never come."""
        self._changes_upto = self.recorded_version
        changes = self._read(CHANGES, *STATE_SCHEMAS[CHANGES].names())
        planned = changes.filter(pc.less_equal(changes.column("number"), self.recorded_version))
        if planned.num_rows < changes.num_rows:
            self._replace(CHANGES, planned)

    def compact(self) -> None:
        """Joins files: a plan is one of its own at first, and many of them make every start and checkpoint slow."""
        for name in (PLANS, CHANGES):
            commit = joined(self._views[name], _MANY_FILES)
            if commit is not None:
                try:
                    self._views[name] = self.kernel.commit(self._views[name], "", 0, commit)
                except CommitConflict:
                    self._views[name] = self._refreshed(name)

    def _replace(self, name: str, rows: pa.Table) -> None:
        self._commit(
            name,
            self._views[name].transaction(_REWRITES) + 1,
            Commit(clear=True, files=self._write(name, rows)),
            _REWRITES,
        )

    def _append(self, name: str, version: int, rows: Sequence[Mapping[str, Any]]) -> bool:
        """Whether this call has appended them; else the table held that version already."""
        if self._views[name].transaction(self.connector) >= version:
            return False
        # A lake that is older than a column of these tables goes on without it.
        held = self._views[name].schema().names()
        return self._commit(name, version, Commit(files=self._write(name, self._table(name, rows).select(held))))

    def _commit(self, name: str, version: int, commit: Commit, application: str = "") -> bool:
        application = application or self.connector
        try:
            self._views[name] = self.kernel.commit(self._views[name], application, version, commit)
        except CommitConflict:
            # OPTIMIZE may have come in between, or our own commit, whose answer was lost.
            view = self._views[name] = self._refreshed(name)
            if view.transaction(application) >= version:
                return False
            self._views[name] = self.kernel.commit(view, application, version, commit)
        return True

    def _serial(self, name: str) -> int:
        return self._views[name].transaction(self.connector) + 1

    def _refreshed(self, name: str) -> TableView:
        view = self.kernel.view(self.path(name))
        if view is None:
            raise ChainBroken("a table of the lake's own is gone", where=self.path(name))
        return view

    def _table(self, name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), STATE_SCHEMAS[name].arrow())

    def _write(self, name: str, rows: pa.Table) -> list[DataFile]:
        writer = FileWriter(self.path(name), rows.schema)
        writer.write_table(rows)
        return writer.close()

    def _read(self, name: str, *columns: str, filters: Any = None, view: TableView | None = None) -> pa.Table:
        files = (view or self._views[name]).files()
        if not files:
            return self._table(name, []).select(list(columns))
        system, _ = located(self._root)
        paths = [located(file)[1] for file in files]
        with reading(self.path(name)):
            return pq.read_table(paths, columns=list(columns), filesystem=system, filters=filters)
