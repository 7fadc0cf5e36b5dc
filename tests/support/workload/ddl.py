"""The DDL of a workload: each kind is a function that runs a statement or two on a table that others write to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from workload import column_ddl as columns
from workload import rewriting_ddl as rewriting
from workload import table_ddl as tables
from workload import unlogged_rows as unlogged
from workload.definer import Work

__all__ = ["CONVERSIONS", "KINDS", "REWRITING", "WIDENINGS", "Kind"]

MOST_COLUMNS = 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of DDL: what runs it, and which tables it can be run on."""

    run: Callable[[Work], None]
    fits: Callable[[Work], bool] = lambda _: True
    narrow: bool = False
    """Also on tables whose columns all are INT NOT NULL."""


def _room(work: Work) -> bool:
    return len(work.shape.columns) < MOST_COLUMNS


def _few_tables(work: Work) -> bool:
    return len(work.definer.tables.names()) < 10


KINDS: tuple[Kind, ...] = (
    Kind(run=columns.add_first, fits=_room),
    Kind(run=columns.add_somewhere, fits=_room),
    Kind(run=columns.add_zero, fits=_room),
    Kind(run=columns.add_two, fits=_room),
    Kind(run=columns.drop, fits=lambda work: len(columns.droppable(work)) > 3),
    Kind(run=columns.drop_then_add, fits=lambda work: len(columns.droppable(work)) > 3),
    Kind(run=columns.rename_column, fits=lambda work: bool(columns.movable(work)), narrow=True),
    Kind(run=columns.widen, fits=lambda work: bool(columns.widenable(work))),
    Kind(run=columns.change, fits=lambda work: bool(columns.widenable(work))),
    Kind(run=columns.move, fits=lambda work: bool(columns.movable(work))),
    Kind(
        run=columns.append_member,
        fits=lambda work: any(c.type == "enum" and len(c.labels) < 9 for c in work.shape.columns),
    ),
    Kind(run=columns.several, fits=lambda work: len(columns.droppable(work)) > 4),
    Kind(run=columns.keep_shape, fits=lambda work: work.definer.tables.is_narrow(work.table), narrow=True),
    Kind(run=columns.keep_shape, fits=lambda work: work.definer.tables.is_narrow(work.table), narrow=True),
    Kind(run=columns.index, narrow=True),
    Kind(run=columns.set_default, fits=lambda work: any(c.type in {"int", "bigint"} for c in work.shape.free)),
    Kind(run=tables.rename_table, narrow=True),
    Kind(run=tables.swap_tables, narrow=True),
    Kind(run=tables.create_like, fits=_few_tables, narrow=True),
    Kind(run=tables.create_select, fits=lambda work: _few_tables(work) and not work.shape.auto_increment),
    Kind(run=tables.truncate, narrow=True),
    Kind(run=tables.drop_database, narrow=True),
    Kind(run=tables.temporary, narrow=True),
    Kind(run=tables.view, narrow=True),
    Kind(run=tables.vain, narrow=True),
    Kind(run=tables.vain),
    Kind(run=tables.drop_table, fits=lambda work: len(work.definer.tables.names()) > 5),
)

WIDENINGS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.run in (columns.widen, columns.change))

CONVERSIONS: tuple[Kind, ...] = (
    Kind(run=columns.convert, fits=lambda work: bool(work.shape.key and columns.convertible(work))),
) * 4
"""DDL behind which a column has other values than before, which no row event tells; on tables with a key."""

REWRITING: tuple[Kind, ...] = (
    *(Kind(run=rewriting.rewrite, fits=lambda work: bool(rewriting.rewritable(work))),) * 4,
    *(Kind(run=rewriting.not_null, fits=lambda work: bool(rewriting.nullable(work))),) * 2,
    Kind(run=rewriting.timestamp_not_null, fits=lambda work: bool(rewriting.timestamps(work))),
    Kind(run=rewriting.alter_ignore, fits=lambda work: work.session.mariadb and bool(rewriting.nullable(work))),
    Kind(run=rewriting.ignore_duplicates, fits=lambda work: work.session.mariadb and bool(work.shape.free)),
    Kind(run=rewriting.add_generated, fits=lambda work: _room(work) and rewriting.may_be_generated(work)),
    Kind(run=rewriting.change_generated, fits=lambda work: bool(rewriting.generated(work) and work.shape.free)),
    Kind(run=rewriting.add_counter, fits=lambda work: _room(work) and bool(work.shape.key)),
    Kind(run=rewriting.add_computed, fits=_room),
    Kind(run=rewriting.convert_table, fits=rewriting.convertible),
    Kind(run=rewriting.swap_rewritten, fits=lambda work: bool(rewriting.rewritable(work))),
    *(Kind(run=unlogged.written_by_statement, fits=lambda work: bool(work.shape.free)),) * 2,
    Kind(run=unlogged.copied_by_statement, fits=unlogged.has_numbers),
    Kind(run=unlogged.load_data, fits=unlogged.has_numbers),
    Kind(run=unlogged.exchange_partition, fits=_few_tables),
)
"""What changes rows without row events. A server refuses some of it; which, depends on its version and on the rows."""
