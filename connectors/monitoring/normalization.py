"""What normalisation has met so far, as a run notes it in its store and the status tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from historian import codec
from historian.normalizing.counts import NormalCounts

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.plans.plans import Plan
    from historian.store import Store

__all__ = ["NormalizationNote", "normalized_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalizationNote:
    """Counts of all plans up to ``plan``, by table id: each table that has a state stands there.

    ``patterns``: of the tables that are normalised; (): of none any more; None: the connector did not begin with it, as far as is known.
    """

    plan: int = 0
    patterns: tuple[str, ...] | None = None
    tables: Mapping[int, NormalCounts] = field(default_factory=dict)

    @staticmethod
    def of(store: Store) -> NormalizationNote:
        """What *store* keeps."""
        text = store.normalization()
        return codec.load(NormalizationNote, text) if text else NormalizationNote()

    def behind(self, plan: Plan, counts: Mapping[int, NormalCounts]) -> NormalizationNote:
        """The same with those of the next *plan*. What it reads for fresh targets was counted before: from the beginning these are all."""
        tables = {**self.tables, **{i: self.tables.get(i, NormalCounts()) + met for i, met in counts.items()}}
        for table in plan.tables:
            if table.behind == 0 and table.table_id in counts:
                met = counts[table.table_id]
                tables[table.table_id] = self.tables.get(table.table_id, NormalCounts()) if table.seed else met
        return replace(self, plan=plan.number, tables=tables)

    def text(self) -> str:
        """As the store keeps it."""
        return codec.dump_short(NormalizationNote, self)


def normalized_tables(store: Store, history: Callable[[], History]) -> Iterator[dict[str, Any]]:
    """Of each table in which normalisation met something how often, by what it was."""
    for table_id, met in sorted(NormalizationNote.of(store).tables.items()):
        counts = {what: count for what, count in asdict(met).items() if count}
        if counts:
            names = [each.snapshot.name for each in history().versions_of(table_id) if each.snapshot is not None]
            yield {"table": str(names[-1]) if names else f"table {table_id}", **counts}
