"""Writes one plan: round by round, the n-th part of every table at once.

One Spark job serves all of a round, and commits to different tables are made side by side.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from historian.errors import ChainBroken, TableStopped
from historian.plans.plans import Plan
from sinks.contract.chunks import Chunks
from sinks.contract.parts import Part, Step
from sinks.delta import faults
from sinks.delta.lake.state import LakeState
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import DataFile
from sinks.delta.log.side_by_side import side_by_side
from sinks.delta.log.target import Target
from sinks.delta.rewrite.files import (
    CHANGELOG,
    DELETES,
    ENDED,
    FRESH,
    OPENED,
    PARTIAL,
    STOPPED,
    UNSEEN,
    UPSERTS,
    HistoryWork,
    Work,
    WrittenFile,
    write_files,
)
from sinks.delta.rewrite.large import write_by_key
from sinks.delta.rewrite.staged import NetFiles
from sinks.delta.schema.decisions import EvolvedPart, evolved
from sinks.delta.schema.stops import check, inherited_stop
from sinks.delta.settings import DeltaSettings, TableSettings
from sinks.delta.targets.changelog import ChangelogPart, prepare_changelog
from sinks.delta.targets.history import HistoryPart, prepare_history
from sinks.delta.targets.mirror import prepare_mirror, write_mirror
from sinks.delta.targets.retract import write_retractions
from sinks.delta.targets.unlogged import check_unlogged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PlanWriter"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """A part whose targets are ready for it; a target that holds the part already is None."""

    part: Part
    shown: EvolvedPart
    changelog: ChangelogPart | None
    retractions: Sequence[DataFile]
    settings: TableSettings
    mirror: Target | None
    mirror_schema: DeltaSchema | None
    history: HistoryPart | None

    @property
    def soft(self) -> bool:
        """Whether deleted rows stay in the mirror."""
        return self.settings.mirror_deletes == "soft"

    @property
    def rows_offset(self) -> int:
        """The changelog's offset of the part's first own row; 0 where nobody asks for it."""
        if self.changelog is not None:
            return self.changelog.first_offset + sum(file.rows for file in self.retractions)
        return 0 if self.history is None else self.history.first_offset + self.history.taken_back_rows


class PlanWriter:
    """Writes the parts of one plan to their targets; what a target holds is skipped.

    Args:
        closed: directories whose table is stopped in the plan, and why: nothing of it is written there.
    """

    def __init__(
        self,
        spark: SparkSession,
        state: LakeState,
        targets: dict[str, Target],
        plan: Plan,
        settings: DeltaSettings,
        closed: Mapping[str, str],
    ) -> None:
        self._spark = spark
        self._state = state
        self._targets = targets
        self._plan = plan
        self._settings = settings
        self._checked: set[str] = set()
        self._closed = dict(closed)
        self._stopped: set[int] = set()
        self._stops = threading.Lock()
        self._repaired = frozenset(t.table_id for t in plan.tables if t.repairs_anew)
        self._behind = {t.table_id: t.behind for t in plan.tables if t.behind is not None}
        # They may hold a part of the plan in which they stopped, and all that they hold goes.
        self._emptied = frozenset(
            t.table_id for t in plan.tables if t.behind is not None and t.versions[-1].snapshot is None
        )

    def write(self, parts: Sequence[Part], chunks: Chunks) -> None:
        """Writes *parts* from the plan's *chunks*. Tables that cannot go on are stopped in the lake's state.

        Args:
            parts: of the plan, of tables that are not stopped.
            chunks: of the plan. Where they are small, one task does all of a round; else tasks that hold some write the
                changelogs, and a table's net change is one task's.
        """
        for index in sorted({part.index for part in parts}):
            self._write_round([part for part in parts if part.index == index], chunks)

    def _write_round(self, parts: Sequence[Part], chunks: Chunks) -> None:
        # No two parts of a round have a target in common.
        prepared = [ready for found in side_by_side(self._prepared, parts) for ready in found]
        works = [work for work in map(self._work, prepared) if work is not None]
        if chunks.is_small:
            files = write_files(chunks, works)
        else:
            changelogs = [replace(w, target=None, history=None) for w in works if w.changelog is not None]
            by_key = [replace(w, changelog=None) for w in works if w.target is not None or w.history is not None]
            files = write_files(chunks, changelogs)
            files += write_by_key(chunks, by_key)
        faults.reached("files_written", str(parts[0].index))
        by_part: dict[tuple[int, int], list[WrittenFile]] = {}
        for file in files:
            by_part.setdefault((file.table_id, file.segment), []).append(file)
        side_by_side(partial(self._committed, by_part), prepared)

    def _prepared(self, part: Part) -> list[_Prepared]:
        """[] where the part's table is stopped."""
        prepared: list[_Prepared] = []
        if part.location.table_id in self._stopped:
            return prepared
        with self._stopping(part):
            prepared.append(self._prepare(part))
        return prepared

    def _committed(self, files: Mapping[tuple[int, int], Sequence[WrittenFile]], ready: _Prepared) -> None:
        with self._stopping(ready.part):
            self._commit(ready, files.get((ready.part.location.table_id, ready.part.segment), ()))

    def _prepare(self, part: Part) -> _Prepared:
        spark = self._spark
        for directory in part.location.directories:
            if directory in self._closed:
                raise inherited_stop(part.location.name, self._closed[directory])
            self._check(directory, part)
        check(part)
        settings = self._settings.for_table(part.location.came_as)
        soft = settings.mirror_deletes == "soft"
        shown = evolved(part, soft=soft)
        part = shown.part
        for directory in filter(None, (part.location.mirror, part.location.history)):
            if self._targets[directory].held < part.transaction(Step.ROWS) and not self._is_repaired(part):
                check_unlogged(spark, part, self._targets[directory])
        changelog = mirror_schema = mirror = None
        if part.location.changelog:
            changelog = prepare_changelog(part, self._targets[part.location.changelog], settings.changelog_columns)
        if part.location.mirror:
            mirror = self._targets[part.location.mirror]
            mirror_schema = prepare_mirror(shown.mirrored, mirror, settings)
        history = None
        if part.location.history:
            target = self._targets[part.location.history]
            history = prepare_history(spark, part, target, changelog, settings.history_names)
        retractions: Sequence[DataFile] = ()
        if changelog is not None and part.clears is not None:
            retractions = write_retractions(
                spark, changelog, mirror if shown.mirror_is_table else None, self._plan.system_time_us
            )
            if history is not None:
                history.check_taken_back(sum(file.rows for file in retractions))
        return _Prepared(
            part=part,
            shown=shown,
            changelog=changelog,
            retractions=retractions,
            settings=settings,
            mirror=mirror,
            mirror_schema=mirror_schema,
            history=history,
        )

    def _is_repaired(self, part: Part) -> bool:
        """Whether what a statement made of the table's rows comes with the plan."""
        return part.location.table_id in self._repaired

    def _check(self, directory: str, part: Part) -> None:
        """Looks once a plan whether a target stands where the plan follows."""
        if directory in self._checked:
            return
        if directory not in self._targets:
            self._targets[directory] = self._state.target(part.location, directory)
        target = self._targets[directory]
        target.refresh()
        if self._is_repaired(part) or part.location.table_id in self._emptied:
            return  # What it holds is compared or taken back, wherever it stands.
        link = self._state.last_links[directory]
        behind = self._behind.get(part.location.table_id)
        # A table that stopped may have had a part in plans that it does not hold.
        links = self._state.links if behind is None else self._state.links_until(behind)
        target.check_link(links.get(directory, 0), self._plan.number, link)
        self._checked.add(directory)

    def _work(self, ready: _Prepared) -> Work | None:
        part, changelog = ready.part, ready.changelog
        target = None if ready.mirror_schema is None else ready.shown.mirrored.last
        if not part.rows or (changelog is None and target is None and ready.history is None):
            return None
        sequences = sorted(part.chunks)
        offsets = accumulate((part.chunks[sequence] for sequence in sequences[:-1]), initial=ready.rows_offset)
        return Work(
            table_id=part.location.table_id,
            segment=part.segment,
            written=ready.shown.images,
            labels=ready.shown.labels,
            blanks=ready.shown.blanks,
            carried=part.carried,
            changelog=None if changelog is None else changelog.schema.arrow(),
            changelog_directory=self._state.path(part.location.changelog),
            offsets=dict(zip(sequences, offsets, strict=True)),
            system_time_us=self._plan.system_time_us,
            target=target,
            mirror=ready.mirror_schema.arrow() if ready.mirror_schema is not None else None,
            mirror_directory=self._state.path(part.location.mirror),
            soft=ready.soft,
            history=None if ready.history is None else self._history_work(ready.history),
            partial=part.partial,
            moves=bool(part.location.key),
            sorted=ready.settings.cluster,
        )

    def _history_work(self, history: HistoryPart) -> HistoryWork:
        return HistoryWork(
            schema=history.schema.arrow(),
            directory=history.target.path,
            key=history.key,
            added=history.new_columns,
            # A statement that takes all rows back, or a table that holds none, leaves none from before.
            ends=history.part.clears is None and not history.target.view.is_empty(),
        )

    def _commit(self, ready: _Prepared, files: Sequence[WrittenFile]) -> None:
        spark = self._spark

        def of(kind: str) -> list[DataFile]:
            return [f.file for f in files if f.kind == kind]

        for stopped in of(STOPPED):
            raise TableStopped(stopped.statistics)
        if ready.history is not None:
            self._state.kernel.delete_files([file.path for file in ready.history.commit(spark, of(OPENED), of(ENDED))])
        if ready.changelog is not None:
            passed = ready.changelog.commit(spark, ready.retractions, of(CHANGELOG))
            self._state.kernel.delete_files([file.path for file in passed])
        if ready.mirror is None or ready.mirror_schema is None:
            return
        net = NetFiles(
            whole=[*of(UPSERTS), *of(FRESH)],
            partial=of(PARTIAL),
            unseen=of(UNSEEN),
            gone=of(DELETES),
            fresh_rows=sum(file.rows for file in of(FRESH)) if ready.shown.appends_are_new else 0,
        )
        passed = write_mirror(spark, ready.shown.mirrored, ready.mirror, ready.mirror_schema, net, soft=ready.soft)
        self._state.kernel.delete_files([file.path for file in passed])

    @contextmanager
    def _stopping(self, part: Part) -> Iterator[None]:
        """Lets the other tables go on where this one cannot."""
        try:
            yield
        except (TableStopped, ChainBroken) as error:
            _log.error("table %s is stopped: %s", part.location.name, error, extra={"table": str(part.location.name)})
            with self._stops:
                self._stopped.add(part.location.table_id)
                self._closed |= dict.fromkeys(part.location.directories, str(error))
                self._state.stop(part.location.table_id, str(error), self._plan.number)
