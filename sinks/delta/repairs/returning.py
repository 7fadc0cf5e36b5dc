"""Mirrors and histories that do not stand where their changelog stands are brought there before a repair, by its rows.

They have waited, were left behind at a gap, or their table stopped between two commits of a plan. Each is written anew in one
commit, which carries the identifier of the step before the plan's first; what holds that is passed by when the plan comes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from historian.changelog.missing_columns import ABSENT, WHOLE_IMAGES
from historian.changelog.operations import Op, physical_name
from historian.errors import SinkError, TableStopped
from historian.names import quoted
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decisions, VersionChange
from sinks.contract.parts import STEPS
from sinks.delta import faults
from sinks.delta.lake.state import LakeState
from sinks.delta.log.columns import DeltaField, DeltaSchema
from sinks.delta.log.commits import Commit
from sinks.delta.log.target import Target
from sinks.delta.repairs.held import as_before, held_frame
from sinks.delta.rewrite.spark_rows import known_version, written_by_tasks
from sinks.delta.schema.decisions import EvolvedPart
from sinks.delta.schema.schema_evolution import DELETED, history_schema, mirror_schema
from sinks.delta.settings import TableSettings
from sinks.delta.targets.changelog import held_keys, next_offset
from sinks.delta.targets.history import history_domains, next_history_offset
from sinks.delta.targets.literals import initial_literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["LeftBehind", "brought_back", "left_behind"]

_TAKES = (int(Op.RETRACT), int(Op.CORRECT_FROM))


class LeftBehind(SinkError):
    """A target was left behind its changelog, and so does not tell the rows of now."""


def brought_back(
    spark: SparkSession, state: LakeState, settings: TableSettings, targets: Sequence[Target], first: EvolvedPart
) -> None:
    """Brings the mirror and the history among a table's *targets* to where its changelog stood before a plan.

    Args:
        first: the plan's first part of the table.

    Raises:
        TableStopped: the changelog does not tell what they lack.
        ChainBroken: logs do not reach back to where they stand.
    """
    for target, before in left_behind(state, targets, first):
        assert first.part.base is not None  # noqa: S101 what is left behind holds rows
        _refuse_writers(target)
        work = _Return(spark=spark, state=state, target=target, changelog=before, first=first, base=first.part.base)
        if target.kind == "mirror":
            work.mirror(soft=settings.mirror_deletes == "soft")
        else:
            work.history(settings.history_names)


def left_behind(state: LakeState, targets: Sequence[Target], first: EvolvedPart) -> Iterator[tuple[Target, Target]]:
    """The mirror and the history among *targets* that do not stand where their changelog stood, each with that.

    Raises:
        ChainBroken: as of :func:`brought_back`.
    """
    kinds = {target.kind: target for target in targets}
    changelog, step = kinds.get("changelog"), first.part.plan * STEPS
    before = None if changelog is None else as_before(changelog, step)
    if before is None or first.part.base is None:
        return
    links = state.links_until(before.held // STEPS)
    for target in (kinds[kind] for kind in ("mirror", "history") if kind in kinds):
        stands = all(links.get(one.directory, 0) == one.held for one in (before, target))
        stands = target.held == before.held or (stands and target.held // STEPS == before.held // STEPS)
        if target.exists and target.held < step and not stands:
            yield target, before


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """One target with the changelog as it was before the plan; *base*: the schema in force there."""

    spark: SparkSession
    state: LakeState
    target: Target
    changelog: Target
    first: EvolvedPart
    base: Snapshot

    def mirror(self, *, soft: bool) -> None:
        """By key the last image that the mirror lacks; without a key all that the changelog amounts to."""
        made = Decisions.parse(self.first.part.location.evolved)
        kept = made.kept(self.first.part.base_version)
        follow = VersionChange(before=None, kept=kept, unnamed=frozenset(), moves=True)
        schema = mirror_schema(self.target.view.schema(), self.base, soft=soft, follow=follow)
        if self.base.primary_key:
            rows = self._mirrored(schema, soft=soft)
        else:
            rows = held_frame(self.spark, self.changelog, self.first.part, self.base, ())
        self._commit(rows, schema, {})

    def history(self, names: str) -> None:
        """Each row of the changelog opens an interval or ends one."""
        schema = history_schema(self.target.view.schema(), self.base, names)
        self._commit(self._intervals(schema), schema, history_domains(next_offset(self.changelog.view)))

    def _mirrored(self, schema: DeltaSchema, *, soft: bool) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        stood = as_before(self.changelog, self.target.held + 1)
        log = self._log(schema, 0 if stood is None else next_offset(stood.view))
        names = [field.physical for field in schema.fields if field.column_id]
        key = self._key
        last = log.groupBy(*key).agg(F.max_by(F.struct("op", "event_time", *names), "offset").alias("last"))
        last = last.select("last.*")
        gone = F.col("op").isin(*_TAKES)
        if soft:
            at = F.when(gone, F.col("event_time"))
            put = last.withColumns({DELETED[0]: gone, DELETED[1]: at}).drop("op", "event_time")
        else:
            put = last.where(~gone).drop("op", "event_time")
        held = self._held(schema)
        others = held.alias("h").join(last.select(*key).alias("l"), _same(key, "h", "l"), "left_anti")
        return others.unionByName(put)

    def _intervals(self, schema: DeltaSchema) -> DataFrame:
        from pyspark.sql import Window
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        key = self._key
        if (held_keys(self.changelog.view) or frozenset()) != frozenset((self.base.primary_key,)):
            raise self._refused("rows of its changelog are under other keys", "a key that has not changed")
        following = Window.partitionBy(*key).orderBy("offset")
        log = self._log(schema, next_history_offset(self.target.view), filled=False)
        log = log.withColumns(
            {
                "to_offset": F.lead("offset").over(following),
                "valid_to": F.lead("event_time").over(following),
                "until": F.lead("schema_version").over(following),
                "place": F.row_number().over(following),
            }
        )
        ends = log.where("place = 1").select(*key, "offset", "event_time", "schema_version")
        opened = log.where(~F.col("op").isin(*_TAKES))
        opened = opened.withColumns({"from_offset": F.col("offset"), "valid_from": F.col("event_time")})
        for name, (since, value) in self._initials(schema).items():
            reads = (F.col("schema_version") < since) & (F.col("until").isNull() | (F.col("until") >= since))
            opened = opened.withColumn(name, F.when(reads, value).otherwise(F.col(name)))
        names = [field.physical for field in schema.fields]
        held = self._held(schema, filled=False).alias("h")
        is_ended = F.col("h.to_offset").isNull() & _same(key, "h", "e")
        both = held.join(ends.alias("e"), is_ended, "left")
        is_open = F.col("h.to_offset").isNull()
        values = {name: F.col(f"h.{name}") for name in names}
        for name, (since, value) in self._initials(schema).items():
            reads = is_open & (F.col("e.offset").isNull() | (F.col("e.schema_version") >= since))
            if name in self._lacking(schema):
                values[name] = F.when(reads, value).otherwise(values[name])
        values["to_offset"] = F.coalesce("h.to_offset", "e.offset")
        values["valid_to"] = F.coalesce("h.valid_to", F.when(is_open, F.col("e.event_time")))
        return both.select(*(value.alias(name) for name, value in values.items())).unionByName(opened.select(*names))

    @property
    def _key(self) -> list[str]:
        return [physical_name(column_id) for column_id in self.base.primary_key]

    def _log(self, schema: DeltaSchema, offset: int, *, filled: bool = True) -> DataFrame:
        """The changelog's rows from *offset* on: system columns, then those of *schema*."""
        from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

        held = self.changelog.view.schema()
        rows = known_version(self.spark, self.changelog).where(F.col("offset") >= offset)
        if ABSENT in held.names() and not rows.where(F.col(ABSENT).isNotNull()).isEmpty():
            raise self._refused("rows of its changelog lack columns", WHOLE_IMAGES)
        columns = [_column(held.by_id(f.column_id), f) for f in schema.fields if f.column_id]
        rows = rows.select("offset", "op", "event_time", "schema_version", *columns)
        for name, (since, value) in self._initials(schema).items() if filled else ():
            rows = rows.withColumn(name, F.when(F.col("schema_version") < since, value).otherwise(F.col(name)))
        return rows

    def _held(self, schema: DeltaSchema, *, filled: bool = True) -> DataFrame:
        """The target's rows in *schema*."""
        held = {f.physical: f for f in self.target.view.schema().fields}
        rows = known_version(self.spark, self.target)
        rows = rows.select(*(_column(held.get(f.physical), f) for f in schema.fields))
        initials = {name: value for name, (_, value) in self._initials(schema).items() if name in self._lacking(schema)}
        return rows.withColumns(initials) if filled else rows

    def _lacking(self, schema: DeltaSchema) -> set[str]:
        return {f.physical for f in schema.fields} - {f.physical for f in self.target.view.schema().fields}

    def _initials(self, schema: DeltaSchema) -> dict[str, tuple[int, Column]]:
        """By column the version that added it, and what rows from before read in it."""
        fields = {f.column_id: f for f in self.changelog.view.schema().fields}
        wanted = {f.column_id: f for f in schema.fields}
        return {
            physical_name(c.id): (fields[c.id].since, initial_literal(c).cast(wanted[c.id].type))
            for c in self.base.columns
            if c.initial is not None and c.id in fields and fields[c.id].since
        }

    def _commit(self, rows: DataFrame, schema: DeltaSchema, domains: dict[str, str]) -> None:
        files = written_by_tasks(rows, self.target.path, schema.arrow())
        news = schema.unlike(self.target.view.schema())
        commit = Commit(schema=news, clear=True, files=files, domains=domains)
        self.target.commit(self.first.part.plan * STEPS, commit)
        faults.reached("target_brought_back", self.target.path)

    def _refused(self, what: str, expected: str) -> TableStopped:
        return TableStopped(
            f"a target was left behind its changelog, and {what}",
            where=self.target.path,
            expected=expected,
            next_step="replicate the table into another lake, from a new start",
        )


def _refuse_writers(target: Target) -> None:
    if target.by_spark or target.view.has_change_feed():
        raise TableStopped(
            "a target was left behind its changelog, and its rows cannot be written anew in one commit",
            where=target.path,
            expected="writer: native, and no change data feed",
            next_step="take those settings from the target, or replicate the table into another lake",
        )


def _column(held: DeltaField | None, wanted: DeltaField) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    value = F.lit(None) if held is None else F.col(quoted(held.name))
    return value.cast(wanted.type).alias(wanted.physical)


def _same(key: Sequence[str], one: str, other: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812 Spark's own custom

    return reduce(and_, (F.col(f"{one}.{name}").eqNullSafe(F.col(f"{other}.{name}")) for name in key))
