"""The history of one table (SCD 2): every row that ever was, with where it begins and where it ends.

Offsets are those of the changelog's rows that open and close a row, counted here too, so that a history needs no changelog.
The open rows are those without ``to_offset``; a commit reads and rewrites only files that have some.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.errors import ChainBroken
from historian.names import quoted
from sinks.contract.parts import Part, Step
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit, DataFile
from sinks.delta.log.side_by_side import own_session
from sinks.delta.log.table_view import TableView
from sinks.delta.log.target import Target
from sinks.delta.rewrite import held_rows
from sinks.delta.rewrite.files import FileWriter
from sinks.delta.rewrite.staged import BROADCAST_ROWS, same_key, staged
from sinks.delta.schema.schema_evolution import history_schema, is_widened
from sinks.delta.schema.stops import check_whole
from sinks.delta.targets.changelog import ChangelogPart
from sinks.delta.targets.literals import initial_literal
from sinks.delta.targets.new_columns import added_columns
from sinks.delta.targets.retract import write_ends
from sinks.rows.intervals import Added, close

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

__all__ = ["HistoryPart", "history_after", "history_domains", "next_history_offset", "prepare_history"]

_DOMAIN = "historian.history"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPart:
    """What one part does to a history.

    Attributes:
        schema: that the history has with the part.
        first_offset: of the part's first row in the changelog.
        new_columns: that the part adds to the history, and rows from before read a default in.
        taken_back: files with the ends of all rows that were open, where the part's statement takes them back.
    """

    part: Part
    target: Target
    schema: DeltaSchema
    first_offset: int
    new_columns: Added
    taken_back: Sequence[DataFile]

    @property
    def key(self) -> tuple[int, ...]:
        """Ids of the columns by which rows of the table are told apart."""
        snapshot = self.part.last or self.part.base
        return () if snapshot is None else snapshot.primary_key

    @property
    def ends_key(self) -> tuple[int, ...]:
        """The same for rows from before that end in the part: a statement takes them back under the key that they had."""
        return self.key if self.part.clears is None or self.part.base is None else self.part.base.primary_key

    @property
    def taken_back_rows(self) -> int:
        """How many rows the part's statement takes back."""
        return sum(file.rows for file in self.taken_back)

    def check_taken_back(self, retracted_rows: int) -> None:
        """Raises :class:`ChainBroken` where the changelog takes back another number of rows."""
        if retracted_rows != self.taken_back_rows:
            raise _disagree(
                self.target, f"{retracted_rows} rows to end, as in the changelog", f"{self.taken_back_rows} open"
            )

    @property
    def added(self) -> Added:
        """Columns that rows of the table that stay open read a default in."""
        return () if self.part.base is None or self.part.clears is not None else self.new_columns

    def commit(self, spark: SparkSession, opened: Sequence[DataFile], ended: Sequence[DataFile]) -> Sequence[DataFile]:
        """Brings the history to where it stands after the part; the files to which nothing refers any more.

        Args:
            opened: files of rows that begin in the part.
            ended: files of keys whose row from before the part ends in it.
        """
        target, view = self.target, self.target.view
        ends = [*self.taken_back, *ended]
        last = self.part.transaction(Step.ROWS)
        schema = self.schema.unlike(target.view.schema())
        held = None if target.by_spark else view.small_files(held_rows.SMALL_BYTES, null_in="to_offset")
        if held == [] or not (ends or self.added or target.by_spark):
            # No row is open, or none ends or is filled.
            target.commit(last, Commit(schema=schema, files=opened, domains=self._domain(last)))
            faults.reached("history_committed", f"{target.path} {self.part.index}")
            return ends
        if held is not None and sum(file.size_bytes for file in (*opened, *ends)) <= held_rows.SMALL_BYTES:
            files = self._rewritten(held, opened, ends)
            commit = Commit(schema=schema, removed=held, files=files, domains=self._domain(last))
            target.commit(last, commit)
            faults.reached("history_committed", f"{target.path} {self.part.index}")
            return [*opened, *ends]
        prepared = self.part.transaction(Step.SCHEMA)
        if target.held < prepared:
            target.commit(prepared, Commit(schema=schema, domains=self._domain(prepared)))
            faults.reached("history_prepared", f"{target.path} {self.part.index}")
        filled = self.part.transaction(Step.FILL)
        spark = own_session(spark)
        if self.added and target.held < filled:
            target.run(filled, spark, self._fill(spark))
            faults.reached("history_filled", f"{target.path} {self.part.index}")
        if opened or ends:
            target.run(last, spark, self._merge(spark, opened, ends))
        if target.held < last:
            target.commit(last, Commit())
        faults.reached("history_committed", f"{target.path} {self.part.index}")
        return [*opened, *ends]

    def _domain(self, transaction: int) -> dict[str, str]:
        """A merge cannot set it, so it is set before; until the merge is done it says where the part began."""
        following = self.first_offset + self.taken_back_rows + self.part.rows
        return {_DOMAIN: json.dumps({"at": transaction, "first_offset": self.first_offset, "next_offset": following})}

    def _rewritten(self, held: Sequence[str], opened: Sequence[DataFile], ends: Sequence[DataFile]) -> list[DataFile]:
        """Files for *held* with the part applied: open rows in one, closed ones, which are never read again here, in another."""
        schema = self.schema.arrow()

        def read(paths: Sequence[str]) -> pa.Table:
            return pa.concat_tables([schema.empty_table(), *(held_rows.read(path, schema) for path in paths)])

        still, closed = close(read(held), read([f.path for f in ends]), self.ends_key, self.added)
        fresh = read([f.path for f in opened])
        is_open = fresh.column("to_offset").is_null()
        files: list[DataFile] = []
        for tables in ([still, fresh.filter(is_open)], [closed, fresh.filter(pc.invert(is_open))]):
            writer = FileWriter(self.target.path, schema)
            writer.write_table(pa.concat_tables(tables))
            files += writer.close()
        return files

    def _fill(self, spark: SparkSession) -> Callable[[], Any]:
        """Rows that are open read the defaults; what a row that ends in the part reads, the merge says."""
        from delta.tables import DeltaTable

        names = {f.physical: quoted(f.name) for f in self.schema.fields}
        values: dict[str, str | SparkColumn] = {
            names[physical_name(column.id)]: initial_literal(column) for column, _ in self.added
        }
        return lambda: DeltaTable.forPath(spark, self.target.path).update(f"{names['to_offset']} IS NULL", values)

    def _merge(self, spark: SparkSession, opened: Sequence[DataFile], ends: Sequence[DataFile]) -> Callable[[], Any]:
        """One MERGE: a row of *ends* finds the open row of its key; one of *opened*, which has ``from_offset``, finds none."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        source = staged(spark, self.schema, [*opened, *ends])
        if sum(file.rows for file in (*opened, *ends)) <= BROADCAST_ROWS:
            source = F.broadcast(source)
        names = {f.physical: quoted(f.name) for f in self.schema.fields}
        condition = F.expr(f"s.from_offset IS NULL AND t.{names['to_offset']} IS NULL")
        condition &= same_key(self.schema, self.ends_key, ends)
        ended = ["to_offset", "valid_to", *(physical_name(column.id) for column, _ in self.added)]
        updates: dict[str, str | SparkColumn] = {names[name]: f"s.{name}" for name in ended}
        values: dict[str, str | SparkColumn] = {name: f"s.{physical}" for physical, name in names.items()}

        def run() -> None:
            merge = DeltaTable.forPath(spark, self.target.path).alias("t").merge(source.alias("s"), condition)
            merge = merge.whenMatchedUpdate(set=updates).whenNotMatchedInsert("s.from_offset IS NOT NULL", values)
            merge.execute()

        return run


def prepare_history(
    spark: SparkSession, part: Part, target: Target, changelog: ChangelogPart | None, names: str
) -> HistoryPart | None:
    """What *part* does to its history, which is made where there is none; None where that holds the part.

    Args:
        changelog: what the part does to the table's changelog; None: it has none. A history is written before its
            changelog, so one that lacks the part stands beside a changelog that lacks it.
        names: see :func:`sinks.delta.schema.schema_evolution.history_schema`.

    Raises:
        ChainBroken: history and changelog have not counted the same rows.
        TableStopped: rows of the part have absent columns.
    """
    if target.held >= part.transaction(Step.ROWS):
        return None
    check_whole(part, "a history")
    prepared = target.held >= part.transaction(Step.SCHEMA)
    # One that was made and holds nothing has the schema that the part leads to, not the one that it comes from.
    before = target.view.schema() if target.held else None
    schema = before if prepared else history_after(part, before, names)
    if schema is None:
        return None
    expected = 0 if changelog is None else changelog.first_offset
    if not target.exists:
        target.create(schema, history_domains(expected))
    first = _first_offset(part, target)
    if changelog is not None and first != expected:
        raise _disagree(target, f"offset {expected}, as in the changelog", f"offset {first}")
    taken_back: Sequence[DataFile] = ()
    if part.clears is not None and part.base is not None:
        taken_back = write_ends(spark, part, target, schema, first)
    return HistoryPart(
        part=part,
        target=target,
        schema=schema,
        first_offset=first,
        new_columns=added_columns(target, part),
        taken_back=taken_back,
    )


def history_after(part: Part, schema: DeltaSchema | None, names: str) -> DeltaSchema | None:
    """The schema that a history of that *schema* (None: not made yet) has with *part*.

    Raises:
        TableStopped: see :func:`sinks.delta.schema.schema_evolution.history_schema`.
    """
    for number, snapshot in part.written.items():
        if number == part.base_version and is_widened(schema, snapshot):
            continue
        schema = history_schema(schema, snapshot, names, follow=part.version_changes.get(number))
    return schema


def _first_offset(part: Part, target: Target) -> int:
    held = target.view.counted(_DOMAIN, "history")
    begun = held["at"] == part.transaction(Step.SCHEMA)
    return int(held["first_offset" if begun else "next_offset"])


def next_history_offset(view: TableView) -> int:
    """The offset of a history's next row, as its changelog counts. Raises :class:`ChainBroken` where it does not say."""
    return int(view.counted(_DOMAIN, "history")["next_offset"])


def history_domains(following: int) -> dict[str, str]:
    """What a history is made with whose next row has the offset *following*."""
    return {_DOMAIN: json.dumps({"at": 0, "first_offset": following, "next_offset": following})}


def _disagree(target: Target, expected: str, found: str) -> ChainBroken:
    return ChainBroken(
        "a history does not go on where its changelog does",
        where=target.path,
        expected=expected,
        found=found,
        next_step="replicate the table into another lake, from the start",
    )
